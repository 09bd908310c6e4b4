"""Multi-query associative recall with a load: D pairs in front, then every key once more, where its value is due.

Key and value take two steps each, without gaps. Then come slots of two steps. Every key is asked once, at the first
step of a slot; which slots is drawn without replacement, with probabilities that grow as i^(gap_power - 1) with the
number i of the slot, or uniformly. The value is due where the key is asked and is not shown there. So the load is D and
the time that it is kept is that of the slots. With `updates`, some keys are written a second time with another value,
and the last one counts.
Arora, Eyuboglu, Timalsina, Johnson, Poli, Zou, Rudra & Ré (2024), "Zoology: Measuring and Improving Recall in Efficient
Language Models", section 3 and appendix E. There the values of a sequence differ, as with `repeat_values=false`.

With `compositional`, key a s + b of s^2 keys is two tokens, a of s first ones and b of s second ones. A write takes
three steps, and a question both steps of its slot; the value is due at the second one.

Tokens: blank 0, then the keys (or first and second parts), then the values, then with `filler=random` as many tokens
that stand for nothing.
"""

import math
from pathlib import Path
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
    """Multi-query associative recall with a load of D pairs (Arora et al. 2024).

    A batch is x (B, L), tokens, target (B, L), the values, and mask (B, L), L the steps of the longest sequence.

    Args:
        pairs: least and greatest number D of pairs, which `eval_lengths` are numbers of, too.
        length: steps of a sequence; by its D when null: 16 D, and 4 D + 64 for more than 16 pairs.
        keys: how many different keys there are.
        values: how many different values there are.
        updates: how many of the keys are written twice.
        repeat_values: whether two pairs of a sequence may have one value.
        filler: what is between the questions: blanks, or random tokens that stand for nothing.
        gap: how the slots of the questions are drawn: all alike (`uniform`), or more often soon after the pairs
            (`power`).
        gap_power: a, with gap=power; 0.01 asks most soon after the pairs, 1 is uniform.
        compositional: whether a key is two tokens, of which `keys`, a square, has the root of each kind.
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
        compositional: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.compositional, self.root = compositional, math.isqrt(keys)
        if compositional and self.root**2 != keys:
            raise ConfigError(
                f"task.keys={keys} is no square, which task.compositional=true needs: take 16, 64 or 256."
            )
        self.key_tokens, self.write_steps = (2 * self.root, 3) if compositional else (keys, 2)
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
        least = (self.write_steps + 2) * most + self.write_steps * updates
        if length is not None and (length < least or length % 2):
            text = f"task.length={length} does not fit {most} pairs and {updates} updates"
            steps = "three steps for each write and two for each question" if compositional else "two steps for each"
            raise ConfigError(f"{text}: it must be even and >= {least + 1 & ~1}, {steps}.")
        loads = np.arange(low, most + 1)
        self.length, self.answers = int(self.steps(loads).max()), most
        self.counted = most
        self.slots = int(self._slots(loads).max())
        if (short_of := int((self._slots(loads) - loads).min())) < 0:
            raise ConfigError(
                f"task.pairs=[{low},{most}] needs {-2 * short_of} more steps: set task.length={least + 1 & ~1}."
            )
        self.input_size, self.output_size = 1 + self.key_tokens + values * (1 + (filler == "random")), values
        self.width = sum(self._widths)
        self.chance = 1 / values
        self.baseline = {"loss": math.log(values), "accuracy": self.chance, "score": 0.0}

    def steps(self, pairs: np.ndarray) -> np.ndarray:
        """Steps of sequences by their numbers of pairs."""
        if self.own_length is not None:
            return np.full_like(pairs, self.own_length)
        return np.where(pairs <= MANY, 16 * pairs, 4 * pairs + 64) + 4 * self.updates

    def _slots(self, pairs: np.ndarray) -> np.ndarray:
        """Slots behind the writes of sequences, by their numbers of pairs."""
        return (self.steps(pairs) - self.write_steps * (pairs + self.updates)) // 2

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
        w = self.write_steps
        if self.filler == "random":
            step = np.arange(self.length)
            x[:] = (1 + self.key_tokens + self.values + whole(u_filler, 0, self.values - 1)) * (step < length)
            x *= step >= w * (D + U)
        written, later = (rows + w * pair)[shown], rows + w * (D + np.arange(U))
        self._put(x, written, keys[shown])
        self._put(x, later, np.take_along_axis(keys, again, 1))
        x.ravel()[written + w - 1], x.ravel()[later + w - 1] = (
            1 + self.key_tokens + values for values in (first[shown], other)
        )
        # the places of the smallest of exponential numbers with rates p are draws without replacement by p
        slot, there = np.arange(self.slots), self._slots(D)
        waits = -np.log1p(-u_slots) * (1 + slot) ** (1 - self.power)
        chosen = np.argsort(np.where(slot < there, waits, np.inf), axis=1, kind="stable")[:, :most]
        asked = (rows + w * (D + U) + 2 * chosen)[shown]
        self._put(x, asked, keys[shown])
        due = asked + self.compositional
        target.ravel()[due], mask.ravel()[due] = value[shown], 1
        return x, target, mask

    def _put(self, x: np.ndarray, places: np.ndarray, keys: np.ndarray) -> None:
        """Write the tokens of keys, one or two, from some places of all steps on."""
        if self.compositional:
            x.ravel()[places], x.ravel()[places + 1] = 1 + keys // self.root, 1 + self.root + keys % self.root
        else:
            x.ravel()[places] = 1 + keys

    @staticmethod
    def resolve(given: dict[str, Any], data_root: Path) -> dict[str, Any]:
        given = Varied.resolve(given, data_root)
        return {key: value for key, value in given.items() if key != "compositional" or value}

    @property
    def _widths(self) -> tuple[int, ...]:
        """Uniform numbers for the load, keys, values, updates' values and places, slots and fillers."""
        most, fillers = self.span[1], self.length * (self.filler == "random")
        return 1, self.keys, most if self.repeat_values else self.values, self.updates, most, self.slots, fillers
