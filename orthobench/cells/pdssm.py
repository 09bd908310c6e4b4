"""PD-SSM: complex units that the input moves to other places, and turns and damps.

    h_t = P_t (D_t h_{t-1}) + B x_t

P is one-hot in every column: what unit j holds goes to unit argmax_i M_ij, where M = sum_k softmax(W x)_k M_k is mixed
from a dictionary of matrices. D = s exp(2 pi i f), with s = sigmoid(G_s(x)) and f = sigmoid(G_f(x)) of a network with
one hidden layer of 2 N GELUs each. So any automaton of N states fits one layer. The gradient of P is that of the
softmax of M's columns. Both parts of h are read.
Terzic, Menet, Hersche, Hofmann & Rahimi (2025), "Structured Sparse Transition Matrices to Enable State Tracking in
State-Space Models"; h_0 = e_1 and the starts as in the authors' code for state tracking. There argmax is over rows,
which runs the word of a group backwards: `selection=rows`.
"""

import math
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from orthobench.cells.base import Cell, Matrices, State
from orthobench.cells.convolution import vectors
from orthobench.cells.initial import MakeRecurrent
from orthobench.cells.pairs import times
from orthobench.common.schema import Positive
from orthobench.parametrizations.initializers import Rng, normal, uniform


class PDSSM(Cell):
    """Complex units that the input moves to other places, turns and damps (Terzic et al. 2025).

    The state is h (N,), complex.

    Args:
        input_size: I, the width of an input.
        hidden_size: N, the number of complex units.
        rng: generator for the initial values.
        make_recurrent: unused, as the transition is made of the dictionary.
        dictionary: how many matrices M_k there are.
        selection: whether P has its ones by columns, as in the paper, or by rows, as in the authors' code in PyTorch.
        first: the state before the first step, e_1 or zero.
    """

    gates: tuple[str, ...] = ("M", "s", "f", "B")
    matrix_names: tuple[str, ...] | None = ()
    complex_state: ClassVar[bool] = True

    def __init__(
        self,
        input_size: int,
        hidden_size: Positive,
        rng: Rng,
        make_recurrent: MakeRecurrent,
        dictionary: Positive = 8,
        selection: Literal["columns", "rows"] = "columns",
        first: Literal["unit", "zero"] = "unit",
    ) -> None:
        super().__init__(input_size, hidden_size, rng, make_recurrent)
        I, N = input_size, hidden_size
        self.feature_size, self.selection, self.first = 2 * N, selection, first
        self.b, self.b_hidden = nn.ParameterDict(), nn.ParameterDict()
        self.recurrent, self.clips = nn.ModuleDict(), nn.ModuleDict()
        self.sizes = (dictionary, 2 * N, 2 * N, 2 * N)
        maps = [uniform(rng, (rows, I), I**-0.5) for rows in self.sizes[:3]]
        self.U = nn.Parameter(torch.cat([*maps, normal(rng, (2 * N, I), (2 * N) ** -0.5)]))
        self.c = nn.Parameter(uniform(rng, (4 * N,), I**-0.5))
        self.M = nn.Parameter(normal(rng, (dictionary, N, N), N**-0.5))
        self.G = nn.Parameter(uniform(rng, (2, N, 2 * N), (2 * N) ** -0.5))
        self.g = nn.Parameter(uniform(rng, (2 * N,), (2 * N) ** -0.5))

    def initial_state(self, batch_size: int) -> State:
        return self.begun(*super().initial_state(batch_size))

    def begun(self, h: Tensor) -> State:
        """Zeros (B, N) with a one where e_1 has it."""
        return (torch.cat([torch.ones_like(h[:, :1]), h[:, 1:]], dim=1),) if self.first == "unit" else (h,)

    def project(self, x: Tensor) -> Tensor:
        """The shares of the dictionary, the two parts of D and of B x, (T, B, K + 4 N)."""
        z, s, f, Bx = F.linear(vectors(x, self.U), self.U).split(self.sizes, dim=-1)
        hidden = F.gelu(torch.stack([s, f], dim=-2) + self.c.unflatten(0, (2, -1)))
        s, f = torch.sigmoid(torch.einsum("...gh,gnh->...gn", hidden, self.G) + self.g.unflatten(0, (2, -1))).unbind(-2)
        turn = 2 * math.pi * f
        return torch.cat([torch.softmax(z, dim=-1), s * turn.cos(), s * turn.sin(), Bx], dim=-1)

    def step(self, p_t: Tensor, state: State, W: Matrices) -> State:
        return (torch.view_as_complex(self.moved(p_t, torch.view_as_real(state[0]))),)

    def moved(self, p_t: Tensor, h: Tensor) -> Tensor:
        """Move states by one step; their two parts are side by side, (B, N, 2)."""
        N = self.hidden_size
        shares, re, im, Bx = p_t.split([self.sizes[0], N, N, 2 * N], dim=-1)
        P = self.transition(shares)
        h = times(P @ h if self.selection == "rows" else h, re, im)
        return (h if self.selection == "rows" else P @ h) + torch.stack(Bx.chunk(2, dim=-1), dim=-1)

    def transition(self, shares: Tensor) -> Tensor:
        """P (B, N, N) by the shares of the dictionary (B, K): one-hot forward, with the gradient of a softmax."""
        soft, chosen = self.softened(shares)
        places = torch.arange(self.hidden_size, device=soft.device)
        ones = chosen[:, None] == places[:, None] if self.selection == "columns" else chosen[..., None] == places
        return ones.to(soft.dtype) + (soft - soft.detach())

    def softened(self, shares: Tensor) -> tuple[Tensor, Tensor]:
        """The softmax of M (B, N, N), and where it is largest in every column, or row, (B, N)."""
        along, M = -2 if self.selection == "columns" else -1, torch.einsum("bk,kij->bij", shares, self.M)
        return M.softmax(along), M.argmax(along)

    def features(self, h: Tensor) -> Tensor:
        return torch.view_as_real(h).flatten(-2)

    @property
    def values_per_step(self) -> int:
        return 3 * self.hidden_size**2 + 12 * self.hidden_size
