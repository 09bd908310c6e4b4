"""A trained network as it is exported: recurrent matrices as constants, complex states as pairs of real numbers."""

import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from orthobench.cells.base import Cell, Matrices, State
from orthobench.cells.complex_elman import OFFSETS, ComplexElman
from orthobench.cells.lru import LRU
from orthobench.cells.pairs import times
from orthobench.cells.pdssm import PDSSM
from orthobench.cells.rotation import Rotation
from orthobench.errors import ConfigError
from orthobench.models.base import Network
from orthobench.parametrizations.base import Parametrization
from orthobench.scan.families import lookup


class Frozen(Parametrization):
    """A matrix (n, n) that does not train."""

    constrained = False
    W: Tensor

    def __init__(self, W: Tensor) -> None:
        super().__init__(W.shape[-1])
        self.register_buffer("W", W.detach().clone())

    def forward(self) -> Tensor:
        return self.W


class RealPair(Cell):
    """`ComplexElman` with the state [Re h, Im h], (B, 2N), and the matrix [[Re W, -Im W], [Im W, Re W]]."""

    inside = ("h",)

    def __init__(self, cell: ComplexElman) -> None:
        nn.Module.__init__(self)
        self.input_size, self.hidden_size, self.feature_size = cell.input_size, 2 * cell.hidden_size, cell.feature_size
        self.shift, self.epsilon = OFFSETS[cell.modrelu]
        self.recurrent_gradient_clip = None
        self.U, self.h0 = cell.U, None
        self.b = nn.ParameterDict({"h": cell.b["h"]})
        self.b_hidden = nn.ParameterDict()
        if cell.h0 is not None:
            self.h0 = nn.Parameter(cell.h0.detach().reshape(1, -1))
        W = cell.recurrent["h"]().detach()
        re, im = (W.real, W.imag) if W.is_complex() else (W, torch.zeros_like(W))
        pair = torch.cat([torch.cat([re, -im], dim=1), torch.cat([im, re], dim=1)])
        self.recurrent = nn.ModuleDict({"h": Frozen(pair.to(self.U.dtype))})

    def step(self, p_t: Tensor, state: State, W: Matrices) -> State:
        z = p_t + state[0] @ W[0].T
        re, im = z.chunk(2, dim=-1)
        modulus = (re.square() + im.square()).sqrt()
        factor = torch.relu(modulus + self.b["h"] + self.shift) / (modulus + self.epsilon)
        return (z * torch.cat([factor, factor], dim=-1),)

    def features(self, h: Tensor) -> Tensor:
        return h[..., : self.feature_size]


class RealUnits(Cell):
    """A complex cell with real states (B, 2N), both parts of a unit side by side; a subclass has the step."""

    def __init__(self, cell: Any) -> None:
        nn.Module.__init__(self)
        self.cell, self.U, self.h0 = cell, cell.U, None
        self.input_size, self.hidden_size, self.feature_size = cell.input_size, 2 * cell.hidden_size, cell.feature_size
        self.returns_output = cell.returns_output

    def matrices(self) -> Matrices:
        return self.cell.matrices()

    def project(self, x: Tensor) -> Tensor:
        return self.cell.project(x)


class RealDiagonal(RealUnits):
    """`LRU` or `Rotation`."""

    def step(self, p_t: Tensor, state: State, W: Matrices) -> Any:
        cell, N = self.cell, self.hidden_size // 2
        if isinstance(cell, Rotation):
            drive, phi, *a = p_t.split([2 * N, *(N for _ in cell.gates[2:])], dim=-1)
            modulus = torch.exp(-F.softplus(a[0])) if a else 1.0
            re, im = modulus * phi.cos(), modulus * phi.sin()
        else:
            (re, im), drive = W, p_t[..., : 2 * N]
        h = times(state[0].unflatten(-1, (N, 2)), re, im).flatten(-2) + drive
        return (self.cell.read(h, p_t, W), (h,)) if self.returns_output else (h,)


class RealMoves(RealUnits):
    """`PDSSM`."""

    def initial_state(self, batch_size: int) -> State:
        return self.cell.begun(*super().initial_state(batch_size))

    def step(self, p_t: Tensor, state: State, W: Matrices) -> State:
        return (self.cell.moved(p_t, state[0].unflatten(-1, (-1, 2))).flatten(-2),)


REAL: dict[type, Any] = {ComplexElman: RealPair, LRU: RealDiagonal, Rotation: RealDiagonal, PDSSM: RealMoves}


def frozen_cell(cell: Any) -> Any:
    """A cell as it is exported, itself where only its matrices are replaced.

    Raises:
        ConfigError: it has a complex state, and no real form is known of it.
    """
    if cell.complex_state:
        real = lookup(cell, REAL, asked=())
        if real is None:
            name = type(cell).__name__
            raise ConfigError(
                f"{name} has a complex state, of which no real form is known, and onnx and pt2 need one: keep its "
                "weights alone (--format torch, or state_dict())."
            )
        return real(cell)
    for name, parametrization in cell.recurrent.items():
        cell.recurrent[name] = Frozen(parametrization())
    return cell


def frozen(model: Network) -> Network:
    """A copy of the network that computes the same outputs, in evaluation mode, without what training needs."""
    found: Any = copy.deepcopy(model).eval()
    for i, cell in enumerate(found.cells):
        found.cells[i] = frozen_cell(cell)
    for name, parametrization in getattr(found, "matrices", nn.ModuleList()).named_children():
        found.matrices[int(name)] = Frozen(parametrization())
    return found.requires_grad_(False)
