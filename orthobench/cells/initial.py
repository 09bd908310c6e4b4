"""Initial values of a cell's parameters."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from orthobench.parametrizations import initializers
from orthobench.parametrizations.base import Parametrization
from orthobench.parametrizations.free import Free
from orthobench.parametrizations.initializers import Rng, uniform, weight

MakeRecurrent = Callable[..., Parametrization]
Kernel = Literal["joint", "grouped", "apart"]


@dataclass(frozen=True)
class Initial:
    """Draws the initial values of one cell, in the order of the calls; the arguments are those of `Cell`."""

    hidden_size: int
    rng: Rng
    make_recurrent: MakeRecurrent
    input_init: str | float = "glorot"
    bias_init: Literal["zeros", "torch", "linear"] | float = "zeros"
    modrelu_bias: float = 0.0
    double_bias: bool = False
    kernel: Kernel = "joint"
    fused_orthogonal: bool = False

    def input_weight(self, shape: tuple[int, int], fan_in: int, fan_out: int, scheme: str | float | None) -> Tensor:
        """A gate's input weights (N, I), by `input_init` where no scheme is given."""
        scheme = self.input_init if scheme is None else scheme
        return weight(scheme, self.rng, shape, fan_in, fan_out, units=self.hidden_size)

    def bias(self, inside: bool, fan_in: int | None = None) -> Tensor:
        """A gate's bias (N,), modReLU's where it acts inside; the scheme `linear` needs `fan_in`."""
        N = self.hidden_size
        if inside:
            return uniform(self.rng, (N,), self.modrelu_bias) if self.modrelu_bias else torch.zeros(N)
        if self.bias_init == "torch":
            return uniform(self.rng, (N,), N**-0.5)
        if self.bias_init == "linear":
            return uniform(self.rng, (N,), (fan_in or N) ** -0.5)
        return torch.full((N,), 0.0 if self.bias_init == "zeros" else float(self.bias_init))

    def fans(
        self, gate: str, gates: tuple[str, ...], orthogonal: tuple[str, ...], kernels: tuple[tuple[str, ...], ...]
    ) -> tuple[int, int, bool]:
        """Gates in the matrix of U, gates in the matrix of W, and whether the two are one matrix; see `Cell.kernel`."""
        G = len(gates)
        if self.kernel == "joint":
            return G, G, G > 1
        if self.kernel == "apart":
            return G, sum(other not in orthogonal for other in gates) or 1, False
        if gate in orthogonal:
            return 1, 1, False
        kernel = next((kernel for kernel in kernels if gate in kernel), gates)
        shared = sum(other in gates and other not in orthogonal for other in kernel)
        return shared, shared, True

    def orthogonal_columns(self, matrices: Iterable[object]) -> None:
        """Draw the free matrices again so that, stacked, they have orthonormal columns."""
        free = [p for p in matrices if isinstance(p, Free)]
        if free:
            stacked = initializers.orthogonal(self.rng, (len(free) * self.hidden_size, self.hidden_size))
            for p, block in zip(free, stacked.chunk(len(free)), strict=True):
                p.weight.data.copy_(block)
