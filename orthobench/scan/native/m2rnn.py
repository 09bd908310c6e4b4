"""M2RNN in C; cells/m2rnn.py has the equations.

With G = dL/dS_t, A the values of tanh, and Z = (1 - f) G * (1 - A^2), one step of the backward pass is

    G <- G + q do^T, bounded,   dq = S_t do,   df = the sum of G * (S_{t-1} - A)
    dk = Z v,   dv = Z^T k,   dW = S_{t-1}^T Z,   G <- f G + Z W^T

States are not kept but written anew. What is linear in the inputs is computed for all steps at once.
"""

import ctypes
import math
from typing import Any

import torch
from torch import Tensor

from orthobench.cells.base import State
from orthobench.parametrizations.derivatives import first_only
from orthobench.scan.fused.elman import Gradients
from orthobench.scan.native.convolution import convolve
from orthobench.scan.native.library import Struct, long, pointer
from orthobench.scan.native.norm import gated_norm
from orthobench.scan.native.projection import own_projection

POINTERS = ("f", "q", "k", "v", "O", "dO", "dv", "M", "dM", "S0", "S", "dS", "df", "dq", "dk")


class MatrixRNN(Struct):
    """The struct of the same name in m2rnn.c."""

    _fields_ = (
        *((name, long) for name in ("T", "B", "H", "d", "e", "linear")),
        ("bound", ctypes.c_double),
        *((name, pointer) for name in POINTERS),
    )


def run(cell: Any, x: Tensor, state: State) -> tuple[Tensor, State]:
    """Run an `M2RNN` cell over x from `state`; see `reference.run`."""
    p = own_projection(cell, x, cell.U.dtype).transpose(0, 1)
    with torch.autocast(x.device.type, enabled=False):
        S0, *before = (part.expand(len(p), *part.shape[1:]) for part in state)
        f, q, k, v, g, before = cell.inputs(p, tuple(before), convolve)
        own = (part.contiguous() for part in (f, q, k, v, cell.W, S0))
        o, S = M2RNNScan.apply(*own, cell.activation == "identity", cell.bound or math.inf)
        return cell.read(o, v, g, gated_norm), (S, *before)


class M2RNNScan(torch.autograd.Function):
    """(f (B, T, H), q, k (B, T, d_k), v (B, T, H, d_v), W, S_0, linear, bound) -> (o (B, T, H, d_v), S_T)."""

    @staticmethod
    def forward(ctx: Any, f: Tensor, q: Tensor, k: Tensor, v: Tensor, W: Tensor, S0: Tensor, *how: Any) -> Any:
        O, S, ctx.how = torch.empty_like(v), torch.empty_like(S0), how
        _run("forward", (f, q, k, v, W, S0), how, O=O, S=S)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(f, q, k, v, W, S0)
        return O, S

    @staticmethod
    @first_only("use engine=reference")
    def backward(ctx: Any, dO: Tensor | None, dS: Tensor | None) -> Gradients:  # type: ignore[override]
        own = f, q, _, v, W, S0 = ctx.saved_tensors
        dO = torch.zeros_like(v) if dO is None else dO.contiguous()
        dS = torch.zeros_like(S0) if dS is None else dS.clone(memory_format=torch.contiguous_format)
        df, dv, dM = torch.empty_like(f), torch.empty_like(v), W.new_empty(len(S0), *W.shape)
        dq, dk = (q.new_empty(*f.shape, q.shape[-1]) for _ in range(2))
        _run("backward", own, ctx.how, dO=dO, dS=dS, df=df, dq=dq, dk=dk, dv=dv, dM=dM)
        return df, dq.sum(2), dk.sum(2), dv, dM.sum(0), dS, None, None


def _run(loop: str, own: tuple[Tensor, ...], how: tuple[bool, float], **tensors: Tensor) -> None:
    """Run a loop over all heads of all sequences.

    Raises:
        ValueError: inputs, matrices and states whose shapes do not fit, or that C would misread.
    """
    f, q, k, v, W, S0 = own
    (B, T, H), d, e = f.shape, q.shape[-1], v.shape[-1]
    wanted = ((B, T, d), (B, T, d), (B, T, H, e), (H, e, e), (B, H, d, e))
    shapes = tuple(tuple(part.shape) for part in own[1:])
    if shapes != wanted:
        raise ValueError(f"q, k, v, W and states of the shapes {shapes} do not fit the gate's {tuple(f.shape)}.")
    scan = MatrixRNN(T, B, H, d, e, int(how[0]), how[1])
    size = scan.scratch("m2rnn", loop, q.dtype)
    scan.run(f"m2rnn_{loop}", B * H, q, size, f=f, q=q, k=k, v=v, M=W, S0=S0, **tensors)
