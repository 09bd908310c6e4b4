"""Layers of rotations of pairs of coordinates: the tunable and the FFT form of the efficient unitary network (EUNN).

    W = D G_L ... G_2 G_1,   on a pair (a, b) of a layer:  [[cos t, -e^{i p} sin t], [sin t, e^{i p} cos t]]

Without phases p and the final diagonal D = diag(e^{i w}) the matrix is real. Layers of the tunable form pair
(0,1)(2,3)... and (1,2)(3,4)... in turn, and the second kind leaves the first and the last coordinate alone. Layer i of
the log2 n layers of the FFT form pairs k and k + n / 2^{i+1} inside blocks of n / 2^i.
Jing, Shen, Dubcek, Peurifoy, Skirlo, LeCun, Tegmark & Soljacic (2017), "Tunable Efficient Unitary Neural Networks
(EUNN) and their application to RNNs", section 4; the phase on the second column is the authors' code.
"""

from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from orthobench.common.schema import Count, NonNegativeFloat, resolve_count
from orthobench.errors import ConfigError
from orthobench.parametrizations.base import even
from orthobench.parametrizations.factored import Factored, Factors
from orthobench.parametrizations.initializers import Rng, uniform

STEPWISE_PER_LAYER = 64  # measured on one core: with four layers the dense product is as fast near n = 256
Style = Literal["tunable", "fft"]


class Givens(Factored):
    """Layers of rotations of pairs of coordinates, EUNN (Jing et al. 2017).

    There is one angle per pair and, with `complex`, one phase per pair and n phases of D.

    Args:
        n: size of the matrix, even; a power of two for the FFT form.
        rng: generator for the angles, then the phases.
        style: which pairs the layers rotate: neighbours (`tunable`), or those of a fast Fourier transform (`fft`).
        capacity: L, the number of layers of the tunable form, even: a count up to n, a share of n, or `max`; n layers
            reach every such matrix. Unused by the FFT form.
        complex: whether there are phases, which make the matrix complex.
        init_bound: angles and phases, in radians, start from U(-init_bound, init_bound).

    Raises:
        ConfigError: a size or a capacity that is not possible.
    """

    first: Tensor
    second: Tensor
    partners: Tensor

    def __init__(
        self,
        n: int,
        rng: Rng,
        style: Style = "tunable",
        capacity: Count = 4,
        complex: bool = False,
        init_bound: NonNegativeFloat = 3.14,
    ) -> None:
        if reason := self.valid_size(n):
            raise ConfigError(f"hidden_size={n} does not suit givens: {reason}")
        super().__init__(n)
        self.complex = complex
        layers = _fft_pairs(n) if style == "fft" else _tunable_pairs(n, capacity)
        self.L = len(layers)
        pairs = torch.tensor([(l * n + a, l * n + b) for l, layer in enumerate(layers) for a, b in layer])
        first, second = pairs.view(-1, 2).long().unbind(1)
        partners = torch.arange(n).repeat(self.L)
        partners[first], partners[second] = second % n, first % n
        self.register_buffer("first", first, persistent=False)
        self.register_buffer("second", second, persistent=False)
        self.register_buffer("partners", partners.view(self.L, n), persistent=False)
        self.theta = nn.Parameter(uniform(rng, (len(first),), init_bound))
        if complex:
            self.phi = nn.Parameter(uniform(rng, (len(first),), init_bound))
            self.omega = nn.Parameter(uniform(rng, (n,), init_bound))
        self.kept = self.L
        self.stepwise = n >= STEPWISE_PER_LAYER * self.L

    def factors(self) -> Factors:
        """The factors on a coordinate and on its partner in every layer, (L, n) each, and the final diagonal (n,)."""
        theta = self.theta.double()
        cosine, sine = theta.cos(), theta.sin()
        if not self.complex:
            return self._spread(cosine, cosine, 1.0), self._spread(-sine, sine, 0.0)
        phase, last = (torch.polar(torch.ones_like(w), w) for w in (self.phi.double(), self.omega.double()))
        return self._spread(cosine + 0 * phase, phase * cosine, 1.0), self._spread(-phase * sine, sine + 0j, 0.0), last

    def _spread(self, first: Tensor, second: Tensor, rest: float) -> Tensor:
        """A tensor (L, n) of the values of every pair's two coordinates, with `rest` where there is no partner."""
        values = first.new_full((self.L * self.n,), rest)
        return values.index_copy(0, self.first, first).index_copy(0, self.second, second).view(self.L, self.n)

    def multiply(self, h: Tensor, factors: Sequence[Tensor]) -> Tensor:
        own, other, *last = factors
        for c, s, partner in zip(own, other, self.partners, strict=True):
            h = h * c + h.index_select(-1, partner) * s
        return h * last[0] if last else h

    def multiply_adds(self) -> int:
        """See `Parametrization`: four for every pair.

        Of a complex pair these are real factors on complex numbers, half a complex multiply-add each; every phase, of a
        pair or of D, is one more.
        """
        pairs = len(self.theta)
        return min(3 * pairs + self.n if self.complex else 4 * pairs, self.n**2)

    @staticmethod
    def limits(n: int) -> dict[str, int]:
        return {"capacity": n}

    @staticmethod
    def valid_size(n: int) -> str | None:
        return even(n, "it must be even, because the coordinates rotate in pairs")

    @staticmethod
    def is_complex(given: dict[str, Any]) -> bool:
        return bool(given["complex"])


def _tunable_pairs(n: int, capacity: int | float | str) -> list[list[tuple[int, int]]]:
    L = resolve_count(capacity, n, "capacity")
    if L % 2:
        raise ConfigError(f"capacity={L} does not suit givens: layers come in two kinds, use {L - 1} or {L + 1}.")
    kinds = [[(a, a + 1) for a in range(start, n - 1, 2)] for start in (0, 1)]
    return [kinds[layer % 2] for layer in range(L)]


def _fft_pairs(n: int) -> list[list[tuple[int, int]]]:
    depth = n.bit_length() - 1
    if n != 1 << depth:
        raise ConfigError(
            f"hidden_size={n} does not suit givens with style=fft: it must be a power of two, use {1 << depth} or "
            f"{2 << depth}, or style=tunable."
        )
    layers = []
    for i in range(depth):
        block, half = n >> i, n >> (i + 1)
        layers.append([(start + k, start + k + half) for start in range(0, n, block) for k in range(half)])
    return layers
