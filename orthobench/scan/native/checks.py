"""Checks of the tensors whose memory the C loops read, because C itself checks nothing."""

from torch import Tensor


def check(p: Tensor, W: Tensor, shape: tuple[int, ...], width: int) -> None:
    """Refuse a projection (T, B, M) or a matrix whose shape, dtype or device does not suit the loop.

    Args:
        p: the projection.
        W: the recurrent matrix.
        shape: the shape that W must have.
        width: the M that p must have.

    Raises:
        ValueError: something does not fit; the sentence names it.
    """
    if p.shape[-1] != width or W.shape != shape:
        raise ValueError(f"projection of width {p.shape[-1]} and matrix {tuple(W.shape)} do not fit a loop of {shape}.")
    if p.dtype != W.dtype or p.device != W.device:
        raise ValueError(
            f"the projection is {p.dtype} on {p.device}, the matrix {W.dtype} on {W.device}: they must be the same."
        )
