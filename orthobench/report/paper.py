"""The tables of a paper as a document: published numbers and claims beside ours, in the words of a table."""

from pathlib import Path

from orthobench.analysis.comparison import Compared, Comparison, compare, presets
from orthobench.analysis.published import Published
from orthobench.analysis.statistics import t_interval, wilson
from orthobench.analysis.ucr import ranking_lines
from orthobench.config import table as experiment
from orthobench.config.table import FAIR, FULL
from orthobench.report import document
from orthobench.report.document import Document, Grid, Section

INTRODUCTION = """\
Published numbers beside ours, written by `orthobench tables`; how statuses are decided stands in
[judging.md](../../docs/judging.md). *ours, best validation*: mean ± half of the 95 % interval over n seeds, of
the weights with the best validation score. *same protocol*: the paper's own selection, with the 95 % prediction
interval of one published result. *converged*: seeds that did not diverge; a mean is that of these.
"""
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
CLAIM_HEADERS = ("claim", "of", "kind", "section", "status", "runs")
NUMERIC = frozenset({"published", "ours, best validation", "same protocol", "difference", "converged", "runs"})
NOTHING = ""
SELECTS = {"best_val": "best validation", "last": "last weights", "best_test": "best test score"}


def filled(name: str, results: Path, folders: tuple[Path, ...] = (), drawn: bool = False) -> Document:
    """A paper's document; with figures where `drawn`."""
    found = comparisons(name, results, folders)
    sections = tuple(section(one, results if drawn else None) for one in found)
    full = [one for one in found if one.preset == FULL]
    statuses = tuple(compared.verdict.word for one in full for compared in (*one.numbers, *one.claims))
    return Document(name, INTRODUCTION, sections, _data(found), statuses)


def comparisons(name: str, results: Path, folders: tuple[Path, ...] = ()) -> list[Comparison]:
    """Every table of a paper in full, each followed by its shortened versions that have records."""
    names = [table for table in experiment.tables(folders) if table.startswith(f"{name}/")]
    order = sorted(names, key=lambda table: (not table.startswith(f"{name}/table"), table))
    tables = [table for one in order if (table := experiment.load(one, folders)).track != FAIR]
    return [compare(table, results, preset) for table in tables for preset in (FULL, *presets(table.name, results))]


def section(comparison: Comparison, results: Path | None = None) -> Section:
    """One table; with the figures of the curves under `results`, where that is given."""
    from orthobench.report.figures import figures

    table, preset = comparison.table, comparison.preset
    return Section(
        anchor=document.anchor(table.name, preset),
        title=document.title(table.title, preset),
        heading=document.heading(table, preset),
        facts=_facts(comparison),
        records=document.records_of(table, comparison.lines),
        grids=(numbers(comparison), claims(comparison)),
        paragraphs=tuple(ranking_lines(comparison)),
        notes=tuple(footnotes(comparison)),
        figures={} if results is None else figures(comparison, results),
        provenance=document.provenance(comparison.lines),
    )


def numbers(comparison: Comparison) -> Grid:
    """The published numbers beside ours; a shortened table has no status."""
    rows = [_number(compared) for compared in comparison.numbers]
    return _grid(comparison, HEADERS, rows, comparison.numbers)


def claims(comparison: Comparison) -> Grid:
    """The claims; a shortened table has no status."""
    rows = [_claim(compared) for compared in comparison.claims]
    return _grid(comparison, CLAIM_HEADERS, rows, comparison.claims)


def footnotes(comparison: Comparison) -> list[str]:
    """Notes on single rows and on lost numbers, then the deviations of the runs from the paper's."""
    noted = [c.printed for c in (*comparison.numbers, *comparison.claims) if c.printed.note]
    notes = [f"{one.label}, {one.column}: {one.note}" for one in noted]
    lost = sorted({c.printed.reason for c in comparison.numbers if c.printed.reason})
    return list(dict.fromkeys([*comparison.notes, *notes, *(str(reason) for reason in lost), *comparison.table.notes]))


def _grid(
    comparison: Comparison, headers: tuple[str, ...], rows: list[list[str]], compared: tuple[Compared, ...]
) -> Grid:
    kept = [i for i, header in enumerate(headers) if comparison.preset == FULL or header != "status"]
    runs, details = [" ".join(one.runs) for one in compared], [one.verdict.detail for one in compared]
    texts = [[row[i] for i in kept] for row in rows]
    return Grid([headers[i] for i in kept], texts, NUMERIC, runs=runs, details=details)


def _facts(comparison: Comparison) -> tuple[str, ...]:
    table = comparison.table
    margins = ", ".join(f"{name} {value:g}" for name, value in table.margin.items()) or "none"
    chosen = protocol(comparison)
    return (
        f"Track {table.track}, {len(table.planned(comparison.preset))} seeds, margin {margins}",
        *([f"the paper scores the {chosen}"] if chosen else []),
        *([f"needs {table.needs}"] if table.needs else []),
    )


def _data(found: list[Comparison]) -> Grid:
    """All numbers and claims of a paper with the sentence behind each status, and the records that fill nothing.

    What a claim is of stands in the column `row`.
    """
    lines = []
    for comparison in found:
        for kind, grid in (("number", numbers(comparison)), ("claim", claims(comparison))):
            for row, detail in zip(grid.rows, grid.details, strict=True):
                named = dict(zip(grid.headers, row, strict=True))
                named["row"] = named.get("row", named.get("of", ""))
                texts = [named.get(header, "") for header in (*HEADERS, "claim")]
                texts.append(detail if "status" in named else "")
                lines.append([comparison.table.name, comparison.preset, kind, *texts])
        told = ([comparison.table.name, comparison.preset, "record", *[""] * 10, note] for note in comparison.notes)
        lines += told
    return Grid(["table", "preset", "kind", *HEADERS, "claim", "detail"], lines)


def number(value: float | None, decimals: int) -> str:
    """A number with so many decimals; in powers of ten where these would show nothing of it."""
    if value is None:
        return NOTHING
    if value and abs(value) < 0.5 * 10.0**-decimals:
        return f"{value:.2g}"
    return f"{value:,.{decimals}f}"


def places(printed: Published) -> int:
    """Decimals of a number; those that it was printed with, and four where it is lost."""
    return 4 if printed.decimals is None else max(printed.decimals, 0)


def published(printed: Published) -> str:
    """The published number as it was printed, with its spread; `lost` where there is none."""
    if printed.value is None:
        return "lost"
    about = "about " if printed.rounding else ""
    side = {"lower": "at least ", "upper": "at most ", None: ""}[printed.side]
    spread = "" if printed.sd is None else f" ± {number(printed.sd, places(printed))}"
    return printed.printed or f"{side}{about}{number(printed.value, places(printed))}{spread}"


def _number(compared: Compared) -> list[str]:
    """One number, in the order of HEADERS."""
    printed, scores = compared.printed, compared.scores
    finer = places(printed) + (printed.kind != "exact" and compared.derived is None)
    difference = compared.difference
    return [
        printed.label,
        printed.column,
        published(printed),
        _honest(compared, finer) if printed.kind == "result" and printed.select != "none" else NOTHING,
        _same_protocol(compared, finer),
        NOTHING if difference is None else f"{difference:+,.{finer}f}",
        str(compared.verdict),
        _converged(compared) if scores.done else NOTHING,
        str(len(compared.runs)) if compared.runs else NOTHING,
    ]


def _claim(compared: Compared) -> list[str]:
    """One claim, in the order of CLAIM_HEADERS."""
    printed = compared.printed
    runs = str(len(compared.runs)) if compared.runs else NOTHING
    of, kind = f"{printed.label}, {printed.column}", printed.claim_kind
    return [printed.claim or "", of, kind, printed.section, str(compared.verdict), runs]


def protocol(comparison: Comparison) -> str:
    """Which weights the paper scored, where one answer holds for the whole table."""
    chosen = {c.printed.select for c in comparison.numbers if c.printed.kind == "result"} - {"none"}
    return " and ".join(SELECTS[select] for select in sorted(chosen))


def _honest(compared: Compared, places: int) -> str:
    scores = compared.honest
    if not scores.done:
        return NOTHING
    middle = number(scores.mean, places) or "none"
    interval = None if scores.diverged else t_interval(scores.values)
    spread = "" if interval is None else f" ± {number((interval[1] - interval[0]) / 2, places)}"
    return f"{middle}{spread} (n={len(scores.values)}{f' of {scores.done}' if scores.diverged else ''})"


def _same_protocol(compared: Compared, places: int) -> str:
    scores, interval = compared.scores, compared.interval
    if compared.derived is None and not scores.done:
        return NOTHING
    middle = number(compared.ours, places) or "none"
    if scores.diverged:
        return f"{middle} (n={len(scores.values)} of {scores.done})"
    if interval is None:
        return middle
    low, high = (number(end, places) for end in interval)
    return f"{middle} [says nothing]" if compared.vague else f"{middle} [{low}, {high}]"


def _converged(compared: Compared) -> str:
    done, diverged = compared.scores.done, compared.scores.diverged
    if compared.printed.kind == "exact":
        return NOTHING
    if not diverged:
        return f"{done}/{done}"
    low, high = wilson(done - diverged, done)
    return f"{done - diverged}/{done} [{low:.2f}, {high:.2f}]"
