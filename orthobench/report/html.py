"""results/report.html: every table, figure and footnote on one page that needs nothing else, not even a network.

The templates escape all text; the page's policy lets nothing in but its own style, script and figures.
"""

import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from orthobench.analysis.statistics import STATUSES
from orthobench.report.document import Document, Grid
from orthobench.report.write import filled, parts

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

SIGNS = {
    "reproduced": "✓",
    "better": "↑",
    "within PI only": "≈",
    "not reproduced": "✗",
    "unstable": "!",
    "partial": "…",
    "underspecified": "?",
    "not run": "–",
}


def page(results: Path, folders: tuple[Path, ...] = ()) -> str:
    """The whole page, from what is recorded under `results`."""
    return render([filled(part, results, folders, drawn=True) for part in parts(folders)])


def render(documents: list[Document]) -> str:
    """Documents as one page, below how many published numbers and claims have which status."""
    counts = {document.name: Counter(document.statuses) for document in documents if document.statuses}
    total = sum(counts.values(), Counter[str]())
    told = ", ".join(f"{total[status]} {status}" for status in STATUSES if total[status])
    return (
        _environment()
        .get_template("page.html")
        .render(
            documents=documents,
            told=f"{total.total()} published numbers and claims: {told}.",
            counts=_summary({**counts, "all": total}),
        )
    )


def _summary(found: dict[str, Counter[str]]) -> Grid:
    """How many numbers and claims have which status, a line for each paper."""
    rows = [[name, *(str(counts[s]) for s in STATUSES), str(counts.total())] for name, counts in found.items()]
    return Grid(["paper", *STATUSES, "all"], rows, frozenset(STATUSES) | {"all"})


def status_of(text: str) -> str:
    """The status that a text begins with; empty where it begins with none."""
    return next((status for status in sorted(STATUSES, key=len, reverse=True) if text.startswith(status)), "")


def marked(text: str) -> "Markup":
    """Text with what stands between backticks as code and between asterisks as emphasis; of a link, its words."""
    from markupsafe import Markup, escape

    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    coded = re.sub("`([^`]*)`", r"<code>\1</code>", str(escape(plain)))
    return Markup(re.sub(r"\*([^*]+)\*", r"<em>\1</em>", coded))


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("orthobench.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"marked": marked, "status": status_of}
    environment.globals |= {"signs": SIGNS, "zip": zip}
    return environment
