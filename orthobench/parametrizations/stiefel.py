"""The full-capacity unitary matrix: gradient descent on the unitary group by Cayley steps.

    W <- (I + l/2 A)^{-1} (I - l/2 A) W,   A = G W^H - W G^H,   G = dL/dW,   l the learning rate

Here W = C(S) W_0 with C(S) = (I - S/2)^{-1} (I + S/2) and a skew-Hermitian S of n^2 free numbers. After every step the
base point W_0 moves to W and S returns to zero, so that plain gradient descent on S with the rate l is the step above:
the coordinates of S are orthonormal (up to a common factor), and S = -l A after it.
Wisdom, Powers, Hershey, Le Roux & Atlas (2016), "Full-Capacity Unitary Recurrent Neural Networks", section 4;
Tagare (2011), "Notes on optimization on Stiefel manifolds".
"""

import math
from typing import Any, Literal

import torch
from torch import Tensor, nn

from orthobench.common.schema import Fraction, Positive
from orthobench.parametrizations.accumulated import Accumulated
from orthobench.parametrizations.initializers import Rng
from orthobench.parametrizations.moving_base import Settling, mended, polar
from orthobench.parametrizations.skew import upper_indices
from orthobench.parametrizations.traced import mapped, traced
from orthobench.parametrizations.unitary_product import UnitaryProduct

UnitaryInit = Literal["unitary_product", "gaussian", "identity"]
EPSILON = 1e-8


class Stiefel(Settling):
    """A full-capacity unitary matrix, moved by Cayley steps (Wisdom et al. 2016; Tagare 2011).

    There are n^2 free numbers: the real and the imaginary parts above the diagonal of S, and its imaginary diagonal.

    With the rule `sgd` for the recurrent group this is the authors' step. Any other rule works too; its running
    averages then refer to coordinates that move with the base point, which is kept in double precision and cast.

    Args:
        n: size of the matrix.
        rng: generator for the initial values.
        unitary_init: `unitary_product` draws the restricted uRNN's matrix (authors' code), `gaussian` takes the unitary
            matrix nearest to a complex Gaussian one, `identity` starts from I.
        rms_gradient: whether every real and imaginary part of G is first divided by sqrt(a) + 1e-8, where a is the
            running mean of its square (the authors' MNIST runs).
        rms_decay: the decay of that running mean.
        project_every: steps from one projection of W_0 onto the unitary group to the next; null means never, as in
            the authors' code.

    Attributes:
        tolerance: 1e-4. After 1,000 steps at n = 116 the base point is 2e-13 off and its cast 4e-7; the first grows
            with the square root of the number of steps.
    """

    base: Tensor
    square: Tensor
    next_square: Tensor
    indices: Tensor
    tolerance = 1e-4
    in_onnx = False
    in_double = ("base", "square", "next_square")
    beside = ("base",)

    def __init__(
        self,
        n: int,
        rng: Rng,
        unitary_init: UnitaryInit = "unitary_product",
        rms_gradient: bool = False,
        rms_decay: Fraction = 0.9,
        project_every: Positive | None = None,
    ) -> None:
        super().__init__(n)
        self.rms_gradient, self.rms_decay, self.project_every = rms_gradient, rms_decay, project_every
        self.theta = nn.Parameter(torch.zeros(n * n))
        self.register_buffer("indices", upper_indices(n), persistent=False)
        self.register_buffer("base", _initial(unitary_init, n, rng))
        self.scaling, self.scales_gradient = Accumulated(self._scaled), rms_gradient
        if rms_gradient:
            self.register_buffer("square", torch.zeros(n, n, 2, dtype=torch.float64))
            self.register_buffer("next_square", torch.zeros(n, n, 2, dtype=torch.float64), persistent=False)
        self._believe()

    def skew(self) -> Tensor:
        """S in complex128, (n, n)."""
        n = self.n
        pairs, diagonal = self.theta.double().split([n * (n - 1), n])
        upper = torch.complex(*pairs.view(2, -1).unbind(0))
        S = upper.new_zeros(n * n).index_copy(0, self.indices, upper).view(n, n)
        return S - S.mH + torch.diag(1j * math.sqrt(2) * diagonal)

    def forward(self) -> Tensor:
        self._refuse_taken()
        self.check()
        S = self.skew()  # at zero C(S) is I + S to first order: the same value and gradient without solving a system
        unread = traced(self.theta) or mapped(self.theta)
        W = self._moved(S) if unread or not self.is_settled() else self.base + S @ self.base
        if self.rms_gradient and W.requires_grad and not unread:
            W.register_hook(self.scaling)
        return W.to(self.theta.dtype.to_complex())

    def looks_settled(self) -> bool:
        return not self.theta.any()

    def settle(self) -> None:
        """Move the base point to the current W."""
        if self.rms_gradient:
            self.square.copy_(self.next_square)
        self.base.copy_(self._moved(self.skew()))
        self.theta.zero_()
        if self.project_every is not None and self.steps % self.project_every == 0:
            self.base.copy_(polar(self.base))

    def mend(self) -> None:
        self.base = mended(self.base, "the base point of Stiefel")

    def _moved(self, S: Tensor) -> Tensor:
        eye = torch.eye(self.n, dtype=S.dtype, device=S.device)
        return torch.linalg.solve_ex(eye - S / 2, (eye + S / 2) @ self.base)[0]

    @torch.no_grad()
    def _scaled(self, G: Tensor) -> Tensor:
        """G with every part divided by its running root mean square, which includes this step."""
        parts = torch.view_as_real(G.resolve_conj().contiguous())
        mean = self.next_square.copy_(self.square.lerp(parts.square(), 1 - self.rms_decay))
        return torch.view_as_complex(parts / (mean.sqrt() + EPSILON))

    @staticmethod
    def is_complex(given: dict[str, Any]) -> bool:
        return True


def _initial(init: UnitaryInit, n: int, rng: Rng) -> Tensor:
    if init == "identity":
        return torch.eye(n, dtype=torch.complex128)
    if init == "gaussian":
        parts = torch.as_tensor(rng.normal(size=(n, n, 2)))
        return polar(torch.view_as_complex(parts))
    product = UnitaryProduct(n, rng).double()
    with torch.no_grad():
        return product()
