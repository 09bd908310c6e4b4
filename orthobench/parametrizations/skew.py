"""Skew-symmetric matrices from their free upper triangle, and the block-diagonal starting points of the papers.

The strict upper triangle is the parameter, so that a gradient step moves A by exactly that step: writing A = P - P^T
with a full P would double it.
"""

import numpy as np
import torch
from torch import Tensor


def upper_indices(n: int) -> Tensor:
    """Flat positions of the strict upper triangle of an (n, n) matrix, row by row: shape (n(n-1)/2,)."""
    rows, columns = torch.triu_indices(n, n, offset=1)
    return rows * n + columns


def skew(theta: Tensor, indices: Tensor, n: int) -> Tensor:
    """A with A[i, j] = theta_ij above the diagonal and A^T = -A exactly."""
    upper = theta.new_zeros(n * n).index_copy(0, indices, theta).view(n, n)
    return upper - upper.T


def sample_cayley_angles(rng: np.random.Generator | np.random.RandomState, n: int) -> np.ndarray:
    """floor(n/2) independent angles from U[0, pi/2] (scoRNN, section 4.2)."""
    return rng.uniform(0, np.pi / 2, size=n // 2)


def block_diagonal(values: np.ndarray, n: int) -> np.ndarray:
    """The strict upper triangle, flat, of the matrix with blocks [[0, s_j], [-s_j, 0]]; an odd last row is zero."""
    A = np.zeros((n, n))
    first = 2 * np.arange(len(values))
    A[first, first + 1] = values
    return A[np.triu_indices(n, 1)]
