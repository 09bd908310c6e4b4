"""Cells of a grid: words, or a number with what stands around it. A number is made text only where it is written."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from orthobench.study.statistics.horizon import in_words
from orthobench.study.statistics.status import Interval, clipped

NOTHING = ""
ROUNDING = 1e-9
LOSSES = 3  # decimals, from which on numbers are compared by their ratios
Ends = tuple[float | None, float | None]  # of a metric's values


@dataclass(frozen=True)
class Quantity:
    """Number in a cell; `str` of it is what is read.

    Attributes:
        value: the number; None where no run gave one, which is read as `none`.
        decimals: how many are read, and in powers of ten where these would show nothing of it.
        half: half the width of its interval, read behind ±.
        ends: the ends of its interval, read in brackets; they stand alone where there is no value.
        to: the upper end of a range that begins at the value.
        of: the whole of which it is a count; `ends` are then those of its share.
        before: words before it, such as `at least`.
        after: words behind it, such as `(n=5)` or a unit.
        signed: also a plus is read, of the ends too.
        written: what is read in place of all this, such as a number as a paper printed it.
    """

    value: float | None
    decimals: int = 0
    half: float | None = None
    ends: Interval | None = None
    to: float | None = None
    of: int | None = None
    before: str = ""
    after: str = ""
    signed: bool = False
    written: str = ""

    @property
    def order(self) -> float | None:
        """Number by which a column is sorted; None for none."""
        return self.ends[0] if self.value is None and self.ends else self.value

    def __str__(self) -> str:
        if self.written:
            return self.written
        text = "" if self.value is None and self.ends else self._text(self.value) or "none"
        if self.to is not None and (end := self._text(self.to)) != text:
            text += f" to {end}"
        text += "" if self.of is None else f"/{self.of}"
        half = "" if self.half is None else f"± {self._text(self.half)}"
        ends = "" if self.ends is None else f"[{', '.join(map(self._end, self.ends))}]"
        return " ".join(filter(None, (self.before, text, half, ends, self.after)))

    def _text(self, value: float | None) -> str:
        return f"{value:+,.{self.decimals}f}" if self.signed else digits(value, self.decimals)

    def _end(self, value: float) -> str:
        return self._text(value) if self.of is None else f"{value:.2f}"


Shown = str | Quantity


def digits(value: float | None, decimals: int) -> str:
    """A number with so many decimals, or two digits where these would show too little of it; empty for none.

    One or two decimals are for scores and times, of which less is nothing; more are for losses, which are compared by
    their ratios, and may be wrong by a tenth at most.
    """
    if value is None:
        return NOTHING
    if value == inf:
        return "beyond"
    least = 0.5 if decimals < LOSSES else 5
    if value and abs(value) < least * 10.0**-decimals:
        return f"{value:.2g}"
    return f"{value:,.{decimals}f}"


def number(value: float | None, decimals: int) -> Shown:
    """A number as a cell; an empty one where there is none."""
    return NOTHING if value is None else Quantity(value, decimals)


def exact(value: float) -> Quantity:
    """A number that is read as Python writes it, such as a seed."""
    return Quantity(value, written=str(value))


def spread(
    middle: float | None, decimals: int, interval: Interval | None, bounds: Ends = (None, None), after: str = ""
) -> Quantity:
    """A mean with half of its interval; with the ends where bounds cut that off, or where it has no width.

    A mean that is far smaller than its interval is what rounding left of zero.
    """
    if interval is None:
        return Quantity(middle, decimals, after=after)
    if middle is not None and abs(middle) < ROUNDING * (interval[1] - interval[0]):
        middle = 0.0
    if (ends := clipped(interval, bounds)) != interval or ends[0] == ends[1]:
        return Quantity(middle, decimals, ends=ends, after=after)
    return Quantity(middle, decimals, half=(interval[1] - interval[0]) / 2, after=after)


def ranked(span: Sequence[int] | None) -> Shown:
    """The best and the worst rank that are open, such as `1-8`, or the one that is sure; empty for none."""
    return NOTHING if span is None else Quantity(span[0], written="-".join(map(str, dict.fromkeys(span))))


def horizon(length: int | None, holes: Sequence[int]) -> Quantity:
    """A horizon, and the tested lengths below it that are not held."""
    return Quantity(length, written=in_words(length, holes))
