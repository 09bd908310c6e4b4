"""A trained network as it is exported: recurrent matrices as constants, complex states as pairs of real numbers."""

import copy
from typing import Any

import torch
from torch import Tensor, nn

from orthobench.cells.base import Cell, Matrices, State
from orthobench.cells.complex_elman import OFFSETS, ComplexElman
from orthobench.models.base import Network
from orthobench.parametrizations.base import Parametrization


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


def frozen(model: Network) -> Network:
    """A copy of the network that computes the same outputs, in evaluation mode, without what training needs."""
    found: Any = copy.deepcopy(model).eval()
    for i, cell in enumerate(found.cells):
        if isinstance(cell, ComplexElman):
            found.cells[i] = RealPair(cell)
        else:
            for name, parametrization in cell.recurrent.items():
                cell.recurrent[name] = Frozen(parametrization())
    for name, parametrization in getattr(found, "matrices", nn.ModuleList()).named_children():
        found.matrices[int(name)] = Frozen(parametrization())
    return found.requires_grad_(False)
