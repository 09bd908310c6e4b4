"""The page of the Python API, from signatures and docstrings, and the list of what is public."""

import inspect
import json
import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from importlib import import_module
from itertools import takewhile
from typing import Any

import orthobench
from orthobench import errors, layers, scan, testing
from orthobench.common import registry

SECTION = re.compile(r"^(?:Args|Attributes):\n(?P<body>(?: {4}.*\n?|\n)+)", flags=re.M)
BLOCK = re.compile(r"((?:^ {4}.*\n?)+)", flags=re.M)
SHOWN = {  # members of classes that are not derived from, but used
    "Run": ("task", "model", "parameters", "budget", "run_id", "run"),
    "Finished": ("task", "model", "step", "run_id"),
    "Layer": ("forward", "reset_parameters", "parameter_groups", "recurrent_weights"),
}
DERIVED = (  # base classes beside those of the kinds
    ("orthobench.cells.diagonal_linear", "DiagonalLinear"),
    ("orthobench.tasks.arrays", "ArrayTask"),
    ("orthobench.tasks.synthetic", "Synthetic"),
    ("orthobench.tasks.metric", "Metric"),
)


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Markdown table; bars in cells are escaped."""
    lines = [list(headers), ["---"] * len(headers), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def meanings(classes: Iterable[type]) -> dict[str, str]:
    """Explanation of every argument of a class, from the docstrings of the class and its bases, in their order."""
    found: dict[str, str] = {}
    for klass in classes:
        for section in SECTION.finditer(inspect.cleandoc(klass.__dict__.get("__doc__") or "") + "\n"):
            for part in re.split(r"\n(?= {4}\S)", "\n" + section["body"]):
                name, _, text = part.strip().partition(": ")
                if text:
                    found.setdefault(name, " ".join(text.split()))
    return found


def exit_codes() -> str:
    """Exit codes with their classes."""
    found: list[tuple[str, str, str]] = [
        ("0", "", "Done."),
        (
            "1",
            "",
            "An error in orthobench itself. `check`: a check failed. `tables --check`: a table is stale. A sweep: runs "
            "were not started.",
        ),
    ]
    for cls in vars(errors).values():
        if inspect.isclass(cls) and issubclass(cls, errors.OrthobenchError) and cls is not errors.OrthobenchError:
            found.append((str(cls.exit_code), f"`{cls.__name__}`", (cls.__doc__ or "").partition("\n")[0]))
    return table(("code", "error in Python", "meaning"), sorted(found, key=lambda one: int(one[0])))


def public() -> dict[str, dict[str, Any]]:
    """Functions and classes of the page of the Python API by full name, under their headings."""
    functions = [one for one in vars(orthobench).values() if inspect.isfunction(one)]
    own = [one.__name__ for one in functions if one.__module__ == "orthobench" and not one.__name__.startswith("_")]
    run = [name for name in scan.__all__ if inspect.isfunction(getattr(scan, name))]
    names = sorted(layers.__all__, key=lambda name: (name != "Layer", name != "frozen", name.lower()))
    return {
        "`orthobench`": _named("orthobench", *own),
        "Runs": _named("orthobench.run.run", "Run") | _named("orthobench.run.load", "Finished"),
        "`orthobench.testing`": _named("orthobench.testing", *testing.__all__),
        "`orthobench.scan`": _named("orthobench.scan", *run),
        "Base classes": {
            key: one for base in (*registry.KINDS.values(), *DERIVED) for key, one in _named(*base).items()
        },
        "`orthobench.layers`": _named("orthobench.layers", *names),
    }


def _named(module: str, *names: str) -> dict[str, Any]:
    return {f"{module}.{name}": getattr(import_module(module), name) for name in names}


def configured() -> dict[str, type]:
    """Classes whose arguments are settings, those of the page of the configuration, by `kind=name`."""
    kinds = registry.KINDS
    return {f"{what}={name}": registry.find(what, name, what) for what in kinds for name in registry.names(what)}


def lineage(cls: type) -> list[type]:
    """A class and its bases, up to one that the page describes by itself."""
    others = {one for base in registry.KINDS.values() for one in _named(*base).values()} - {cls}
    return list(takewhile(lambda one: one not in others, cls.__mro__))


def members(cls: type) -> dict[str, Any]:
    """Methods and properties that a page describes: those of `SHOWN`, or all of `lineage`."""
    found: dict[str, Any] = {}
    for klass in lineage(cls):
        for name, one in vars(klass).items():
            function = getattr(one, "__func__", getattr(one, "fget", getattr(one, "func", one)))
            own = inspect.isfunction(function) and function.__module__.startswith("orthobench.")
            if own and function.__doc__ and not name.startswith("_"):
                found.setdefault(name, one)
    wanted = SHOWN.get(cls.__name__, found)
    return {name: one for name, one in found.items() if name in wanted}


def api() -> str:
    """Public names of the package with signature and docstring."""
    parts = []
    for title, found in public().items():
        alike = {name: one for name, one in found.items() if layers.Layer in getattr(one, "__mro__", ())[1:]}
        parts += [f"## {title}\n"]
        for name in (name for name in found if name not in alike):
            parts += [_described(name, found[name])]
            inside = members(found[name]) if inspect.isclass(found[name]) else {}
            parts += [_described(f"{found[name].__name__}.{key}", one, "####") for key, one in inside.items()]
        rows = [(f"`{name}`", " ".join(inspect.cleandoc(one.__doc__).split())) for name, one in alike.items()]
        parts += ["### Layers by name\n", table(("layer", "meaning"), rows)] if rows else []
        parts += ["## `orthobench.errors`\n", exit_codes()] if title == "Runs" else []
    return "\n".join(parts)


def _described(name: str, one: Any, heading: str = "###") -> str:
    """Signature and docstring of a function, class, method or property, as Markdown."""
    kept, bound = isinstance(one, property | cached_property), "cls" if isinstance(one, classmethod) else "self"
    one = getattr(one, "__func__", getattr(one, "fget", getattr(one, "func", one)))
    text = inspect.cleandoc(one.__dict__.get("__doc__") or one.__doc__ or "")
    told = meanings(lineage(one) if inspect.isclass(one) else [type("Function", (), {"__doc__": text})])
    body = re.split(r"^(?:Args|Attributes|Raises|Returns):\n", text, flags=re.M)[0].strip()
    body = BLOCK.sub(lambda m: f"```text\n{inspect.cleandoc(m[1])}\n```\n", body)
    signature = f"```text\n{name.rpartition('.')[2]}{_signature(one, bound, kept)}\n```\n"
    parts = [f"{heading} `{name}`\n", signature, f"{body}\n"]
    base = one.__mro__[len(lineage(one)) :] if inspect.isclass(one) else ()
    parts += [f"It also has what `{base[0].__name__}` has.\n"] if base else []
    rows = [(f"`{key}`", meaning) for key, meaning in told.items()]
    parts += [table(("attribute or argument" if inspect.isclass(one) else "argument", "meaning"), rows)] if rows else []
    for title, lines in re.findall(r"^(Returns|Raises):\n((?: {4}.*\n?)+)", text, flags=re.M):
        each = re.split(r"\n(?= {4}\S)", lines.rstrip()) if title == "Raises" else [lines]
        parts.append(f"{title}: {'; '.join(' '.join(one.split()).rstrip('.') for one in each)}.\n")
    return "\n".join(parts)


def _signature(one: Any, bound: str, kept: bool) -> str:
    """Signature with the names of types alone and words in quotes, without what is bound; of a property, its type."""

    def named(kind: Any) -> str:
        text = re.sub(r"\b(?:\w+\.)+(?=\w)", "", kind if isinstance(kind, str) else inspect.formatannotation(kind))
        return re.sub(r"Annotated\[([^][]+), Range\([^()]*\)\]", r"\1", text).replace("~", "")

    own = getattr(one, "__init__", one) if inspect.isclass(one) and one.__init__ is not object.__init__ else one
    found, shown, starred = inspect.signature(own), [], False
    for parameter in (one for one in found.parameters.values() if one.name != bound):
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            shown.append("*")
        starred |= parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        of = "" if parameter.annotation is parameter.empty else f": {named(parameter.annotation)}"
        value = parameter.default
        given = (
            value.__name__ if inspect.isclass(value) else json.dumps(value) if isinstance(value, str) else repr(value)
        )
        shown.append(f"{stars}{parameter.name}{of}" + ("" if value is parameter.empty else f" = {given}"))
    returned = found.return_annotation
    arrow = "" if inspect.isclass(one) or returned is found.empty else f" -> {named(returned)}"
    return arrow.replace(" ->", ":") if kept else f"({', '.join(shown)}){arrow}"
