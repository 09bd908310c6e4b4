"""How numbers, intervals and counts read in a table, the same in Markdown, CSV, LaTeX and HTML."""

from orthobench.analysis.comparison import Compared, Comparison, centre
from orthobench.analysis.published import Published
from orthobench.analysis.statistics import t_interval, wilson

HEADERS = (
    "row",
    "column",
    "published",
    "ours, best validation",
    "same protocol",
    "difference",
    "status",
    "converged",
    "runs",
)
CLAIM_HEADERS = ("claim", "of", "section", "status", "runs")
NOTHING = ""
SELECTS = {"best_val": "best validation", "last": "last weights", "best_test": "best test score"}


def title(comparison: Comparison) -> str:
    """`Table 1`, `Figure 2`."""
    word = comparison.table.name.split("/")[1]
    kind = word.rstrip("0123456789")
    return f"{kind.capitalize()} {word.removeprefix(kind)}"


def number(value: float | None, decimals: int) -> str:
    """A number with so many decimals; in powers of ten where these would show nothing of it."""
    if value is None:
        return NOTHING
    if value and abs(value) < 0.5 * 10.0**-decimals:
        return f"{value:.2g}"
    return f"{value:,.{decimals}f}"


def decimals(value: float) -> int:
    """Decimals that a number was printed with, at least as far as its value tells."""
    text = f"{value:.10f}".rstrip("0")
    return len(text.partition(".")[2])


def column_decimals(comparison: Comparison) -> dict[str, int]:
    """Decimals by column; those of the number that has most."""
    found: dict[str, int] = {}
    for compared in comparison.numbers:
        value = compared.row.value
        found[compared.row.column] = max(found.get(compared.row.column, 0), 4 if value is None else decimals(value))
    return found


def published(row: Published, places: int) -> str:
    """The published number, with its spread; why there is none."""
    if row.value is None:
        return "lost"
    about = "about " if row.rounding else ""
    side = {"lower": "at least ", "upper": "at most ", None: ""}[row.side]
    spread = "" if row.sd is None else f" ± {number(row.sd, places)}"
    return f"{side}{about}{number(row.value, places)}{spread}"


def cells(compared: Compared, places: int) -> list[str]:
    """One line of a table, in the order of HEADERS."""
    row, scores = compared.row, compared.scores
    finer = places + 1 if row.kind != "exact" and compared.derived is None else places
    difference = compared.difference
    return [
        row.row,
        row.column,
        published(row, places),
        _honest(compared, finer) if row.kind == "result" and row.select != "none" else NOTHING,
        _same_protocol(compared, finer),
        NOTHING if difference is None else f"{difference:+,.{finer}f}",
        str(compared.verdict),
        _converged(compared) if scores.done else NOTHING,
        str(len(compared.runs)) if compared.runs else NOTHING,
    ]


def claim_cells(compared: Compared) -> list[str]:
    """One claim, in the order of CLAIM_HEADERS."""
    row = compared.row
    runs = str(len(compared.runs)) if compared.runs else NOTHING
    return [row.claim or "", f"{row.row}, {row.column}", row.section, str(compared.verdict), runs]


def protocol(comparison: Comparison) -> str:
    """Which weights the paper scored, where one answer holds for the whole table."""
    chosen = {c.row.select for c in comparison.numbers if c.row.kind == "result"} - {"none"}
    return " and ".join(SELECTS[select] for select in sorted(chosen))


def _honest(compared: Compared, places: int) -> str:
    scores = compared.honest
    if not scores.done:
        return NOTHING
    middle = number(centre(scores, compared.row), places)
    if scores.diverged:
        return f"median {middle or 'none'} (n={scores.done})"
    interval = t_interval(scores.values)
    spread = "" if interval is None else f" ± {number((interval[1] - interval[0]) / 2, places)}"
    return f"{middle}{spread} (n={scores.done})"


def _same_protocol(compared: Compared, places: int) -> str:
    if compared.derived is None and not compared.scores.done:
        return NOTHING
    middle = number(compared.ours, places)
    if compared.scores.diverged:
        return f"median {middle or 'none'}"
    interval = compared.interval
    return middle if interval is None else f"{middle} [{number(interval[0], places)}, {number(interval[1], places)}]"


def _converged(compared: Compared) -> str:
    done, diverged = compared.scores.done, compared.scores.diverged
    if compared.row.kind == "exact":
        return NOTHING
    if not diverged:
        return f"{done}/{done}"
    low, high = wilson(done - diverged, done)
    return f"{done - diverged}/{done} [{low:.2f}, {high:.2f}]"
