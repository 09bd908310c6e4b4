"""Products of Householder reflectors by the compact WY form: matrix products and one triangular system, no loop.

    H(a_1) H(a_2) ... H(a_m) = I - A S^{-1} A^T,   H(a) = I - 2 a a^T / ||a||^2,   A = [a_1, ..., a_m],

    S = strictly upper part of A^T A + half its diagonal.

The vectors need not be normalised, and H(0) = I. Use float64: in float32 nearly parallel vectors cost three digits.
Zhang, Lei & Dhillon (2018), "Stabilizing Gradients for Deep Neural Networks via Efficient SVD Parameterization", eq. 1;
Schreiber & Van Loan (1989), "A storage-efficient WY representation for products of Householder transformations".
"""

import torch
from torch import Tensor


def compact_wy(A: Tensor) -> tuple[Tensor, Tensor]:
    """A with vanishing columns cut off from the graph, (n, m), and S, (m, m).

    A zero column gets the pivot one, which makes its reflector the identity and its gradient zero.
    """
    alive = A.detach().square().sum(0) > torch.finfo(A.dtype).tiny
    A = torch.where(alive, A, 0)
    gram = A.T @ A
    pivots = torch.where(alive, gram.diagonal() / 2, 1)
    return A, gram.triu(1) + torch.diag(pivots)


def reflect(A: Tensor, X: Tensor) -> Tensor:
    """H(a_1) ... H(a_m) X for X of shape (n, c)."""
    A, S = compact_wy(A)
    return X - A @ torch.linalg.solve_triangular(S, A.T @ X, upper=True)


def product(A: Tensor) -> Tensor:
    """H(a_1) ... H(a_m), (n, n), without multiplying by an identity."""
    A, S = compact_wy(A)
    eye = torch.eye(len(A), dtype=A.dtype, device=A.device)
    return eye - A @ torch.linalg.solve_triangular(S, A.T, upper=True)
