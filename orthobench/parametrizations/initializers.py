"""Initial values, drawn from a NumPy generator so that a seed gives the same weights on every machine.

Shapes follow torch: a weight is (out, in). Formulas are those of Keras and TensorFlow, which most of the papers used.
"""

import math
import re

import numpy as np
import torch
from torch import Tensor

from orthobench.common.schema import did_you_mean
from orthobench.errors import ConfigError

Rng = np.random.Generator | np.random.RandomState


def tensor(values: np.ndarray) -> Tensor:
    """A tensor of torch's default type holding `values`."""
    return torch.as_tensor(np.asarray(values), dtype=torch.get_default_dtype())


def uniform(rng: Rng, shape: tuple[int, ...], bound: float) -> Tensor:
    """Independent draws from U(-bound, bound)."""
    return tensor(rng.uniform(-bound, bound, size=shape))


def glorot_uniform(rng: Rng, shape: tuple[int, int], fan_in: int | None = None, fan_out: int | None = None) -> Tensor:
    """U(-b, b) with b = sqrt(6 / (fan_in + fan_out)); the fans default to the shape's own."""
    fan_in, fan_out = fan_in or shape[1], fan_out or shape[0]
    return uniform(rng, shape, math.sqrt(6 / (fan_in + fan_out)))


def he_uniform(rng: Rng, shape: tuple[int, int], fan_in: int | None = None, slope: float = 0.0) -> Tensor:
    """U(-b, b) with b = sqrt(6 / fan_in), divided by sqrt(1 + slope^2) for a leaky ReLU of that slope."""
    return uniform(rng, shape, math.sqrt(6 / (1 + slope**2) / (fan_in or shape[1])))


def normal(rng: Rng, shape: tuple[int, ...], std: float) -> Tensor:
    """Independent draws from N(0, std^2)."""
    return tensor(rng.normal(0, std, size=shape))


def truncated_normal(rng: Rng, shape: tuple[int, ...], std: float) -> Tensor:
    """Normal draws of standard deviation `std`, those beyond two deviations drawn again (TensorFlow's rule)."""
    values = rng.normal(size=shape)
    while (outside := np.abs(values) > 2).any():
        values[outside] = rng.normal(size=int(outside.sum()))
    return tensor(std * values)


def he_normal(rng: Rng, shape: tuple[int, int], fan_in: int | None = None) -> Tensor:
    """Truncated normal whose standard deviation after truncation is sqrt(2 / fan_in), as Keras draws it."""
    return truncated_normal(rng, shape, math.sqrt(2 / (fan_in or shape[1])) / 0.87962566103423978)


def orthogonal(rng: Rng, shape: tuple[int, int]) -> Tensor:
    """A matrix with orthonormal rows or columns, uniform over the orthogonal group (QR of a Gaussian, signs fixed)."""
    rows, columns = max(shape), min(shape)
    q, r = np.linalg.qr(rng.normal(size=(rows, columns)))
    q = q * np.sign(np.diag(r))
    return tensor(q if shape[0] >= shape[1] else q.T)


SCHEMES = (
    "glorot", "he_uniform", "he_normal", "torch", "linear", "orthogonal", "identity", "zeros",
    "normal 0.1", "truncated_normal 0.1", "shift 1.02", "he_uniform 8", "small", "small_one_hot",
)  # fmt: skip


def weight(
    scheme: str | float,
    rng: Rng,
    shape: tuple[int, int],
    fan_in: int | None = None,
    fan_out: int | None = None,
    units: int | None = None,
) -> Tensor:
    """A weight matrix by scheme.

    A number stands for U(-number, number); `normal 0.1` and `truncated_normal 0.1` for Gaussians of that deviation;
    `shift 1.02` for a chain, in which unit i + 1 gets 1.02 of unit i and the first nothing (Orhan & Pitkow 2020);
    `he_uniform 8` for He's rule before a leaky ReLU of slope 8;
    `torch` for U(-b, b) with b = 1 / sqrt(units), PyTorch's rule for a recurrent layer of that many units and, with
    the columns for `units`, for nn.Linear; `linear` for nn.Linear's rule in every place, b = 1 / sqrt(fan_in);
    `small` for N(0, 2 / (5 columns)) (Nguyen & Salazar 2019, "Transformers without Tears"), and `small_one_hot` for
    N(0, 2 / 5), which does to one-hot vectors what `small` does to vectors of unit variance.

    Raises:
        ConfigError: the scheme is not known, or the number is negative.
    """
    if isinstance(scheme, int | float):
        if scheme < 0:
            raise ConfigError(f"initialisation {scheme} is out of range: the bound of U(-bound, bound) must be >= 0.")
        return uniform(rng, shape, float(scheme))
    if scheme == "glorot":
        return glorot_uniform(rng, shape, fan_in, fan_out)
    if scheme == "he_uniform":
        return he_uniform(rng, shape, fan_in)
    if scheme == "he_normal":
        return he_normal(rng, shape, fan_in)
    if scheme == "torch":
        return uniform(rng, shape, 1 / math.sqrt(units or shape[1]))
    if scheme == "linear":
        return uniform(rng, shape, 1 / math.sqrt(fan_in or shape[1]))
    if scheme in ("small", "small_one_hot"):
        return normal(rng, shape, math.sqrt(2 / (5 * (shape[1] if scheme == "small" else 1))))
    if scheme == "orthogonal":
        return orthogonal(rng, shape)
    if scheme == "identity":
        return torch.eye(*shape)
    if scheme == "zeros":
        return torch.zeros(shape)
    kind, _, number = scheme.partition(" ")
    given = re.fullmatch(r"\d*\.?\d+(e-\d+)?", number, re.ASCII) is not None
    if kind == "shift" and given:
        chain = torch.zeros(shape)
        chain.diagonal(-1).fill_(float(number))
        return chain
    if kind == "he_uniform" and given:
        return he_uniform(rng, shape, fan_in, slope=float(number))
    if kind in ("normal", "truncated_normal") and given:
        draw = truncated_normal if kind == "truncated_normal" else normal
        return draw(rng, shape, float(number))
    raise ConfigError(f"initialisation {scheme!r} is not known: {did_you_mean(scheme, SCHEMES)}")
