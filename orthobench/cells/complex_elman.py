"""Elman recurrence with a complex state, for unitary matrices.

    z_t = V x_t + W h_{t-1},   h_t = z_t max(|z_t| + s + b, 0) / (|z_t| + e)

V and W are complex, the input is real, b is a real vector; the factor is modReLU, which keeps a phase and moves a
modulus. `modrelu=urnn` has s = 0, e = 1e-5 (Arjovsky, Shah & Bengio 2016, eq. 8, and their code; Wisdom et al. 2016),
`modrelu=eunn` s = e = 0.01 (Jing et al. 2017, their code). Complex numbers are stored as pairs of real parameters, so
that every optimizer treats the two parts as two numbers, as in the authors' code.
"""

from collections.abc import Sequence
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from orthobench.cells.base import Cell, Matrices, State
from orthobench.cells.initial import MakeRecurrent
from orthobench.cells.pairs import parts
from orthobench.common.schema import NonNegativeFloat
from orthobench.parametrizations.factored import Factored
from orthobench.parametrizations.initializers import Rng, uniform, weight
from orthobench.parametrizations.traced import in_full_precision

ModReLU = Literal["urnn", "eunn"]
OFFSETS: dict[str, tuple[float, float]] = {"urnn": (0.0, 1e-5), "eunn": (0.01, 0.01)}


class ComplexElman(Cell):
    """Elman cell with a complex matrix and modReLU (Arjovsky et al. 2016; Wisdom et al. 2016; Jing et al. 2017).

    The matrix may be a real one, too. The state is h (N,), complex.

    Args:
        input_size: I, the width of an input.
        hidden_size: N, the number of complex units.
        rng: generator for the initial values.
        make_recurrent: see `Cell`.
        input_init: scheme of V as a real (2N, I) matrix, real parts first, or a bound for U(-bound, bound).
        modrelu: offsets of modReLU: `urnn` has s = 0 and e = 1e-5, `eunn` s = e = 0.01.
        modrelu_bias: the bound of U(-bound, bound) that b starts from.
        features: what a readout and the next layer see: `both` for [Re h, Im h], 2N numbers, or `real` for Re h alone.
        trainable_h0: whether the initial state is learnt; both parts from U(-c, c), c = sqrt(3 / 2N), at the start.
    """

    complex_state: ClassVar[bool] = True

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        rng: Rng,
        make_recurrent: MakeRecurrent,
        input_init: str | float = "glorot",
        modrelu: ModReLU = "urnn",
        modrelu_bias: NonNegativeFloat = 0.01,
        features: Literal["both", "real"] = "both",
        trainable_h0: bool = True,
    ) -> None:
        super().__init__(input_size, hidden_size, rng, make_recurrent, input_init, modrelu_bias=modrelu_bias)
        N = hidden_size
        self.modrelu: ModReLU = modrelu
        self.inside = self.gates
        self.U = nn.Parameter(weight(input_init, rng, (2 * N, input_size), units=N))
        self.b = nn.ParameterDict({"h": nn.Parameter(self.initial.bias(inside=True))})
        self.b_hidden = nn.ParameterDict()
        self.recurrent = nn.ModuleDict({"h": make_recurrent(constrained=True, gates=1, input_size=0)})
        if trainable_h0:
            self.h0 = nn.Parameter(uniform(rng, (2, N), (3 / (2 * N)) ** 0.5))
        self.feature_size = 2 * N if features == "both" else N

    @property
    def stepwise(self) -> bool:
        """Return True if W is applied factor by factor at every step; not on a GPU, where starting many kernels is
        slow.
        """
        W = self.recurrent["h"]
        return isinstance(W, Factored) and W.stepwise and self.U.device.type == "cpu"

    def matrices(self) -> Matrices:
        """W (N, N), or its factors where `stepwise` says that W is applied factor by factor."""
        W, dtype = self.recurrent["h"], self.U.dtype.to_complex()
        with in_full_precision(self.U.device.type):
            if self.stepwise:
                assert isinstance(W, Factored)
                return tuple(factor.to(dtype) for factor in W.factors())
            return (W().to(dtype),)

    def project(self, x: Tensor) -> Tensor:
        """V x for all time steps, complex (T, B, N)."""
        p_TBM = super().project(x).to(self.U.dtype)  # autocast rounds it to a type that has no complex one
        return torch.complex(*p_TBM.chunk(2, dim=-1))

    def initial_state(self, batch_size: int) -> State:
        if self.h0 is not None:
            return (torch.complex(*self.h0).expand(batch_size, -1),)
        return super().initial_state(batch_size)

    def step(self, p_t: Tensor, state: State, W: Matrices) -> State:
        z = p_t + self._recall(state[0], W)
        shift, epsilon = OFFSETS[self.modrelu]
        modulus = z.abs()
        return (z * (F.relu(modulus + (self.b["h"] + shift)) / (modulus + epsilon)),)

    def _recall(self, h: Tensor, W: Sequence[Tensor]) -> Tensor:
        recurrent = self.recurrent["h"]
        return recurrent.multiply(h, W) if self.stepwise and isinstance(recurrent, Factored) else h @ W[0].T

    @property
    def values_per_step(self) -> int:
        """See `Cell`: a complex unit counts as three, as measured, plus what autograd saves of the factors."""
        W = self.recurrent["h"]
        kept = W.kept if self.stepwise and isinstance(W, Factored) else 0
        return (3 + kept) * self.hidden_size

    def features(self, h: Tensor) -> Tensor:
        return parts(h, imaginary=self.feature_size > self.hidden_size)

    def remark(self) -> str | None:
        n = self.hidden_size
        return f"W is applied factor by factor, cheaper than a dense {n} x {n} matrix" if self.stepwise else None
