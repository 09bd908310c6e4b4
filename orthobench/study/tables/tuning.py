"""The learning rates that a fair table tries before anything is reported.

tuning:
  seeds: [101, 102]                     none of them is a seed of the table
  lr: [3e-2, 1e-2, 3e-3, 1e-3, 3e-4]    five or more rates, each 1 or 3 times a power of ten, none left out between them
  ratio: [1, 0.1]                       rate of the constrained parameters as a multiple of that of the others

Every rate with every ratio is a choice, `1e-2` or `1e-2x0.1`. Where the best choice lies at an edge of the rates, the
next rate beyond it is tried as well, up to GROWTH of them on either side.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from orthobench.common.schema import coerce
from orthobench.errors import ConfigError

LEAST, GROWTH = 5, 3
RATE = re.compile(r"([13])e([+-]?\d{1,3})")


@dataclass(frozen=True)
class Tuning:
    """Tuning of the rates of a fair table.

    Attributes:
        seeds: those of the runs that decide; the table's own seeds are reported.
        steps: the rates that are tried at first, the least one first, as places on the ladder 1e-3, 3e-3, 1e-2, ...
        ratios: of the constrained parameters' rate to the others'.
    """

    seeds: tuple[int, ...]
    steps: tuple[int, ...]
    ratios: tuple[str, ...]

    @classmethod
    def of(cls, given: dict[str, Any], seeds: Iterable[int], place: str) -> "Tuning":
        """`tuning:` of a table, checked.

        Raises:
            ConfigError: a key or a rate is wrong, or a tuning seed is one of those reported.
        """
        unknown = [key for key in given if key not in ("seeds", "lr", "ratio")]
        if unknown or "seeds" not in given or "lr" not in given:
            raise ConfigError(
                f"{place}: seeds and lr are needed, ratio may be given: not {', '.join(map(str, given))}."
            )
        own = coerce(given["seeds"], list[int], f"{place}.seeds")
        reported, counts = set(seeds), Counter(own)
        twice = sorted(seed for seed, count in counts.items() if seed in reported or count > 1)
        if twice or not own:
            raise ConfigError(
                f"{place}.seeds={own}: one or more seeds are needed, none twice, none of the table's own."
            )
        steps = sorted(_step(str(rate), f"{place}.lr") for rate in coerce(given["lr"], list[Any], f"{place}.lr"))
        if len(steps) < LEAST or steps != list(range(steps[0], steps[0] + len(steps))):
            raise ConfigError(f"{place}.lr: {LEAST} or more rates in a row are needed, such as 1e-4, 3e-4, 1e-3, ...")
        values = coerce(given.get("ratio", [1, 0.1]), list[float], f"{place}.ratio")
        ratios = tuple(f"{value:g}" for value in values)
        if len(set(ratios)) < max(1, len(ratios)) or min(values) <= 0:
            raise ConfigError(f"{place}.ratio: different numbers above 0 are needed, such as [1, 0.1].")
        return cls(tuple(own), tuple(steps), ratios)

    @property
    def choices(self) -> dict[str, list[str]]:
        """Words by name of every choice that may ever be tried."""
        reach = range(self.steps[0] - GROWTH, self.steps[-1] + GROWTH + 1)
        return {self.choice(step, ratio): _words(step, ratio) for step in reach for ratio in self.ratios}

    @staticmethod
    def choice(step: int, ratio: str) -> str:
        """The name of a choice: `1e-2`, or `1e-2x0.1` where the constrained parameters have a tenth of that rate."""
        return _rate(step) + ("" if float(ratio) == 1 else f"x{ratio}")

    def beyond(self, steps: list[int], choice: str) -> int | None:
        """The rate to try next after these, where the best choice among them lies at an edge; else None."""
        step = _step(_parts(choice)[0], "lr")
        if step == steps[0] and step > self.steps[0] - GROWTH:
            return step - 1
        if step == steps[-1] and step < self.steps[-1] + GROWTH:
            return step + 1
        return None


def rate_of(choice: str) -> tuple[float, float]:
    """The rate of a choice, and the ratio of that of the constrained parameters, by its name."""
    rate, ratio = _parts(choice)
    return float(rate), float(ratio)


def _parts(choice: str) -> tuple[str, str]:
    rate, _, ratio = choice.partition("x")
    return rate, ratio or "1"


def _rate(step: int) -> str:
    return f"{(1, 3)[step % 2]}e{step // 2}"


def _step(rate: str, place: str) -> int:
    found = RATE.fullmatch(rate)
    if found is None:
        raise ConfigError(f"{place}: {rate} is not 1 or 3 times a power of ten: write one, such as 1e-3 or 3e-3.")
    return 2 * int(found[2]) + (found[1] == "3")


def _words(step: int, ratio: str) -> list[str]:
    rate = _rate(step)
    words = [f"optimizer.lr={rate}"]
    if float(ratio) != 1:
        words.append(f"optimizer.lr_recurrent={float(Decimal(rate) * Decimal(ratio))!r}")
    return words
