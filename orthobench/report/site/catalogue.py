"""Models, tasks and papers: their descriptions, equations, settings and what to cite."""

import inspect
import re
from typing import Any

from orthobench.common.registry import find
from orthobench.errors import ConfigError
from orthobench.study.catalogue import SHIPPED, Catalogue

CONSTRAINED, FREE, NONE, FORWARD = "constrained matrix", "free matrix", "no full matrix", "feed-forward"
FAMILIES = (CONSTRAINED, FREE, NONE, FORWARD)
Described = dict[str, str]


def models(catalogue: Catalogue = SHIPPED) -> dict[str, dict[str, Any]]:
    """Every model by name: its equations are the docstrings of its cell and of its parametrization."""
    found = {}
    for name in catalogue.options("model"):
        described, values = catalogue.about("model", name)
        parts = [(kind, values.get(key)) for kind, key in (("cell", "cell"), ("parametrization", "recurrent"))]
        network = values.get("network", "stack")
        classes = {kind: _class(kind, str(word)) for kind, word in parts if word}
        sources = [_source(kind, cls) for kind, cls in classes.items() if cls is not None]
        if "cell" not in classes:
            sources = [_source("network", _class("network", network)), *sources]
        found[name] = {
            "description": described.description,
            "family": _family(classes),
            "sources": [source for source in sources if source["text"]],
            "cite": _cited(name, catalogue),
            "yaml": _text("model", name, catalogue),
        }
    return found


def tasks(catalogue: Catalogue = SHIPPED) -> dict[str, dict[str, Any]]:
    """Every task by name."""
    return {
        name: {
            "description": catalogue.about("task", name)[0].description,
            "sources": [_source("task", _class("task", name))],
            "yaml": _text("task", name, catalogue),
        }
        for name in catalogue.options("task")
    }


def papers_of(catalogue: Catalogue = SHIPPED) -> dict[str, dict[str, Any]]:
    """Every paper by name."""
    cited_by = {name: _cited(name, catalogue) for name in catalogue.papers()}
    return {name: {"cite": found, "title": _title(found[0]) if found else ""} for name, found in cited_by.items()}


def _title(entry: str) -> str:
    """The title and the year of an entry in BibTeX; what is missing is left out."""
    title, year = (re.search(rf"^\s*{name}\s*=\s*\{{(.*)\}}", entry, re.M) for name in ("title", "year"))
    return " ".join([*([re.sub("[{}]", "", title[1])] if title else []), *([f"({year[1]})"] if year else [])])


def _class(kind: str, name: str) -> type | None:
    try:
        return find(kind, name, kind)
    except ConfigError:
        return None


def _source(kind: str, cls: type | None) -> Described:
    """The docstring of the module of a class, and where it is."""
    module = inspect.getmodule(cls) if cls else None
    if cls is None or module is None:
        return {"kind": kind, "name": "", "path": "", "text": ""}
    path = module.__name__.replace(".", "/") + ".py"
    return {"kind": kind, "name": cls.__name__, "path": path, "text": inspect.cleandoc(module.__doc__ or "")}


def _family(classes: dict[str, Any]) -> str:
    if "cell" not in classes:
        return FORWARD
    if getattr(classes["cell"], "matrix_names", None) == ():
        return NONE
    return CONSTRAINED if getattr(classes.get("parametrization"), "constrained", False) else FREE


def _cited(name: str, catalogue: Catalogue) -> list[str]:
    try:
        return catalogue.citations(name)
    except ConfigError:
        return []


def _text(group: str, name: str, catalogue: Catalogue) -> str:
    paths = catalogue.paths(group, name)
    return next((path.read_text(encoding="utf-8") for path in paths if path.is_file()), "")
