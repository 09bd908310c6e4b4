"""Scaled Cayley transform whose inverse is updated by a Neumann series instead of being recomputed.

    W = B (I - A) D,   B ~ (I + A)^{-1},   A^T = -A,   D = diag(1, ..., 1, -1, ..., -1) with rho entries -1

After a step A -> A - delta, with M = B delta and order q,

    B <- (I + M + ... + M^q) B,   an error of O(||M||^{q+1}),

and every `reset_period` steps B is computed by an exact inversion. So it is when theta has moved too far for the
series, ||M|| >= 1/2, as a rate of 1e-2 or theta set by hand may move it; the paper's steps are a tenth of that. The
gradient is that of the scaled Cayley transform with B for the inverse: dL/dA = V^T - V with V = B^T G (D + W^T),
G = dL/dW.
Mucllari, Zadorozhnyy, Pospisil, Nguyen & Ye (2022), "Orthogonal Gated Recurrent Unit with Neumann-Cayley
Transformation", Algorithm 1.
"""

import math
from typing import Any, Literal

import torch
from torch import Tensor, nn

from orthobench.common.schema import Count, Positive
from orthobench.parametrizations import base
from orthobench.parametrizations.derivatives import first_only
from orthobench.parametrizations.initializers import Rng
from orthobench.parametrizations.moving_base import Settling
from orthobench.parametrizations.scaled_cayley import ScaledCayley
from orthobench.parametrizations.skew import skew
from orthobench.parametrizations.traced import mapped, traced

LOADED = 3e-4  # of ||B (I + A) - I||_F, up to which a layer takes a B that was loaded or averaged
FAR = 0.5  # of ||M||_F, which bounds the norm that decides whether the series converges


class NeumannCayley(Settling, ScaledCayley):
    """Scaled Cayley transform whose inverse a Neumann series updates (Mucllari et al. 2022, algorithm 1).

    There are n(n-1)/2 free numbers above the diagonal of A. The inverse B (n, n) and the A that it belongs to are
    buffers.

    Args:
        n: size of the matrix.
        rng: generator for the initial angles, as in `ScaledCayley`.
        rho: how many diagonal entries of D are -1, the last ones: a count, a share of n, or `max`.
        order: q, the last power of the series; `exact` inverts after every step.
        reset_period: steps from one exact inverse to the next; null means 50, the paper's most frequent value, and with
            `code` 49, the value of the released code, which also counts from the first step.
        variant: `paper` takes the true step A_old - A_new for delta; `code` takes the learning rate times the raw
            gradient, as the released code does, so that with Adam B hardly moves and W is far from orthogonal between
            resets.

    Attributes:
        tolerance: 0.1, because between resets order 2 drifts to 3e-4 at n=118, and order 1 further. With `code`, which
            drifts to about 3, there is no tolerance.
        learning_rate: the rate that `code` multiplies the gradient by; the caller sets it before every step, so that it
            follows a schedule. `paper` does not use it.
    """

    B: Tensor
    previous: Tensor
    beside = ("B", "previous")
    _M: Tensor

    def __init__(
        self,
        n: int,
        rng: Rng,
        rho: Count = 0.5,
        order: Literal[1, 2, 3, "exact"] = 2,
        reset_period: Positive | None = None,
        variant: Literal["paper", "code"] = "paper",
    ) -> None:
        super().__init__(n, rng, rho)
        self.order, self.variant = order, variant
        self.reset_period = reset_period or (50 if variant == "paper" else 49)
        self.learning_rate = 1e-3
        self.tolerance = math.inf if variant == "code" else 0.1
        self._M = torch.zeros(n, n)
        self.register_buffer("B", self._inverse())
        self.register_buffer("previous", self.theta.detach().clone())
        self._believe()

    def forward(self) -> Tensor:
        if traced(self.theta) or (mapped(self.theta) and not base.reading_waits(self.theta)):
            return super().forward() if self.variant == "paper" else _CayleyWithInverse.forward(*self._factors(self.B))
        self.check()
        return _CayleyWithInverse.apply(*self._factors(self._inverse_of_now()))

    def _factors(self, B: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """A, B and the diagonal of D, in theta's type, which `load_state_dict(assign=True)` changes without D's."""
        return self.skew(), B, self.signs.to(self.theta.dtype)

    def _inverse_of_now(self) -> Tensor:
        """B, computed again where theta was set by hand; a stack of them under vmap is not checked on a GPU."""
        own = isinstance(self.theta, nn.Parameter)
        if not own and base.reading_waits(self.theta):
            stacked = torch._C._functorch.is_batchedtensor(self.theta)  # type: ignore[attr-defined]
            return self.B if stacked else self._inverse()
        if self.is_settled():
            return self.B
        if not own:
            return self._inverse()
        self.reset()
        return self.B

    @property
    def neumann_norm(self) -> float:
        """||(I + A)^{-1} delta||_2 of the last step, computed at the call; the series converges below one."""
        return float(torch.linalg.matrix_norm(self._M, 2))

    def looks_settled(self) -> bool:
        return torch.equal(self.theta, self.previous)

    def settle(self) -> None:
        """Bring B up to date with theta."""
        self._M = self.B @ skew(self._delta(), self.indices, self.n)
        if self._is_reset_step() or self._is_far():
            self.B.copy_(self._inverse())
        else:
            self.B.copy_(self._series())
        self.previous.copy_(self.theta)

    @torch.no_grad()
    def reset(self) -> None:
        """Invert exactly, for a theta that was set by something other than an optimizer's step."""
        self.B.copy_(self._inverse())
        self.previous.copy_(self.theta)
        self._known = self._seen()
        self._believe()

    def begin_as(self, new: Any) -> None:
        super().begin_as(new)
        self._M = new._M

    def mend(self) -> None:
        """Invert exactly where B is not the inverse that belongs to `previous`; with `code` it never is."""
        if self.variant == "code":
            return
        A = skew(self.previous, self.indices, self.n)
        residual = self.B + self.B @ A
        residual.diagonal().sub_(1)
        if float(torch.linalg.matrix_norm(residual)) > (LOADED if self.careful else self.tolerance):
            self.reset()

    def _delta(self) -> Tensor:
        if self.variant == "code" and self.theta.grad is not None:
            return self.learning_rate * self.theta.grad
        return self.previous - self.theta

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        before = self.theta.dtype
        super()._apply(fn, recurse)
        if not self.steps and before != self.theta.dtype == torch.float64 and not self.theta.is_meta:
            self.reset()  # a first inverse that was rounded to single precision would stay so until the next exact one
        return self

    def _is_reset_step(self) -> bool:
        if self.order == "exact":
            return True
        return (self.steps if self.variant == "paper" else self.steps - 1) % self.reset_period == 0

    def _is_far(self) -> bool:
        """Return True if theta has moved too far for the series; never with `code`, whose M is of no step."""
        if self.variant == "code" or (base.reading_waits(self._M) and not self._may_wait()):
            return False
        return not float(torch.linalg.matrix_norm(self._M)) < FAR

    def _may_wait(self) -> bool:
        """Return True if a GPU may be waited for; not while its work is only recorded."""
        return self.careful and not (self._M.is_cuda and torch.cuda.is_current_stream_capturing())

    def _series(self) -> Tensor:
        B = self.B
        for _ in range(int(self.order)):
            B = self.B + self._M @ B
        return B

    @torch.no_grad()
    def _inverse(self) -> Tensor:
        """(I + A)^{-1}, inverted in float64; it always exists, as every singular value of I + A is at least one."""
        A = self.skew().double()
        inverse, _ = torch.linalg.inv_ex(torch.eye(self.n, dtype=A.dtype, device=A.device) + A)
        return inverse.to(self.theta.dtype)


class _CayleyWithInverse(torch.autograd.Function):
    """B (I - A) D with B in place of (I + A)^{-1}; `skew` turns the gradient -V into V^T - V."""

    generate_vmap_rule = True

    @staticmethod
    def forward(A: Tensor, B: Tensor, signs: Tensor) -> Tensor:
        return (B - B @ A) * signs

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], W: Tensor) -> None:
        _, B, signs = inputs
        ctx.save_for_backward(B, W, signs)

    @staticmethod
    @first_only("use model.recurrent=scaled_cayley")
    def backward(ctx: Any, G: Tensor) -> tuple[Tensor, None, None]:
        B, W, signs = ctx.saved_tensors
        X = B.T @ G
        return -(X * signs + X @ W.T), None, None
