"""The published numbers of a table beside ours, as lines of text."""

from collections.abc import Sequence

from orthobench.report.document import Grid
from orthobench.study.statistics.statistics import Scores, share_interval, t_interval
from orthobench.study.statistics.status import Interval, clipped
from orthobench.study.tables.published import DERIVED, Published
from orthobench.study.tables.table import FULL
from orthobench.study.verdicts.comparison import Compared, Comparison

BEST, LAST, PROTOCOL = "ours, best validation", "ours, last", "same protocol"
HEADERS = (
    "row", "column", "published", "paper's runs", "trivial", BEST, LAST, PROTOCOL, "difference", "status", "converged",
    "runs",
)  # fmt: skip
COUNT_HEADERS = ("row", "column", "published", "ours", "status")
NUMERIC = frozenset(HEADERS) - {"row", "column", "paper's runs", "status"} | {"ours"}
NOTHING = ""
Ends = tuple[float | None, float | None]  # of a metric's values
SELECTS = {"best_val": "best validation", "last": "last weights", "best_test": "best test score"}
SHORT = {"best_val": "best val", "last": "last", "best_test": "best test"}


def numbers(comparison: Comparison) -> Grid:
    """The scores, and everything else that is no count of parameters.

    Markdown and LaTeX have no room for a column that is the same in all rows, for the paper's own protocol where that
    is one of the two beside it, and for the interval of the converged seeds.
    """
    found = [compared for compared in comparison.numbers if not compared.printed.counts]
    columns = {compared.printed.column for compared in found}
    aside = {"converged"} | ({"column"} if len(columns) == 1 else set())
    if all(_is_beside(compared) for compared in found):
        aside.add(PROTOCOL)
    rows = [texts(compared, comparison) for compared in found]
    caption = columns.pop() if len(columns) == 1 else ""
    return grid(comparison, HEADERS, rows, found, frozenset(aside), caption)


def counts(comparison: Comparison) -> Grid:
    """The counts of parameters, which need no run."""
    found = [compared for compared in comparison.numbers if compared.printed.counts]
    rows = [
        [one.printed.label, one.printed.column, published(one.printed), same_protocol(one), str(one.verdict)]
        for one in found
    ]
    return grid(comparison, COUNT_HEADERS, rows, found)


def texts(compared: Compared, comparison: Comparison) -> list[str]:
    """Texts of a number, in the order of HEADERS."""
    printed, scores = compared.printed, compared.scores
    decimals, chosen = finer(compared), printed.kind != "exact" and printed.select != "none"
    runs = f"{len(compared.runs)} {comparison.made_by.mark(compared.runs)}" if compared.runs else NOTHING
    difference = compared.difference
    return [
        printed.label,
        printed.column,
        published(printed),
        paper_runs(printed),
        number(compared.trivial, places(printed) + 1),
        mean(compared.honest, decimals, compared.bounds, compared.resolution) if chosen else NOTHING,
        mean(compared.final, decimals, compared.bounds, compared.resolution) if chosen else NOTHING,
        same_protocol(compared),
        NOTHING if difference is None else f"{difference:+,.{decimals}f}",
        str(compared.verdict),
        _converged(compared) if scores.done else NOTHING,
        runs.strip(),
    ]


def number(value: float | None, decimals: int) -> str:
    """A number with so many decimals; in powers of ten where these would show nothing of it."""
    if value is None:
        return NOTHING
    if value and abs(value) < 0.5 * 10.0**-decimals:
        return f"{value:.2g}"
    return f"{value:,.{decimals}f}"


def ranked(span: Sequence[int] | None) -> str:
    """The best and the worst rank that are open, such as `1-8`, or the one that is sure; empty for none."""
    return "" if span is None else f"{span[0]}" if span[0] == span[1] else f"{span[0]}-{span[1]}"


def horizon_text(horizon: int | None, holes: Sequence[int]) -> str:
    """A horizon, and the tested lengths below it that are not held, such as `160, not 10 or 80`."""
    lengths = [str(length) for length in holes]
    listed = " or ".join(filter(None, (", ".join(lengths[:-1]), *lengths[-1:])))
    return f"{horizon or 'none'}{f', not {listed}' if listed else ''}"


def places(printed: Published) -> int:
    """Decimals of a number; those that it was printed with, and four where it is lost."""
    return 4 if printed.decimals is None else max(printed.decimals, 0)


def finer(compared: Compared) -> int:
    """Decimals of ours: one more than printed where it is a mean over seeds and the test set resolves it."""
    printed = places(compared.printed)
    resolved = compared.resolution * (1 - 1e-9) <= 10.0 ** -(printed + 1)
    return printed + (compared.printed.kind != "exact" and compared.derived is None and resolved)


def published(printed: Published) -> str:
    """The published number as it was printed, with its spread; `lost` where there is none."""
    if printed.value is None:
        return "lost"
    about = "about " if printed.rounding else ""
    side = {"lower": "at least ", "upper": "at most ", None: ""}[printed.side]
    spread = "" if printed.sd is None else f" ± {number(printed.sd, places(printed))}"
    return printed.printed or f"{side}{about}{number(printed.value, places(printed))}{spread}"


def paper_runs(printed: Published) -> str:
    """Number of runs behind a published number, and which of their weights were scored."""
    if printed.value is None or printed.kind == "exact":
        return NOTHING
    return ", ".join(filter(None, (str(printed.seeds), SHORT.get(printed.select))))


def protocol(comparison: Comparison) -> str:
    """Weights that the paper scored, if one answer holds for the whole table."""
    chosen = {c.printed.select for c in comparison.numbers if c.printed.kind == "result"} - {"none"}
    return " and ".join(SELECTS[select] for select in sorted(chosen))


def mean(scores: Scores, places: int, bounds: Ends = (None, None), resolution: float = 0.0) -> str:
    """The mean of our seeds and half of its 95 % interval, or where bounds cut that off, its ends; and how many.

    `resolution` is the least difference of two scores, below which no interval goes.
    """
    if not scores.done:
        return NOTHING
    middle = number(scores.mean, places) or "none"
    behind = spread(None if scores.diverged else t_interval(scores.values, resolution), places, bounds)
    return f"{middle}{behind} (n={len(scores.values)}{f' of {scores.done}' if scores.diverged else ''})"


def spread(interval: Interval | None, places: int, bounds: Ends = (None, None)) -> str:
    """Half of the interval of a mean; its ends where bounds cut it off, or where it has no width; empty for none."""
    if interval is None:
        return ""
    if (ends := clipped(interval, bounds)) != interval or ends[0] == ends[1]:
        return f" [{number(ends[0], places)}, {number(ends[1], places)}]"
    return f" ± {number((interval[1] - interval[0]) / 2, places)}"


def same_protocol(compared: Compared) -> str:
    """Ours under the paper's own protocol, with the interval in which one published result is expected."""
    scores, interval, places = compared.scores, compared.interval, finer(compared)
    if compared.derived is None and not scores.done:
        return NOTHING
    middle = number(compared.ours, places) or "none"
    if scores.diverged:
        return f"{middle} (n={len(scores.values)} of {scores.done})"
    if interval is None:
        return middle
    low, high = (number(end, places) for end in interval)
    return f"{middle} [says nothing]" if compared.vague else f"{middle} [{low}, {high}]"


def grid(
    comparison: Comparison,
    headers: tuple[str, ...],
    rows: list[list[str]],
    compared: Sequence[Compared],
    aside: frozenset[str] = frozenset(),
    caption: str = "",
) -> Grid:
    """Compared numbers as lines of text, with the runs and the reason behind each; a shortened table has no status."""
    kept = [i for i, header in enumerate(headers) if comparison.preset == FULL or header != "status"]
    runs, details = [" ".join(one.runs) for one in compared], [one.verdict.detail for one in compared]
    shown = [[row[i] for i in kept] for row in rows]
    statuses = [one.verdict.word for one in compared]
    return Grid(
        [headers[i] for i in kept],
        shown,
        NUMERIC,
        runs=runs,
        statuses=statuses,
        details=details,
        aside=aside,
        caption=caption,
    )


def _is_beside(compared: Compared) -> bool:
    """Return True if ours under the paper's protocol is that of the best validation or of the last weights."""
    printed = compared.printed
    return printed.kind == "result" and printed.select in ("best_val", "last") and printed.metric not in DERIVED


def _converged(compared: Compared) -> str:
    done, diverged = compared.scores.done, compared.scores.diverged
    if compared.printed.kind == "exact":
        return NOTHING
    if not diverged:
        return f"{done}/{done}"
    low, high = share_interval(done - diverged, done)
    return f"{done - diverged}/{done} [{low:.2f}, {high:.2f}]"
