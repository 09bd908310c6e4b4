"""results/site: the pages, their script and style, the records behind them, and what they show as data."""

import json
import shutil
from functools import cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from orthobench.errors import StorageError
from orthobench.report.html import environment
from orthobench.report.site.pages import DOCS, MENU, pages
from orthobench.report.site.places import Places, slug

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

OWN = ("assets", "cells", "data", "papers", "records", "runs", "tasks")  # folders in which nothing else is kept
ASSETS = ("style.css", "site.js")


def write(data: dict[str, Any], results: Path, script: str, written: str = "") -> Path:
    """Write the site of a results.json below `results`, and remove what an earlier one left; returns its first page.

    Args:
        data: what `collected.collected` returns.
        results: the folder of the records.
        script: what draws the plots, see `charts.javascript`.
        written: when and by what code it is made.

    Raises:
        StorageError: a file cannot be written.
    """
    root = results / "site"
    files = {"results.json": json.dumps(data, separators=(",", ":"), allow_nan=False), "assets/vega.js": script}
    files |= {f"assets/{name}": _environment().loader.get_source(_environment(), name)[0] for name in ASSETS}  # type: ignore[union-attr]
    files |= rendered(data, written, (root / DOCS).is_file())
    copied = {place["record"] for run in data["runs"].values() for place in run["places"]}
    try:
        for name, text in files.items():
            _write(root / name, text)
        for name in copied:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(results / name, root / name)
        for path in (path for folder in OWN for path in (root / folder).rglob("*") if path.is_file()):
            if path.relative_to(root).as_posix() not in files.keys() | copied:
                path.unlink()
    except OSError as error:
        raise StorageError(f"{root} cannot be written: {error}.") from error
    return root / "index.html"


def rendered(data: dict[str, Any], written: str = "", documented: bool = False) -> dict[str, str]:
    """Every page and every plot's data, by path.

    Args:
        data: what `collected.collected` returns.
        written: when and by what code it is made.
        documented: whether the documentation stands in its folder, so that pages lead there.
    """
    found, places = {}, Places(data)
    menu = [*MENU, *([(DOCS, "Docs")] if documented else [])]
    for path, template, shown in pages(data):
        root = "../" * (len(PurePosixPath(path).parts) - 1)
        about = {"root": root, "here": path, "menu": menu, "written": written, "places": places, "plots": []}
        found[path] = _environment().get_template(template).render(**about | shown)
        found |= {f"data/{slug(plot.name)}.csv": plot.csv for plot in shown.get("plots", ())}
    return found


def essay(text: str) -> "Markup":
    """A docstring: paragraphs, and what is indented in them as equations."""
    from markupsafe import Markup, escape

    parts = []
    for block in text.split("\n\n"):
        lines = block.splitlines()
        if all(line.startswith("    ") for line in lines if line.strip()):
            own = "\n".join(line[4:] for line in lines)
            parts.append(Markup('<pre class="equation" tabindex="0">{}</pre>').format(own))
        else:
            pieces = " ".join(block.split()).split("`")
            words = [
                Markup("<code>{}</code>").format(one) if odd % 2 else escape(one) for odd, one in enumerate(pieces)
            ]
            parts.append(Markup("<p>{}</p>").format(Markup("").join(words)))
    return Markup("\n").join(parts)


def _write(path: Path, text: str) -> None:
    """Write a file where it changed."""
    content = text.encode()
    if not path.is_file() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


@cache
def _environment() -> "Environment":
    found = environment("templates/site")
    found.filters |= {"essay": essay, "slug": slug}
    return found
