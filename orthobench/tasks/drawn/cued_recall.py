"""Cued recall: the value that belongs to a key, when the key is seen again (multi-query associative recall).

P pairs are shown, key and value in two steps, and later every key once more in another order, all at random times among
blanks; at a key's second coming its value is due. P and the length L are drawn for every sequence by itself. Each of
the 2P events has a place among the L - 3P blanks that is drawn uniformly and independently; the earlier half are pairs.
Keys of a sequence differ, values are independent and uniform. After Arora et al. (2024), section 3, where the times of
queries follow a power law.

Tokens: blank 0, then the keys, then the values. Loss and scores are over the P queries. A predictor that answers with
the commonest value of the sequence, whatever is asked, scores more than 0, and recalls no pair: see `order_blind`.
"""

import math
from statistics import mean
from typing import Annotated, Any

import numpy as np

from orthobench.common.schema import Positive, Range
from orthobench.errors import ConfigError
from orthobench.tasks.drawn.varied import Varied, whole
from orthobench.tasks.lengths import Span, span
from orthobench.tasks.scaled import mean_of_most
from orthobench.tasks.synthetic import Arrays


class CuedRecall(Varied):
    """Cued recall: the value of a key that is seen again, at any time (after Arora et al. 2024).

    A batch is x (B, L), tokens, target (B, L), the values, and mask (B, L), L the steps of the longest sequence.

    Args:
        pairs: least and greatest number of pairs.
        length: least and greatest number of steps.
        keys: how many different keys there are.
        values: how many different values there are.
        **kwargs: see `Drawn`.

    Raises:
        ConfigError: more pairs than keys, or than the shortest sequence has room for.
    """

    def __init__(
        self,
        pairs: Span = (4, 16),
        length: Span = (64, 128),
        keys: Positive = 32,
        values: Annotated[int, Range(2)] = 8,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.pairs, self.span, self.keys, self.values = span("pairs", pairs), span("length", length), keys, values
        most = self.pairs[1]
        if most > keys:
            raise ConfigError(f"task.pairs=[{pairs[0]},{most}] needs as many keys: task.keys={keys} must be >= {most}.")
        if 3 * most > self.span[0]:
            text = f"task.length=[{length[0]},{length[1]}] is too short for {most} pairs"
            raise ConfigError(f"{text}: its lower end must be >= {3 * most}, three steps for each.")
        self.input_size, self.output_size = 1 + keys + values, values
        self.length, self.width, self.answers = self.span[1], 2 + 4 * most + keys, most
        self.counted = most
        self.chance = 1 / values
        self.baseline = {"loss": math.log(values), "accuracy": self.chance, "score": 0.0}

    @property
    def order_blind(self) -> dict[str, float]:
        """Score of a predictor that gives the commonest value of the sequence at every query; P is uniform
        over its range.
        """
        low, high = self.pairs
        accuracy = mean(mean_of_most(pairs, self.values) / pairs for pairs in range(low, high + 1))
        return self.blind(accuracy)

    def sequences(self, u_BW: np.ndarray) -> Arrays:
        most, rows = self.pairs[1], np.arange(len(u_BW))[:, None]
        u_length, u_pairs, u_times, u_order, u_values, u_keys = np.split(u_BW, self._parts, axis=1)
        length, pairs = whole(u_length, *self.span), whole(u_pairs, *self.pairs)
        event = np.arange(2 * most)
        places = np.sort(np.where(event < 2 * pairs, u_times, 2.0), axis=1)
        # the blanks before an event, the two steps of every pair before it and the one of every query
        times = whole(places, 0, length - 3 * pairs) + event + np.minimum(event, pairs) + rows * self.length
        shown, asked = event[:most] < pairs, (event >= pairs) & (event < 2 * pairs)
        store, query = times[:, :most][shown], times[asked]
        keys = 1 + np.argsort(u_keys, axis=1)[:, :most]
        values = whole(u_values, 0, self.values - 1)
        order = np.argsort(np.where(shown, u_order, 2.0), axis=1)
        x = np.zeros((len(u_BW), self.length), dtype=np.int64)
        target, mask = np.zeros_like(x), np.zeros(x.shape, dtype=np.float32)
        x.ravel()[store] = keys[shown]
        x.ravel()[store + 1] = 1 + self.keys + values[shown]
        x.ravel()[query] = np.take_along_axis(keys, order, 1)[shown]
        target.ravel()[query] = np.take_along_axis(values, order, 1)[shown]
        mask.ravel()[query] = 1
        return x, target, mask

    @property
    def _parts(self) -> list[int]:
        most = self.pairs[1]
        return [1, 2, 2 + 2 * most, 2 + 3 * most, 2 + 4 * most]
