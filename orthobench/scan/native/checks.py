"""What is asked of tensors before C reads them, which it does as it is told to."""

from torch import Tensor


def check(p: Tensor, W: Tensor, shape: tuple[int, ...], width: int) -> None:
    """Refuse a projection (T, B, M) and a matrix of other shapes, types or places than the loop was written for.

    Raises:
        ValueError: naming what does not fit.
    """
    if p.shape[-1] != width or W.shape != shape:
        raise ValueError(f"projection of width {p.shape[-1]} and matrix {tuple(W.shape)} do not fit a loop of {shape}.")
    if p.dtype != W.dtype or p.device != W.device:
        raise ValueError(
            f"the projection is {p.dtype} on {p.device}, the matrix {W.dtype} on {W.device}: they must be the same."
        )
