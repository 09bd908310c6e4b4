"""Singular value decomposition of a matrix that is not square, for the layers of Spectral-MLP and Spectral-ResNet.

    W = U (diag(sigma) | 0) V^T,   U of size (rows, rows), V of size (columns, columns)

min(rows, columns) reflectors on each side reach every such W, so `max` stands for this number.
Zhang, Lei & Dhillon (2018), section 5.
"""

from typing import Any

from orthobench.parametrizations.initializers import Rng
from orthobench.parametrizations.svd import SVD


def RectangularSVD(rows: int, columns: int, rng: Rng, **options: Any) -> SVD:
    """The parametrization of a (rows, columns) matrix.

    Args:
        rows: number of outputs.
        columns: number of inputs.
        rng: generator for the initial vectors.
        options: the other arguments of `SVD`; counts are tied to min(rows, columns).
    """
    return SVD((rows, columns), rng, **options)
