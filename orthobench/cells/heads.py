"""Cells whose units are divided among heads, each with a matrix or a block of weights of its own."""

from typing import ClassVar, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from orthobench.cells.base import Cell
from orthobench.cells.initial import MakeRecurrent
from orthobench.common.schema import OptionalPositive, Positive
from orthobench.errors import ConfigError
from orthobench.parametrizations.initializers import Rng

EPSILON = 1e-5  # of a mean square
SHORTEST_SQUARE = 1e-6


class Headed(Cell):
    """N units in `heads` groups of `width`, no recurrent matrix over all of them, and input weights of its own.

    A subclass sets U, and redefines `joint_bias` where a bias is added. Where the state is a matrix (keys, values) in
    every head, these may have widths of their own, so that a model can meet a budget of parameters.

    Attributes:
        gains: names of the parameters that are gains of norms, to which an optimizer of torch gives no weight decay.

    Args:
        input_size: I, the width of an input.
        hidden_size: N, the number of units.
        rng: generator for the initial values.
        make_recurrent: unused, as there is no recurrent matrix.
        heads: number of heads.
        key_width: keys of a head; N / heads when null.
        value_width: values of a head; N / heads when null.

    Raises:
        ConfigError: N is no multiple of the number of heads, and a width is N / heads.
    """

    matrix_names: tuple[str, ...] | None = ()
    gains: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        input_size: int,
        hidden_size: Positive,
        rng: Rng,
        make_recurrent: MakeRecurrent,
        heads: Positive = 4,
        key_width: OptionalPositive = None,
        value_width: OptionalPositive = None,
    ) -> None:
        super().__init__(input_size, hidden_size, rng, make_recurrent)
        if hidden_size % heads and (key_width is None or value_width is None):
            raise ConfigError(
                f"model.hidden_size={hidden_size} does not suit model.heads={heads}: a multiple of the heads is needed."
            )
        self.heads, self.width = heads, hidden_size // heads
        self.key_width, self.value_width = key_width or self.width, value_width or self.width
        self.b, self.b_hidden = nn.ParameterDict(), nn.ParameterDict()
        self.recurrent, self.clips = nn.ModuleDict(), nn.ModuleDict()

    def joint_bias(self) -> Tensor | None:
        return None

    def split(self, x: Tensor, *parts: int) -> Tensor:
        """(B, ... M) as (B, ..., heads, M / heads), or (B, parts, heads, M / heads / parts)."""
        return x.unflatten(-1, (*parts, self.heads, -1))


def rms_normalised(x: Tensor, weight: Tensor) -> Tensor:
    """Vectors (..., d) at a mean square of one, times `weight` (d,); EPSILON is added to the mean square."""
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + EPSILON) * weight


def unit(x: Tensor) -> Tensor:
    """Vectors (..., d) at length 1; those much shorter than 1e-3 stay short, so that zero has a derivative."""
    return x * torch.rsqrt(x.square().sum(-1, keepdim=True) + SHORTEST_SQUARE)


class GatedNorm(Protocol):
    """`gated_norm`, or an engine's own way of it."""

    def __call__(
        self, x: Tensor, scale: Tensor, shown: Tensor | None = None, gate: str = "silu", first: bool = False
    ) -> Tensor: ...


def gated_norm(
    x: Tensor, scale: Tensor, shown: Tensor | None = None, gate: str = "silu", first: bool = False
) -> Tensor:
    """`rms_normalised` vectors x (B, ..., d), times what an output gate lets through.

    Args:
        x: the vectors.
        scale: the norm's gain, (d,).
        shown: the numbers of the gate, of the shape of x; None for no gate.
        gate: `silu` or `sigmoid`, of these numbers.
        first: whether x is gated before it is normalised, and not behind.
    """
    if shown is None:
        return rms_normalised(x, scale)
    opened = F.silu(shown) if gate == "silu" else torch.sigmoid(shown)
    return rms_normalised(x * opened, scale) if first else rms_normalised(x, scale) * opened
