"""Write the lists of docs/reference/models.md and tasks.md: the output of `orthobench list`, and the kinds of matrices.

Run as: python scripts/lists.py
"""

import contextlib
import importlib
import inspect
import io
import re
from pathlib import Path

from orthobench.common import registry
from orthobench.verbs import list as listing

DOCS = Path(__file__).resolve().parents[1] / "docs" / "reference"
PAGES = {"models": "models.md", "matrices": "models.md", "tasks": "tasks.md"}


def lines(kind: str) -> list[str]:
    """A list, line by line."""
    if kind == "matrices":
        names = registry.names("parametrization")
        width = max(map(len, names))
        return [f"  {name:{width}}  {_first_line(name)}" for name in names]
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        listing.main([kind])
    return [line.rstrip() for line in out.getvalue().splitlines() if not re.match(r"\s+(no data:|data in) ", line)]


def _first_line(name: str) -> str:
    text = inspect.getdoc(importlib.import_module(f"orthobench.parametrizations.{name}")) or ""
    return text.partition("\n")[0].rstrip(".")


def rendered(page: str) -> str:
    """The text of a page with its lists as they should be now."""
    text = (DOCS / page).read_text(encoding="utf-8")
    for kind in (kind for kind, where in PAGES.items() if where == page):
        block = "\n".join([f"<!-- list {kind} -->", "```", *lines(kind), "```"])
        text, found = re.subn(rf"<!-- list {kind} -->\n```\n.*?```", lambda _, block=block: block, text, flags=re.S)
        assert found == 1, f"{page} has no place for the list of {kind}"
    return text


if __name__ == "__main__":
    for name in dict.fromkeys(PAGES.values()):
        (DOCS / name).write_text(rendered(name), encoding="utf-8")
