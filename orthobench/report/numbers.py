"""The published numbers of a table beside ours, as grids."""

from collections.abc import Sequence

from orthobench.report.document import Grid
from orthobench.report.quantities import NOTHING, Ends, Quantity, Shown, number, spread
from orthobench.study.statistics.statistics import Scores, share_interval, t_interval
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
    rows = [cells(compared, comparison) for compared in found]
    caption = columns.pop() if len(columns) == 1 else ""
    return grid(comparison, HEADERS, rows, found, frozenset(aside), caption)


def counts(comparison: Comparison) -> Grid:
    """The counts of parameters, which need no run."""
    found = [compared for compared in comparison.numbers if compared.printed.counts]
    rows: list[list[Shown]] = [
        [one.printed.label, one.printed.column, published(one.printed), same_protocol(one), str(one.verdict)]
        for one in found
    ]
    return grid(comparison, COUNT_HEADERS, rows, found)


def cells(compared: Compared, comparison: Comparison) -> list[Shown]:
    """Cells of a number, in the order of HEADERS."""
    printed, scores = compared.printed, compared.scores
    decimals, chosen = finer(compared), printed.kind != "exact" and printed.select != "none"
    runs = Quantity(len(compared.runs), after=comparison.made_by.mark(compared.runs)) if compared.runs else NOTHING
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
        NOTHING if difference is None else Quantity(difference, decimals, signed=True),
        str(compared.verdict),
        _converged(compared) if scores.done else NOTHING,
        runs,
    ]


def places(printed: Published) -> int:
    """Decimals of a number; those that it was printed with, and four where it is lost."""
    return 4 if printed.decimals is None else max(printed.decimals, 0)


def finer(compared: Compared) -> int:
    """Decimals of ours: one more than printed where it is a mean over seeds and the test set resolves it."""
    printed = places(compared.printed)
    resolved = compared.resolution * (1 - 1e-9) <= 10.0 ** -(printed + 1)
    return printed + (compared.printed.kind != "exact" and compared.derived is None and resolved)


def published(printed: Published) -> Shown:
    """The published number as it was printed, with its spread; `lost` where there is none."""
    if printed.value is None:
        return "lost"
    side = {"lower": "at least ", "upper": "at most ", None: ""}[printed.side]
    before = f"{side}{'about' if printed.rounding else ''}".rstrip()
    return Quantity(printed.value, places(printed), half=printed.sd, before=before, written=printed.printed or "")


def paper_runs(printed: Published) -> Shown:
    """Number of runs behind a published number, and which of their weights were scored."""
    if printed.value is None or printed.kind == "exact":
        return NOTHING
    return Quantity(printed.seeds, written=", ".join(filter(None, (str(printed.seeds), SHORT.get(printed.select)))))


def protocol(comparison: Comparison) -> str:
    """Weights that the paper scored, if one answer holds for the whole table."""
    chosen = {c.printed.select for c in comparison.numbers if c.printed.kind == "result"} - {"none"}
    return " and ".join(SELECTS[select] for select in sorted(chosen))


def mean(scores: Scores, places: int, bounds: Ends = (None, None), resolution: float = 0.0) -> Shown:
    """The mean of our seeds with its 95 % interval, and how many they are.

    `resolution` is the least difference of two scores, below which no interval goes.
    """
    if not scores.done:
        return NOTHING
    interval = None if scores.diverged else t_interval(scores.values, resolution)
    of = f" of {scores.done}" if scores.diverged else ""
    return spread(scores.mean, places, interval, bounds, f"(n={len(scores.values)}{of})")


def same_protocol(compared: Compared) -> Shown:
    """Ours under the paper's own protocol, with the interval in which one published result is expected."""
    scores, interval, places = compared.scores, compared.interval, finer(compared)
    if compared.derived is None and not scores.done:
        return NOTHING
    if scores.diverged:
        return Quantity(compared.ours, places, after=f"(n={len(scores.values)} of {scores.done})")
    if interval is not None and compared.vague:
        return Quantity(compared.ours, places, after="[says nothing]")
    return Quantity(compared.ours, places, ends=interval)


def grid(
    comparison: Comparison,
    headers: tuple[str, ...],
    rows: list[list[Shown]],
    compared: Sequence[Compared],
    aside: frozenset[str] = frozenset(),
    caption: str = "",
) -> Grid:
    """Compared numbers as a grid, with the runs and the reason behind each; a shortened table has no status."""
    kept = [i for i, header in enumerate(headers) if comparison.preset == FULL or header != "status"]
    details = [one.verdict.detail for one in compared]
    shown = [[row[i] for i in kept] for row in rows]
    statuses = [one.verdict.word for one in compared]
    return Grid(
        [headers[i] for i in kept],
        shown,
        NUMERIC,
        runs=[one.runs for one in compared],
        statuses=statuses,
        details=details,
        aside=aside,
        caption=caption,
    )


def _is_beside(compared: Compared) -> bool:
    """Return True if ours under the paper's protocol is that of the best validation or of the last weights."""
    printed = compared.printed
    return printed.kind == "result" and printed.select in ("best_val", "last") and printed.metric not in DERIVED


def _converged(compared: Compared) -> Shown:
    done, diverged = compared.scores.done, compared.scores.diverged
    if compared.printed.kind == "exact":
        return NOTHING
    return Quantity(done - diverged, of=done, ends=share_interval(done - diverged, done) if diverged else None)
