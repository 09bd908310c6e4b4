"""Multi-query associative recall with a load: D pairs in front, then every key once more, where its value is due.

Key and value take two steps each, without gaps. Then come slots of two steps. Every key is asked once, at the first
step of a slot; which slots is drawn without replacement, with probabilities that grow as i^(gap_power - 1) with the
number i of the slot, or uniformly. The value is due where the key is asked and is not shown there. So the load is D and
the time that it is kept is that of the slots. With `updates`, some keys are written a second time with another value,
and the last one counts.
Arora, Eyuboglu, Timalsina, Johnson, Poli, Zou, Rudra & Ré (2024), "Zoology: Measuring and Improving Recall in Efficient
Language Models", section 3 and appendix E. There the values of a sequence differ, as with `repeat_values=false`.

Tokens: blank 0, then the keys, then the values, then with `filler=random` as many tokens that stand for nothing.
"""

import math
from statistics import fmean
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from orthobench.common.schema import NonNegative, OptionalPositive, Positive, PositiveFloat, Range
from orthobench.errors import ConfigError
from orthobench.tasks.drawn.varied import Varied, whole
from orthobench.tasks.lengths import Span, span
from orthobench.tasks.scaled import mean_of_most
from orthobench.tasks.synthetic import Arrays

MANY = 16  # pairs up to which a sequence has 16 steps for each; more have 4 steps each, and 64 beside


class MQAR(Varied):
    """Tokens in, `values` classes out at every step.

    Args:
        pairs: least and greatest number D of pairs, which `eval_lengths` are numbers of, too.
        length: steps of a sequence; by its D when null: 16 D, and 4 D + 64 for more than 16 pairs.
        keys: how many different keys there are.
        values: how many different values there are.
        updates: how many of the keys are written twice.
        repeat_values: whether two pairs of a sequence may have one value.
        filler: what stands between the questions.
        gap: how the slots are drawn.
        gap_power: a, with gap=power; 0.01 asks most soon after the pairs, 1 is uniform.
        **kwargs: see `Drawn`.

    Raises:
        ConfigError: more pairs than keys, values or steps are there for.
    """

    length_key: ClassVar[str] = "pairs"
    fixed_length: ClassVar[str | None] = "its load is drawn; use task.pairs=[LOWEST,HIGHEST]"

    def __init__(
        self,
        pairs: Span = (4, 4),
        length: OptionalPositive = None,
        keys: Positive = 64,
        values: Annotated[int, Range(2)] = 64,
        updates: NonNegative = 0,
        repeat_values: bool = True,
        filler: Literal["blank", "random"] = "blank",
        gap: Literal["uniform", "power"] = "uniform",
        gap_power: PositiveFloat = 0.01,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        low, most = self.span = span("pairs", pairs)
        self.keys, self.values, self.updates = keys, values, updates
        self.repeat_values, self.filler = repeat_values, filler
        self.power, self.own_length = gap_power if gap == "power" else 1.0, length
        limits = {"keys": keys, "values": values if not repeat_values else most}
        short = next((name for name, count in limits.items() if count < most), None)
        if short:
            raise ConfigError(f"task.pairs=[{low},{most}] needs as many {short}: task.{short} must be >= {most}.")
        if updates > low:
            raise ConfigError(f"task.updates={updates} needs as many pairs: task.pairs=[{low},{most}] must be >= it.")
        least = 4 * most + 2 * updates
        if length is not None and (length < least or length % 2):
            text = f"task.length={length} does not fit {most} pairs and {updates} updates"
            raise ConfigError(f"{text}: it must be even and >= {least}, two steps for each write and question.")
        loads = np.arange(low, most + 1)
        self.length, self.answers = int(self.steps(loads).max()), most
        self.slots = int((self.steps(loads) // 2 - loads - updates).max())
        self.input_size, self.output_size = 1 + keys + values * (1 + (filler == "random")), values
        self.width = sum(self._widths)
        self.chance = 1 / values
        self.baseline = {"loss": math.log(values), "accuracy": self.chance, "score": 0.0}

    def steps(self, pairs: np.ndarray) -> np.ndarray:
        """Steps of sequences by their numbers of pairs."""
        if self.own_length is not None:
            return np.full_like(pairs, self.own_length)
        return np.where(pairs <= MANY, 16 * pairs, 4 * pairs + 64) + 4 * self.updates

    @property
    def order_blind(self) -> dict[str, float]:
        """Score of a predictor that gives a value that the sequence has, the commonest one, whatever is asked."""
        if self.updates:
            return {}
        low, high = self.span
        shares = (mean_of_most(D, self.values) / D if self.repeat_values else 1 / D for D in range(low, high + 1))
        accuracy = fmean(shares)
        return self.blind(accuracy)

    def sequences(self, u_BW: np.ndarray) -> Arrays:
        (B, _), most, U = u_BW.shape, self.span[1], self.updates
        parts = np.split(u_BW, np.cumsum(self._widths)[:-1], axis=1)
        u_pairs, u_keys, u_values, u_others, u_which, u_slots, u_filler = parts
        D = whole(u_pairs, *self.span)
        pair, rows = np.arange(most), np.arange(B)[:, None] * self.length
        shown = pair < D
        keys = np.argsort(u_keys, axis=1)[:, :most]
        first = whole(u_values, 0, self.values - 1) if self.repeat_values else np.argsort(u_values, axis=1)[:, :most]
        again = np.argsort(np.where(shown, u_which, 2.0), axis=1)[:, :U]
        value = first.copy()
        other = (np.take_along_axis(first, again, 1) + 1 + whole(u_others, 0, self.values - 2)) % self.values
        np.put_along_axis(value, again, other, 1)
        x = np.zeros((B, self.length), dtype=np.int64)
        target, mask = np.zeros_like(x), np.zeros(x.shape, dtype=np.float32)
        length = self.steps(D)
        if self.filler == "random":
            step = np.arange(self.length)
            x[:] = (1 + self.keys + self.values + whole(u_filler, 0, self.values - 1)) * (step < length)
            x *= step >= 2 * (D + U)
        written, later = (rows + 2 * pair)[shown], rows + 2 * (D + np.arange(U))
        x.ravel()[written], x.ravel()[written + 1] = (1 + keys)[shown], (1 + self.keys + first)[shown]
        x.ravel()[later] = 1 + np.take_along_axis(keys, again, 1)
        x.ravel()[later + 1] = 1 + self.keys + other
        # the places of the smallest of exponential numbers with rates p are draws without replacement by p
        slot, there = np.arange(self.slots), length // 2 - D - U
        waits = -np.log1p(-u_slots) * (1 + slot) ** (1 - self.power)
        chosen = np.argsort(np.where(slot < there, waits, np.inf), axis=1, kind="stable")[:, :most]
        asked = (rows + 2 * (D + U) + 2 * chosen)[shown]
        x.ravel()[asked], target.ravel()[asked], mask.ravel()[asked] = (1 + keys)[shown], value[shown], 1
        return x, target, mask

    @property
    def _widths(self) -> tuple[int, ...]:
        """Uniform numbers for the load, keys, values, updates' values and places, slots and fillers."""
        most, fillers = self.span[1], self.length * (self.filler == "random")
        return 1, self.keys, most if self.repeat_values else self.values, self.updates, most, self.slots, fillers
