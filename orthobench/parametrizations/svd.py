"""Singular value decomposition with the singular values in a band.

    W = U diag(sigma) V^T,   sigma_i = 2 r (sigmoid(s_i) - 1/2) + sigma_star,

with U and V products of m1 and m2 Householder reflectors (householder.py). The s_i start at zero, where
d sigma / d s = r / 2: with Adam a small margin nearly freezes the spectrum, unless its learning rate is scaled, for
instance by 1 / (2 r).
Zhang, Lei & Dhillon (2018), "Stabilizing Gradients for Deep Neural Networks via Efficient SVD Parameterization",
section 3.
"""

import math

import torch
from torch import Tensor, nn

from orthobench.common.schema import Count, NonNegativeFloat, PositiveFloat, resolve_count
from orthobench.errors import ConfigError
from orthobench.parametrizations.base import Parametrization
from orthobench.parametrizations.compact_wy import left_factor
from orthobench.parametrizations.initializers import Rng
from orthobench.parametrizations.reflectors import ReflectorInit, Reflectors


class SVD(Parametrization):
    """Singular value decomposition with the singular values in a band (Zhang et al. 2018, section 3).

    There are nm - m(m-1)/2 free numbers for the reflectors of each of U and V, and n for the spectrum.

    Args:
        n: size of the matrix, or its (rows, columns); see `RectangularSVD`.
        rng: generator for the initial vectors.
        m1: number of reflectors of U: a count, a share of n, or `max`. A quarter is the default of the authors' code.
        m2: number of reflectors of V, likewise.
        r: margin; every singular value stays between sigma_star - r and sigma_star + r. The default is that of the
            authors' code.
        sigma_star: middle of the band; 1 in a recurrence, 0 in a residual branch.
        sigma_lr_scale: factor on the learning rate of s.
        reflector_init: `glorot` draws U(-b, b), b = sqrt(6 / (m + n)), and keeps the norms; `normal` draws N(0, 0.01^2)
            and normalises.
        renormalize: whether every reflector's vector is divided by its norm after a step.
        identity_start: V starts with the vectors of U, so that W = sigma_star I.

    Raises:
        ConfigError: an identity start with m1 and m2, or rows and columns, that differ.
    """

    in_onnx = False

    def __init__(
        self,
        n: int | tuple[int, int],
        rng: Rng,
        m1: Count = 0.25,
        m2: Count = 0.25,
        r: PositiveFloat = 0.01,
        sigma_star: NonNegativeFloat = 1.0,
        sigma_lr_scale: PositiveFloat = 1.0,
        reflector_init: ReflectorInit = "glorot",
        renormalize: bool = True,
        identity_start: bool = False,
    ) -> None:
        rows, columns = n if isinstance(n, tuple) else (n, n)
        smaller = min(rows, columns)
        super().__init__(smaller)
        self.rows, self.columns = rows, columns
        self.m1, self.m2 = resolve_count(m1, smaller, "m1"), resolve_count(m2, smaller, "m2")
        edge = max(abs((sigma_star + sign * r) ** 2 - 1) for sign in (-1, 1))
        self.tolerance = self.tolerance + edge * math.sqrt(smaller)  # the band itself allows this much
        self.r, self.sigma_star, self.sigma_lr_scale, self.renormalize = r, sigma_star, sigma_lr_scale, renormalize
        self.U = Reflectors(rows, self.m1, rng, reflector_init)
        self.V = Reflectors(columns, self.m2, rng, reflector_init)
        self.s = nn.Parameter(torch.zeros(smaller))
        if identity_start:
            self._start_from_identity()

    def sigma(self) -> Tensor:
        """The diagonal of the middle factor in float64, (min(rows, columns),)."""
        return 2 * self.r * (torch.sigmoid(self.s.double()) - 0.5) + self.sigma_star

    def forward(self) -> Tensor:
        s, P, Q = self.low_rank()
        return torch.addmm(self._padded(torch.diag(s), self.columns, self.rows), P, Q.T, alpha=-1).to(self.s.dtype)

    def low_rank(self) -> tuple[Tensor, Tensor, Tensor]:
        """Tensors s (n,), P (rows, m1 + m2) and Q (columns, m1 + m2) in float64 with W = diag(s) - P Q^T exactly."""
        s, A_u, A_v = self.sigma(), self.U(), self.V()
        L_u, L_v = left_factor(A_u), left_factor(A_v)
        left = self._padded(s[:, None] * A_u[: self.n], 0, self.columns)  # the middle factor transposed, times A_u
        right = self._padded(s[:, None] * A_v[: self.n], 0, self.rows)
        return s, torch.cat([L_u, right - L_u @ (A_u.T @ right)], dim=1), torch.cat([left, L_v], dim=1)

    def _padded(self, X: Tensor, columns: int, rows: int) -> Tensor:
        """X padded with zeros on the right to `columns` and below to `rows`; zero leaves a size as it is."""
        return nn.functional.pad(X, (0, max(columns - self.n, 0), 0, rows - self.n))

    def contains(self, W: Tensor, tolerance: float) -> bool:
        """Return True if every singular value of W is within the band, up to the tolerance."""
        values = torch.linalg.svdvals(W.detach().double())
        low, high = self.sigma_star - self.r - tolerance, self.sigma_star + self.r + tolerance
        return bool((values >= low).all() and (values <= high).all())

    def multiply_adds(self) -> int:
        """See `Parametrization`: two for every number of a reflector, and one for every singular value."""
        structured = 2 * (self.U.theta.numel() + self.V.theta.numel()) + self.n
        return min(structured, self.rows * self.columns)

    def after_step(self) -> None:
        if self.renormalize:
            self.U.renormalize()
            self.V.renormalize()

    def learning_rate_scales(self) -> dict[str, float]:
        return {"s": self.sigma_lr_scale}

    @staticmethod
    def limits(n: int) -> dict[str, int]:
        return {"m1": n, "m2": n}

    def _start_from_identity(self) -> None:
        if self.rows != self.columns or self.m1 != self.m2:
            raise ConfigError(
                f"identity_start=True needs a square matrix and m1 = m2, but it is {self.rows} x {self.columns} with "
                f"m1={self.m1} and m2={self.m2}: make them equal or leave it out."
            )
        self.V.load_state_dict(self.U.state_dict())
