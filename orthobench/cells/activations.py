"""Elementwise activations of the recurrent cells."""

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

Activation = Literal["modrelu", "relu", "leaky_relu", "abs", "tanh"]


def modrelu(z: Tensor, b: Tensor) -> Tensor:
    """sign(z) max(|z| + b, 0), so that z = 0 gives 0 whatever b (Helfrich et al. 2018, section 4.1)."""
    return torch.sign(z) * F.relu(z.abs() + b)


def activate(name: Activation, z: Tensor, b: Tensor | None = None, slope: float = 0.1) -> Tensor:
    """The activation `name` of z; `b` is modReLU's bias, `slope` leaky ReLU's factor on negative values."""
    match name:
        case "modrelu":
            assert b is not None
            return modrelu(z, b)
        case "relu":
            return F.relu(z)
        case "leaky_relu":
            return F.leaky_relu(z, slope)
        case "abs":
            return z.abs()
        case "tanh":
            return torch.tanh(z)


def slopes(name: Activation, slope: float = 0.1) -> tuple[float, float]:
    """The smallest and the largest value of |act'| (Chu, table 2; at a kink, of the one-sided derivatives)."""
    if name == "leaky_relu":
        return min(slope, 1.0), max(slope, 1.0)
    return (1.0, 1.0) if name == "abs" else (0.0, 1.0)
