"""results/report.html: every table, figure and footnote on one page that needs nothing else, not even a network.

The templates escape all text; the page's policy lets nothing in but its own style, script and figures.
"""

import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from orthobench.analysis.status import COUNTS, STATUSES
from orthobench.report.document import Document, Grid
from orthobench.report.write import filled, parts
from orthobench.terminal import visible

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

SIGNS = {
    "reproduced": "✓",
    "better": "↑",
    "agrees, not precise": "≈",
    "undecided": "~",
    "not reproduced": "✗",
    "differs": "≠",
    "unstable": "!",
    "partial": "…",
    "underspecified": "?",
    "not run": "–",
    "count equal": "=",
    "count differs": "≠",
}


def page(results: Path, folders: tuple[Path, ...] = (), written: str = "") -> str:
    """The whole page, from what is recorded under `results`.

    Args:
        results: the folder of the records.
        folders: those of `--config-dir`.
        written: when, by what code and on which machine the page is made.
    """
    return render([filled(part, results, folders, drawn=True) for part in parts(folders)], written)


def render(documents: list[Document], written: str = "") -> str:
    """Documents as one page, below how many published numbers and claims have which status; counts stand apart."""
    counts = {document.name: Counter(document.statuses) for document in documents if document.statuses}
    total = sum(counts.values(), Counter[str]())
    told = "; ".join(f"{total[status]} {status}" for status in STATUSES if total[status])
    counted = "; ".join(f"{total[word]} {word.removeprefix('count ')}" for word in COUNTS)
    scores, sizes = (sum(total[word] for word in words) for words in (STATUSES, COUNTS))
    return (
        environment()
        .get_template("page.html")
        .render(
            documents=documents,
            written=written,
            told=f"{scores} published numbers and claims: {told}. {sizes} parameter counts: {counted}.",
            counts=_summary({**counts, "all": total}),
        )
    )


def _summary(found: dict[str, Counter[str]]) -> Grid:
    """How many numbers and claims have which status, a line for each paper."""
    rows = [
        [
            name,
            *(str(counts[s]) for s in STATUSES),
            str(sum(counts[s] for s in STATUSES)),
            *(str(counts[s]) for s in COUNTS),
        ]
        for name, counts in found.items()
    ]
    return Grid(["paper", *STATUSES, "all", *COUNTS], rows, frozenset({*STATUSES, *COUNTS, "all"}))


def status_of(text: str) -> str:
    """The status that a text begins with; empty where it begins with none."""
    return next(
        (status for status in sorted((*STATUSES, *COUNTS), key=len, reverse=True) if text.startswith(status)), ""
    )


def marked(text: str) -> "Markup":
    """Text with what stands between backticks as code and between asterisks as emphasis; of a link, its words."""
    from markupsafe import Markup, escape

    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    coded = re.sub("`([^`]*)`", r"<code>\1</code>", str(escape(visible(plain))))
    return Markup(re.sub(r"\*([^*]+)\*", r"<em>\1</em>", coded))


def _shown(value: object) -> object:
    from markupsafe import Markup

    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@cache
def environment(folder: str = "templates") -> "Environment":
    """What renders the templates of a folder of this package: text is escaped, and an unknown name is an error."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("orthobench.report", folder),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"marked": marked, "status": status_of}
    environment.globals |= {"signs": SIGNS, "zip": zip}
    return environment
