"""Noisy recall: keys and values one after the other, some places with noise, and a key's value is due when it returns.

A sequence is made of places of two steps. A place holds two noise tokens with probability `noise`, or a key and its
value. Keys are uniform, with replacement; a key's value is uniform and stays the same within a sequence. Wherever a
key comes again its value is due at the step of the key, and follows it. Where no key would come again, the pair of the
first place comes at the last one.
Poli, Thomas, Nguyen, Ponnusamy, Deiseroth, Kersting, Suzuki, Hie, Ermon, Ré, Zhang & Massaroli (2024), "Mechanistic
Design and Scaling of Hybrid Architectures", section 3 (MAD).

Tokens: the keys, the values, then the noise. With `loss=all`, as there, the next token is to be told at every step but
the last, though most cannot be known; scores are over the steps that can.
"""

import math
from typing import Annotated, Any, Literal

import numpy as np
from torch import Tensor

from orthobench.common.schema import Positive, Range
from orthobench.errors import ConfigError
from orthobench.tasks.base import Task
from orthobench.tasks.drawn.varied import Varied, whole
from orthobench.tasks.lengths import Span, span
from orthobench.tasks.synthetic import Arrays


class NoisyRecall(Varied):
    """Noisy recall: the value of a key that comes again, among noise (Poli et al. 2024, MAD).

    A batch is x (B, L), tokens, target (B, L), values, or tokens with `loss=all`, and mask (B, L), L the steps of the
    longest sequence.

    Args:
        length: least and greatest number of steps, even.
        keys: how many different keys there are.
        values: how many different values there are.
        noise_symbols: how many different noise tokens there are.
        noise: the probability of a place with noise.
        loss: the steps that the loss is over: those where a value is due (`asked`), or all.
        **kwargs: see `Drawn`.

    Raises:
        ConfigError: an odd length, one in which no key need come twice, or several lengths with `loss=all`.
    """

    def __init__(
        self,
        length: Span = (64, 64),
        keys: Positive = 8,
        values: Annotated[int, Range(2)] = 8,
        noise_symbols: Positive = 16,
        noise: Annotated[float, Range(0.0, 0.95)] = 0.4,
        loss: Literal["asked", "all"] = "asked",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        low, high = self.span = span("length", length)
        if low % 2 or high % 2 or low < 4:
            raise ConfigError(f"task.length=[{low},{high}]: lengths must be even and >= 4, two steps for a place.")
        if loss == "all" and low != high:
            raise ConfigError(
                f"task.loss=all beside task.length=[{low},{high}] would ask for tokens of padding: use one length, or "
                "task.loss=asked."
            )
        self.keys, self.values, self.noise_symbols, self.noise, self.every = (
            keys,
            values,
            noise_symbols,
            noise,
            loss == "all",
        )
        self.length, self.places = high, high // 2
        self.input_size = keys + values + noise_symbols
        self.output_size = self.input_size if self.every else values
        self.width, self.answers, self.chance = 1 + 3 * self.places + keys, self.places - 1, 1 / values
        self.counted = None if self.every else self.answers
        self.baseline = {"accuracy": self.chance, "score": 0.0}
        if not self.every:
            self.baseline["loss"] = math.log(values)

    def sequences(self, u_BW: np.ndarray) -> Arrays:
        u_length, u_noise, u_key, u_other, u_value = np.split(u_BW, 1 + self.places * np.arange(4), axis=1)
        (low, high), place = self.span, np.arange(self.places)
        count = whole(u_length, low // 2, high // 2)
        inside, noisy, key = place < count, u_noise < self.noise, whole(u_key, 0, self.keys - 1)
        idle = np.nonzero(~self._asked(key, noisy, inside).any(1))[0]
        last = count[idle, 0] - 1
        noisy[idle, 0] = noisy[idle, last] = False
        key[idle, last] = key[idle, 0]
        value = np.take_along_axis(whole(u_value, 0, self.values - 1), key, 1)
        firsts = self.keys + self.values + whole(u_key, 0, self.noise_symbols - 1)
        seconds = self.keys + self.values + whole(u_other, 0, self.noise_symbols - 1)
        x = np.stack([np.where(noisy, firsts, key), np.where(noisy, seconds, self.keys + value)], axis=-1)
        x = x.reshape(len(x), -1) * np.repeat(inside, 2, axis=1)
        asked, mask = self._asked(key, noisy, inside), np.zeros(x.shape, dtype=np.float32)
        mask[:, ::2] = asked
        if self.every:
            target = np.concatenate([x[:, 1:], np.zeros((len(x), 1), dtype=np.int64)], axis=1)
            return x, target, mask
        target = np.zeros_like(x)
        target[:, ::2] = value * asked
        return x, target, mask

    def _asked(self, key: np.ndarray, noisy: np.ndarray, inside: np.ndarray) -> np.ndarray:
        """The places whose key has come at an earlier one."""
        told = np.where(noisy, -1, key)[:, :, None] == np.arange(self.keys)
        return ((np.cumsum(told, axis=1) > told) & told).any(-1) & inside

    def loss(self, y: Tensor, target: Tensor, mask: Tensor | None = None) -> Tensor:
        """Cross-entropy in nats, over the steps where a value is due, or over all that have a next token."""
        return Task.loss(self, y[:, :-1], target[:, :-1]) if self.every else super().loss(y, target, mask)
