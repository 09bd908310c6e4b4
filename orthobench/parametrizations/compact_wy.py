"""Products of Householder reflectors in compact WY form: matrix products and one triangular solve, without a loop.

    H(a_1) H(a_2) ... H(a_m) = I - L A^T,   H(a) = I - 2 a a^T / ||a||^2,   A = [a_1, ..., a_m],

    L = A S^{-1},   S = strictly upper part of A^T A + half its diagonal.

For a gradient D of L and X = D S^{-T}, that of A is X - A (N + N^T), N being the upper triangle of L^T X with half of
its diagonal. The vectors need not be normalised, and H(0) = I. Use float64: in float32 nearly parallel vectors cost
three digits. Shapes: A and L are (n, m), S is (m, m).
Zhang, Lei & Dhillon (2018), "Stabilizing Gradients for Deep Neural Networks via Efficient SVD Parameterization", eq. 1;
Schreiber & Van Loan (1989), "A storage-efficient WY representation for products of Householder transformations".
"""

from typing import Any

import torch
from torch import Tensor

from orthobench.parametrizations.derivatives import first_only
from orthobench.parametrizations.traced import traced


def product(A: Tensor) -> Tensor:
    """H(a_1) ... H(a_m), (n, n)."""
    if traced(A):
        return torch.eye(len(A), dtype=A.dtype, device=A.device) - _solved(A) @ A.T
    return _Product.apply(A)[0]


def left_factor(A: Tensor) -> Tensor:
    """L (n, m) alone, for callers that never form the product."""
    return _solved(A) if traced(A) else _LeftFactor.apply(A)[0]


class _Product(torch.autograd.Function):
    """A -> (H(a_1) ... H(a_m), L, S)."""

    generate_vmap_rule = True

    @staticmethod
    def forward(A: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        L, S = _solve(A)
        W = -L @ A.T
        W.diagonal().add_(1)
        return W, L, S

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: tuple[Tensor, ...]) -> None:
        ctx.mark_non_differentiable(*output[1:])
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*inputs, *output[1:])

    @staticmethod
    @first_only("use a map without reflectors, such as model.recurrent=scaled_cayley")
    def backward(ctx: Any, G: Tensor | None, *_: None) -> Tensor | None:
        if G is None:
            return None
        A, L, S = ctx.saved_tensors
        D = -(A.T @ G.T).T  # products of wide matrices: those of tall ones, G A and G^T L, take up to ten times as long
        return torch.addmm(_reverse(D, A, L, S).T, L.T, G, alpha=-1).T


class _LeftFactor(torch.autograd.Function):
    """A -> (L, S)."""

    generate_vmap_rule = True

    @staticmethod
    def forward(A: Tensor) -> tuple[Tensor, Tensor]:
        return _solve(A)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: tuple[Tensor, Tensor]) -> None:
        ctx.mark_non_differentiable(output[1])
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*inputs, *output)

    @staticmethod
    @first_only("use a map without reflectors, such as model.recurrent=scaled_cayley")
    def backward(ctx: Any, D: Tensor | None, *_: None) -> Tensor | None:
        return None if D is None else _reverse(D, *ctx.saved_tensors)


def _solve(A: Tensor) -> tuple[Tensor, Tensor]:
    """L and S; a zero column of A gets the pivot one, which makes its reflector the identity and its gradient zero."""
    S = (A.T @ A).triu()
    pivots = S.diagonal()
    pivots.copy_(torch.where(pivots > torch.finfo(A.dtype).tiny, pivots / 2, 1))
    return torch.linalg.solve_triangular(S, A, upper=True, left=False), S


def _solved(A: Tensor) -> Tensor:
    """L by operations that leave their arguments alone, for what records them."""
    gram = A.T @ A
    pivots = gram.diagonal()
    pivots = torch.where(pivots > torch.finfo(A.dtype).tiny, pivots / 2, 1)
    return torch.linalg.solve_triangular(gram.triu(1) + torch.diag(pivots), A, upper=True, left=False)


def _reverse(D: Tensor, A: Tensor, L: Tensor, S: Tensor) -> Tensor:
    """The gradient of <D, L> with respect to A."""
    X = torch.linalg.solve_triangular(S.T, D, upper=False, left=False)
    N = (L.T @ X).triu()
    N.diagonal().mul_(0.5)
    return torch.addmm(X, A, N + N.T, alpha=-1)
