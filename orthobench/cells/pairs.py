"""Complex numbers as pairs of real ones."""

import torch
from torch import Tensor


def times(pairs: Tensor, re: Tensor, im: Tensor) -> Tensor:
    """Products (..., N, 2) of pairs and re + i im, (..., N) each; with a cosine and a sine the pairs turned."""
    x, y = pairs.unbind(-1)
    return torch.stack([re * x - im * y, re * y + im * x], dim=-1)
