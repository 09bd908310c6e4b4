"""The loops of the fused engine in C, for CPUs.

It has the families, gradients and saved tensors of `fused`, whose files have the equations, and more: the LSTM, the
sLSTM, complex states, and recurrences that are linear in the state, be it a vector or a matrix. C computes the steps,
and for many cells the projection. Weights are packed once per call, and activations are applied while their block is in
cache. Denormal numbers count as zero in the loops: gradients that vanish would take some processors many times as
long.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, get_args

import torch
from torch import Tensor

from orthobench.cells.activations import Activation
from orthobench.cells.attention import Attention
from orthobench.cells.base import Cell, State
from orthobench.cells.complex_elman import ComplexElman
from orthobench.cells.convolution import InputConvolution
from orthobench.cells.cornn import CoRNN
from orthobench.cells.deltaproduct import DeltaProduct
from orthobench.cells.elman import Elman
from orthobench.cells.gated_outer import GatedOuter
from orthobench.cells.gru import GRU
from orthobench.cells.lem import LEM
from orthobench.cells.lipschitz import Lipschitz
from orthobench.cells.lru import LRU
from orthobench.cells.lstm import LSTM
from orthobench.cells.m2rnn import M2RNN
from orthobench.cells.mamba2 import Mamba2
from orthobench.cells.mamba3 import Mamba3
from orthobench.cells.mingru import MinGRU
from orthobench.cells.minlstm import MinLSTM
from orthobench.cells.mlstm import MLSTM
from orthobench.cells.outer import Outer
from orthobench.cells.pdssm import PDSSM
from orthobench.cells.rotation import Rotation
from orthobench.cells.rwkv7 import RWKV7
from orthobench.cells.scalar_gated import ScalarGated
from orthobench.cells.slstm import SLSTM
from orthobench.cells.unicornn import UnICORNN
from orthobench.common.terminal import complain
from orthobench.parametrizations.derivatives import first_only
from orthobench.scan.arguments import elman, first_state, scaled
from orthobench.scan.families import lookup
from orthobench.scan.fused import attention as fused_attention
from orthobench.scan.fused import convolution as fused_convolution
from orthobench.scan.fused import linear, matrix_cells
from orthobench.scan.fused import outer as fused_outer
from orthobench.scan.fused.elman import Gradients, first_gradient
from orthobench.scan.fused.pointwise import room_for_signs
from orthobench.scan.native import (
    complex_elman,
    deltaproduct,
    gated_linear,
    lem,
    lipschitz,
    lstm,
    m2rnn,
    mamba3,
    matrix_memory,
    mlstm,
    oscillators,
    pdssm,
    plane_rotations,
    rwkv7,
    slstm,
)
from orthobench.scan.native.convolution import convolve
from orthobench.scan.native.diagonal import diagonal_scan
from orthobench.scan.native.library import REALS, add_outer, call, load, missing, pack, readable, weight_gradient
from orthobench.scan.native.norm import gated_norm, unit
from orthobench.scan.native.outer import outer_scan
from orthobench.scan.native.projection import own_projection, project
from orthobench.scan.uncompiled import uncompiled

ACTIVATIONS = get_args(Activation)
RunNative = Callable[[Any, Tensor, State], tuple[Tensor, State]]
RESETS = ("after", "before", "none")


def why_not(cell: Cell) -> str | None:
    """Why this engine cannot run the cell; None when it can."""
    if lookup(cell, FAMILIES) is None:
        return f"it has no loop for {type(cell).__name__}"
    if cell.U.device.type != "cpu":
        return "it is for CPUs"
    return missing(cell.U.dtype) if cell.U.dtype in REALS else f"it has no loop for {cell.U.dtype}"


def advantage(cell: Cell, device: str, sequences: int) -> str | None:
    """See `Engine.advantage`: on a CPU it wins at every size, precision and batch that `orthobench bench` measures.

    The exception is x86 with vectors of only 128 bits, where it takes 2.5 times as long as `fused`.
    """
    if device != "cpu":
        return None
    problem = why_not(cell)
    if problem is None:
        return "compiled loops are the fastest on a CPU" if load(cell.U.dtype).worthwhile() else None
    if lookup(cell, FAMILIES) is not None and cell.U.device.type == "cpu" and cell.U.dtype in REALS:
        warn_once(problem)  # the user can install a compiler
    return None


@lru_cache
def warn_once(problem: str) -> None:
    """Tell the user, once for each reason, why this engine is left out."""
    complain(f"orthobench: engine=native is left out, a slower engine is taken: {problem}.")


def values_per_step(cell: Any) -> int:
    """Numbers from which the memory of a step is estimated, as `Cell.values_per_step`; a matrix state is kept for few
    steps.
    """
    if isinstance(cell, DeltaProduct):
        return matrix_memory.values_per_step(cell, cell.products)
    if isinstance(cell, MLSTM) and cell.orthogonal:
        return matrix_cells.values_per_step(cell)
    if isinstance(cell, MLSTM) or (isinstance(cell, GatedOuter) and deltaproduct.is_gated_deltanet(cell)):
        return matrix_memory.values_per_step(cell)
    if isinstance(cell, PDSSM):
        return pdssm.values_per_step(cell)
    if isinstance(cell, Outer):  # whose windows are longer
        return matrix_cells.values_per_step(cell) + len(cell.U) // 4
    return cell.values_per_step


@uncompiled  # C is given addresses
def run(cell: Cell, x: Tensor, state: State) -> tuple[Tensor, State]:
    """Run `cell` over x from `state`; see `reference.run`."""
    family = lookup(cell, FAMILIES)
    assert family is not None
    return family(cell, x, state)


def _elman(cell: Any, x: Tensor, state: State) -> tuple[Tensor, State]:
    if plane_rotations.suits(cell):
        return plane_rotations.run(cell, x, state)
    arguments, outside = elman(cell, x, state, project)
    _check(cell, arguments.p, arguments.W)
    if arguments.beta is not None and arguments.beta.numel() != 1:
        shape = tuple(arguments.beta.shape)
        raise ValueError(f"engine=native reads one gate beta, and here is one of shape {shape}: use engine=reference.")
    h_TBN, last = NativeElman.apply(*arguments, _settings(cell))
    return scaled(h_TBN.transpose(0, 1), last, outside)


def _gru(cell: Any, x: Tensor, state: State) -> tuple[Tensor, State]:
    W = cell.matrices()
    p = own_projection(cell, x, W[0].dtype)
    _check(cell, p, *W)
    b = cell.b["c"] if "c" in cell.inside else None
    late = cell.b_hidden["c"] if "c" in cell.late and "c" in cell.b_hidden else None
    settings = {**_settings(cell), "reset": RESETS.index(cell.reset)}
    h0 = first_state(state, p, W[0])
    h_TBN, last = NativeGRU.apply(p, torch.cat(W[:2]), W[2] if len(W) == 3 else None, b, late, h0, settings)
    return h_TBN.transpose(0, 1), (last,)


_outer = partial(fused_outer.run, scan=outer_scan, convolve=convolve)


def _gated_outer(cell: Any, x: Tensor, state: State) -> tuple[Tensor, State]:
    if deltaproduct.is_gated_deltanet(cell):
        return deltaproduct.gated_deltanet(cell, x, state)
    return _outer(cell, x, state, norm=gated_norm, unit=unit)


FAMILIES: dict[type, RunNative] = {
    Elman: _elman,
    ScalarGated: _elman,
    GRU: _gru,
    LSTM: lstm.run,
    Attention: fused_attention.run,
    SLSTM: slstm.run,
    M2RNN: m2rnn.run,
    PDSSM: pdssm.run,
    LEM: lem.run,
    CoRNN: oscillators.cornn,
    UnICORNN: oscillators.unicornn,
    Lipschitz: lipschitz.run,
    ComplexElman: complex_elman.run,
    LRU: partial(linear.run, scan=diagonal_scan),
    **dict.fromkeys((MinGRU, MinLSTM, Rotation), gated_linear.run),
    InputConvolution: partial(fused_convolution.run, convolve=convolve),
    DeltaProduct: deltaproduct.run,
    MLSTM: mlstm.run,
    GatedOuter: _gated_outer,
    Mamba2: partial(_outer, norm=gated_norm),
    RWKV7: partial(_outer, heads=rwkv7.written),
    Mamba3: partial(_outer, keys=mamba3.turned_keys),
}

AT_STEPS = {Attention: uncompiled(fused_attention.run), MLSTM: mlstm.run_at}


def _check(cell: Cell, p: Tensor, *W: Tensor) -> None:
    """Refuse a projection and matrices whose shapes do not fit together, because C does not check them."""
    N = W[0].shape[0]
    if p.shape[-1] != N * len(cell.gates) or any(w.shape != (N, N) for w in W):
        raise ValueError(f"projection of width {p.shape[-1]} and matrices {[tuple(w.shape) for w in W]} do not fit.")


def _settings(cell: Any) -> dict[str, Any]:
    return {"activation": ACTIVATIONS.index(cell.activation), "slope": cell.negative_slope}


def _room(settings: dict[str, Any], A: Tensor, training: bool) -> Tensor | None:
    return room_for_signs(ACTIVATIONS[settings["activation"]], A, training)


def _rows_of(parameter: Tensor | None, G: Tensor) -> Tensor | None:
    """Zeros of the shape of G in which a parameter's gradient is summed; None where there is no such parameter."""
    return None if parameter is None else torch.zeros_like(G)


class NativeElman(torch.autograd.Function):
    """(p_TBN, W, b, h_0, beta, settings) -> (h_TBN, h_T); a takes p's place in memory."""

    @staticmethod
    def forward(
        ctx: Any,
        p_TBN: Tensor,
        W: Tensor,
        b: Tensor | None,
        h0: Tensor,
        beta: Tensor | None,
        settings: dict[str, Any],
    ) -> tuple[Tensor, Tensor]:
        A, h0 = p_TBN.data, h0.contiguous()
        H = None if beta is None else torch.empty_like(A)
        signs = _room(settings, A, any(ctx.needs_input_grad))
        call("elman_forward", A, settings, (pack(W.T),), P=A, H=H, h0=h0, b=b, beta=beta, signs=signs)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(A, H, h0, W, b, beta, signs)
        ctx.settings = settings
        H = A if H is None else H
        return H, H[-1].clone()

    @staticmethod
    @first_only("use engine=reference")
    def backward(ctx: Any, dH: Tensor | None, dlast: Tensor | None) -> Gradients:  # type: ignore[override]
        A, H, h0, W, b, beta, signs = ctx.saved_tensors
        dH, dZ, G = readable(dH), torch.empty_like(A), first_gradient(A, dH, dlast)
        db, dbeta = _rows_of(b, G), _rows_of(beta, G)
        inputs = {"P": A, "H": H, "h0": h0, "beta": beta, "signs": signs, "dH": dH}
        call("elman_backward", A, ctx.settings, (pack(W),), dZ=dZ, G=G, db=db, dbeta=dbeta, **inputs)
        dW = weight_gradient(dZ, A if H is None else H, h0)
        return dZ, dW, None if db is None else db.sum(0), G, None if dbeta is None else dbeta.sum(), None


class NativeGRU(torch.autograd.Function):
    """(p_TBM, W_ru, W_c, b, b_k, h_0, settings) -> (h_TBN, h_T); the gates take p's place in memory.

    M = 3N and W_ru (2N, N) stacks W_r and W_u; without a reset M = 2N, it stacks W_u and W_c, and W_c is None.
    """

    @staticmethod
    def forward(
        ctx: Any,
        p_TBM: Tensor,
        W_ru: Tensor,
        W_c: Any,
        b: Tensor | None,
        late: Tensor | None,
        h0: Tensor,
        settings: dict[str, Any],
    ) -> tuple[Tensor, Tensor]:
        gates, h0, reset = p_TBM.data, h0.contiguous(), RESETS[settings["reset"]]
        H = gates.new_empty(*gates.shape[:2], h0.shape[-1])
        K = torch.empty_like(H) if reset == "after" else None
        X = torch.empty_like(H[0]) if reset == "before" else None
        signs = _room(settings, H, any(ctx.needs_input_grad))
        weights = (pack(W_ru.T),) if W_c is None else (pack(W_ru.T), pack(W_c.T))
        call("gru_forward", H, settings, weights, P=gates, H=H, K=K, X=X, h0=h0, b=b, late=late, signs=signs)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(H, gates, K, signs, h0, W_ru, W_c, b, late)
        ctx.settings = settings
        return H, H[-1].clone()

    @staticmethod
    @first_only("use engine=reference")
    def backward(ctx: Any, dH: Tensor | None, dlast: Tensor | None) -> Gradients:  # type: ignore[override]
        H, gates, K, signs, h0, W_ru, W_c, b, late = ctx.saved_tensors
        N, reset = H.shape[-1], RESETS[ctx.settings["reset"]]
        dZ: Tensor = torch.empty_like(gates)
        dH, G = readable(dH), first_gradient(H, dH, dlast)
        X: Any = None if W_c is None else torch.empty_like(H)
        S, db = torch.empty_like(G), _rows_of(b, G)
        weights = (pack(W_ru),) if W_c is None else (pack(W_ru), pack(W_c))
        saved = {"P": gates, "H": H, "K": K, "h0": h0, "signs": signs}
        call("gru_backward", H, ctx.settings, weights, dH=dH, dZ=dZ, G=G, X=X, S=S, db=db, **saved)
        dW_c = None
        if reset == "after":
            dW_c = weight_gradient(X, H, h0)
        elif reset == "before":
            dW_c = H.new_zeros(N, N)
            add_outer(dZ[..., 2 * N :], X, dW_c)
        biases = None if db is None else db.sum(0), None if late is None else X.sum((0, 1))
        return dZ, weight_gradient(dZ[..., : 2 * N], H, h0), dW_c, *biases, G, None
