"""Cells that the compiled loops know, and how what an engine returns is compared with the plain loop."""

import copy
from itertools import chain
from typing import Any

import pytest
import torch
from torch import Tensor

from orthobench.cells.attention import Attention
from orthobench.cells.base import Cell, State
from orthobench.cells.complex_elman import ComplexElman
from orthobench.cells.cornn import CoRNN
from orthobench.cells.deltaproduct import DeltaProduct
from orthobench.cells.elman import Elman
from orthobench.cells.gated_outer import GatedOuter
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
from orthobench.cells.pdssm import PDSSM
from orthobench.cells.rotation import Rotation
from orthobench.cells.rwkv7 import RWKV7
from orthobench.cells.scalar_gated import ScalarGated
from orthobench.cells.slstm import SLSTM
from orthobench.cells.unicornn import UnICORNN
from orthobench.parametrizations.free import Free
from orthobench.parametrizations.givens import Givens
from orthobench.parametrizations.plane_rotations import PlaneRotations
from orthobench.parametrizations.skew_symmetric import SkewSymmetric
from orthobench.parametrizations.stiefel import Stiefel
from orthobench.parametrizations.unitary_product import UnitaryProduct
from orthobench.scan import reference
from orthobench.scan.native import engine
from tests.making import draw, gradients, random_cell


def rotations(complex: bool = True, **options: Any) -> Any:
    """`Givens` with options, as a class to make parametrizations of."""

    def make(**kwargs: Any) -> Givens:
        return Givens(complex=complex, **options, **kwargs)

    return make


CASES = [
    pytest.param(LSTM, {}, id="lstm"),
    pytest.param(LSTM, {"double_bias": True, "trainable_h0": True}, id="lstm, two biases, trained start"),
    pytest.param(SLSTM, {"heads": 1}, id="slstm, one head"),
    pytest.param(SLSTM, {"heads": 4}, id="slstm"),
    pytest.param(LEM, {"dt": 0.7}, id="lem"),
    pytest.param(CoRNN, {"dt": 0.3, "epsilon": 0.5}, id="cornn"),
    pytest.param(UnICORNN, {"dt": 0.3, "alpha": 0.8}, id="unicornn"),
    pytest.param(ComplexElman, {"recurrent": Stiefel}, id="unitary"),
    pytest.param(ComplexElman, {"modrelu": "eunn"}, id="complex, real matrix"),
    pytest.param(ComplexElman, {"modrelu": "eunn", "recurrent": rotations(capacity=2)}, id="rotations"),
    pytest.param(ComplexElman, {"recurrent": rotations(capacity="max")}, id="as many layers as units"),
    pytest.param(ComplexElman, {"recurrent": rotations(style="fft")}, id="fft rotations"),
    pytest.param(ComplexElman, {"recurrent": rotations(capacity=2, complex=False)}, id="real rotations"),
    pytest.param(ComplexElman, {"recurrent": UnitaryProduct}, id="fourier"),
    pytest.param(Elman, {"activation": "relu", "recurrent": PlaneRotations}, id="plane rotations"),
    pytest.param(Elman, {"activation": "modrelu", "recurrent": PlaneRotations}, id="plane rotations, modrelu"),
    pytest.param(ScalarGated, {"recurrent": PlaneRotations}, id="plane rotations, gates"),
    pytest.param(Lipschitz, {"eps": 0.3, "recurrent": SkewSymmetric}, id="lipschitz"),
    pytest.param(Lipschitz, {"eps": 0.3, "linear": False}, id="nonlinear flow"),
    pytest.param(LRU, {}, id="lru"),
    pytest.param(MinGRU, {}, id="mingru"),
    pytest.param(MinGRU, {"candidate": "identity"}, id="mingru, identity"),
    pytest.param(MinLSTM, {}, id="minlstm"),
    pytest.param(MinLSTM, {"candidate": "identity"}, id="minlstm, identity"),
    pytest.param(Rotation, {}, id="rotation"),
    pytest.param(Rotation, {"unitary": True}, id="unitary rotation"),
    pytest.param(DeltaProduct, {"heads": 1, "negative": False}, id="deltanet"),
    pytest.param(DeltaProduct, {"heads": 2, "products": 3, "gated": True}, id="deltaproduct, gated"),
    pytest.param(DeltaProduct, {"heads": 1, "products": 2, "convolution": None}, id="deltaproduct, no convolution"),
    pytest.param(DeltaProduct, {"heads": 4, "convolution": 2, "gated": True}, id="deltanet, short convolution"),
    pytest.param(MLSTM, {"heads": 1}, id="mlstm, one head"),
    pytest.param(MLSTM, {"heads": 2}, id="mlstm"),
    pytest.param(MLSTM, {"heads": 2, "convolution": None}, id="mlstm, no convolution"),
    pytest.param(MLSTM, {"heads": 4, "convolution": 2}, id="mlstm, short convolution"),
    pytest.param(MLSTM, {"heads": 2, "gate_inputs": "qkv", "key_width": 3}, id="mlstm, other keys"),
    pytest.param(MLSTM, {"heads": 2, "read": "orthogonal", "key_width": 3}, id="mlstm, orthogonal reads"),
    pytest.param(MLSTM, {"heads": 1, "read": "orthogonal", "convolution": None}, id="mlstm, orthogonal, one head"),
    pytest.param(MLSTM, {"heads": 2, "read": "orthogonal", "key_width": 5}, id="mlstm, orthogonal, more keys"),
    pytest.param(SLSTM, {"heads": 2, "convolution": 3}, id="slstm, convolution"),
    pytest.param(GatedOuter, {"heads": 2, "key_width": 5, "value_width": 19}, id="gated deltanet"),
    pytest.param(GatedOuter, {"heads": 1, "decay": "sigmoid", "rule": "add", "convolution": None}, id="gla"),
    pytest.param(GatedOuter, {"heads": 2, "key_width": 5, "value_width": 19, "decay": "vector"}, id="kda"),
    pytest.param(GatedOuter, {"heads": 1, "decay": "vector", "rule": "split"}, id="gated deltanet 2"),
    pytest.param(GatedOuter, {"heads": 2, "key_width": 5, "value_width": 19, "rule": "add"}, id="one decay, added"),
    pytest.param(Mamba2, {"heads": 2, "key_width": 3}, id="mamba2"),
    pytest.param(Mamba3, {"heads": 2, "key_width": 5}, id="mamba3"),
    pytest.param(Mamba3, {"heads": 1, "key_width": 18, "value_width": 3, "pairs": 9}, id="mamba3, all turn"),
    pytest.param(Mamba3, {"heads": 2, "key_width": 4, "rank": 2}, id="mamba3, rank 2"),
    pytest.param(M2RNN, {"heads": 2, "key_width": 3}, id="m2rnn"),
    pytest.param(M2RNN, {"heads": 1, "convolution": None, "activation": "identity"}, id="m2rnn, linear"),
    pytest.param(M2RNN, {"heads": 2, "state_gradient_clip": 0.05}, id="m2rnn, clipped"),
    pytest.param(PDSSM, {"dictionary": 3}, id="pdssm"),
    pytest.param(PDSSM, {"dictionary": 2, "selection": "rows"}, id="pdssm, rows"),
    pytest.param(Attention, {"heads": 2, "window": 3}, id="attention"),
    pytest.param(RWKV7, {"heads": 2, "rank": 2}, id="rwkv7"),
    pytest.param(RWKV7, {"heads": 1, "rank": 1, "negative": True}, id="rwkv7, negative"),
]
every_case = pytest.mark.parametrize(("cls", "options"), CASES)
JUMPING = ("m2rnn, clipped", "pdssm", "pdssm, rows")  # where a choice jumps, or the gradient is another on purpose
every_smooth_case = pytest.mark.parametrize(("cls", "options"), [case for case in CASES if case.id not in JUMPING])


def make(cls: type, n: int = 8, **options: Any) -> Cell:
    """A random cell in float64 whose recurrent matrices are as they start, or small."""
    cell = random_cell(cls, hidden_size=n, **options)
    with torch.no_grad():
        for parametrization in cell.recurrent.values():
            if isinstance(parametrization, Free):
                parametrization.weight.mul_(n**-0.5)
            elif isinstance(parametrization, Stiefel):
                parametrization.after_step()
    return cell


def start(cell: Cell, B: int, seed: int = 1) -> State:
    """A random state of the cell's type; an sLSTM divides by its third part, a sum of exponentials."""
    like = cell.initial_state(1)
    drawn = [noise(s.expand(B, *s.shape[1:]), seed + i) for i, s in enumerate(like)]
    if isinstance(cell, SLSTM):
        drawn[2] = 0.5 + drawn[2].abs()
    return tuple(drawn)


def noise(like: Tensor, seed: int) -> Tensor:
    """Normal draws of the shape and type of `like`."""
    real = draw(*like.shape, seed=seed)
    return (torch.complex(real, draw(*like.shape, seed=seed + 50)) if like.is_complex() else real).to(like)


def results(run: Any, cell: Cell, x: Tensor, state: State) -> tuple[list[Tensor], list[Tensor]]:
    """Hidden and final states; gradients of the parameters, the input and the initial state."""
    cell.zero_grad()
    x = x.clone().requires_grad_() if x.is_floating_point() else x
    state = tuple(s.detach().clone().requires_grad_() for s in state)
    h_BTN, final = run(cell, x, state)
    outputs = [h_BTN, *final]
    torch.autograd.backward(outputs, [noise(out, 20 + i) for i, out in enumerate(outputs)])
    found = [*gradients(cell), x.grad, *(s.grad for s in state)]
    return [out.detach() for out in outputs], [torch.zeros(()) if g is None else g.clone() for g in found]


def assert_equal(cell: Cell, x: Tensor, state: State, run: Any = engine.run) -> None:
    """Outputs to 1e-12, gradients to 1e-10 of the largest entry: sums are taken in another order."""
    own, oracle = results(run, cell, x, state), results(reference.run, cell, x, state)
    for tolerance, found, expected in zip((1e-12, 1e-10), own, oracle, strict=True):
        for a, b in zip(found, expected, strict=True):
            largest = float(b.abs().max()) if b.numel() else 0.0
            torch.testing.assert_close(a, b.expand_as(a), rtol=0, atol=tolerance * (1 + largest))


def assert_as_near_as_the_loop(cell: Cell, x: Tensor, state: State, run: Any = engine.run, times: float = 4) -> None:
    """In float32 within so many times the loop's distance from float64: sums over k in order round more than others."""
    exact = results(reference.run, cell, x, state)
    single = copy.deepcopy(cell).float()
    near = tuple(s.to(torch.complex64 if s.is_complex() else torch.float32) for s in state)

    def error(run: Any) -> float:
        pairs = zip(chain(*results(run, single, x.float(), near)), chain(*exact), strict=True)
        return sum(float((g - e).norm() / (1e-9 + e.norm())) for g, e in pairs)

    assert error(run) <= times * error(reference.run)
