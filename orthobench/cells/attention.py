"""Causal softmax attention over the last steps, one layer: the reference that is not recurrent.

    y_t = O concat_h sum over s of softmax_s(R(t) q_t . R(s) k_s / sqrt(d)) v_s,   t - window < s <= t

with q, k and v linear in x and heads of width d. R(t) turns pair i of a head's numbers by t 10000^(-2 i / d), so that a
score depends on t - s alone. What is kept between two steps is the keys and values of the last window - 1 steps. So up
to `window` steps this is full attention, and beyond them it forgets.
Vaswani, Shazeer, Parmar, Uszkoreit, Jones, Gomez, Kaiser & Polosukhin (2017), "Attention Is All You Need"; Su, Ahmed,
Lu, Pan, Bo & Liu (2024), "RoFormer: Enhanced Transformer with Rotary Position Embedding".
"""

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from orthobench.cells.base import Matrices, State
from orthobench.cells.heads import Headed
from orthobench.cells.initial import MakeRecurrent
from orthobench.cells.pairs import times
from orthobench.common.schema import Positive
from orthobench.errors import ConfigError
from orthobench.parametrizations.initializers import Rng, uniform

BASE = 10_000.0


class Attention(Headed):
    """Causal softmax attention with rotary positions (Vaswani et al. 2017; Su et al. 2024); not recurrent.

    The state is keys (window - 1, N), values (window - 1, N) and which of them there are, (window - 1,). Its outputs
    are (B, N).

    Args:
        input_size: I, the width of an input.
        hidden_size: N, a multiple of `heads`; d = N / heads.
        rng: generator for the initial values.
        make_recurrent: unused, as there is no recurrent matrix.
        heads: number of heads.
        window: how many steps are seen, the current one included.
        positions: whether q and k are turned by their place.

    Raises:
        ConfigError: N is no multiple of the heads, or d is odd with rotary positions.
    """

    gates: tuple[str, ...] = ("q", "k", "v")
    returns_output: bool = True

    def __init__(
        self,
        input_size: int,
        hidden_size: Positive,
        rng: Rng,
        make_recurrent: MakeRecurrent,
        heads: Positive = 4,
        window: Positive = 1024,
        positions: Literal["rotary", "none"] = "rotary",
    ) -> None:
        super().__init__(input_size, hidden_size, rng, make_recurrent, heads)
        if positions == "rotary" and self.width % 2:
            raise ConfigError(
                f"model.hidden_size={hidden_size} with model.heads={heads} gives heads of {self.width} numbers, and "
                "rotary positions turn pairs: choose an even width, or model.positions=none."
            )
        self.window, self.positions = window, positions
        self.U = nn.Parameter(uniform(rng, (3 * hidden_size, input_size), input_size**-0.5))
        self.O = nn.Parameter(uniform(rng, (hidden_size, hidden_size), hidden_size**-0.5))

    def state_shapes(self) -> tuple[tuple[int, ...], ...]:
        return (self.window - 1, self.hidden_size), (self.window - 1, self.hidden_size), (self.window - 1,)

    def initial_state(self, batch_size: int) -> State:
        """Empty slots, which all sequences share: a state of their own would take longer to fill than a short run."""
        return tuple(self.U.new_zeros(shape).expand(batch_size, *shape) for shape in self.state_shapes())

    def step(self, p_t: Tensor, state: State, W: Matrices) -> tuple[Tensor, State]:
        q, k, v = p_t.chunk(3, dim=-1)
        new = k[:, None], v[:, None], torch.ones_like(k[:, :1])
        keys, values, there = (torch.cat(pair, dim=1) for pair in zip(state, new, strict=True))
        places = torch.arange(self.window, device=q.device)
        q, keys = self.turned(q[:, None], places[-1:]), self.turned(keys, places)
        scores = (q @ keys.transpose(-1, -2))[:, :, 0] * self.width**-0.5
        shares = scores.masked_fill(there[:, None] == 0, -torch.inf).softmax(-1)
        y = torch.einsum("bhs,bhsd->bhd", shares, self.turned(values)).flatten(-2)
        kept = (torch.cat([old, one], dim=1)[:, 1:] for old, one in zip(state, new, strict=True))
        return F.linear(y, self.O), tuple(kept)

    def turned(self, x: Tensor, places: Tensor | None = None) -> Tensor:
        """Vectors (B, T, N) by heads, (B, heads, T, d), turned by their places (T,) where these are given."""
        x = self.split(x).transpose(1, 2)
        if places is None or self.positions == "none":
            return x
        angles = self.angles(places)
        return times(x.unflatten(-1, (-1, 2)), angles.cos().to(x.dtype), angles.sin().to(x.dtype)).flatten(-2)

    def angles(self, places: Tensor) -> Tensor:
        """By how much each pair of a head is turned at places (T,): (T, d / 2), in float64."""
        pace = BASE ** (torch.arange(0, self.width, 2, device=places.device, dtype=torch.float64) / -self.width)
        return places[:, None] * pace

    def multiply_adds(self, tokens: bool = False) -> int:
        """See `Cell`: a query meets all keys of the window, and their values are added up."""
        return super().multiply_adds(tokens) + 2 * self.hidden_size * self.window

    @property
    def values_per_step(self) -> int:
        return self.hidden_size * 8 + 3 * self.heads * self.window
