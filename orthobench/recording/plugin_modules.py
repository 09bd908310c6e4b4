"""The modules of a run's plug-ins: those of its classes, and those of their author's that they import."""

import ast
import importlib.util
import site
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields
from functools import lru_cache
from pathlib import Path
from types import ModuleType

from orthobench.config.settings import Parts
from orthobench.recording.file_digest import digest_of_file

OURS = "orthobench"


@lru_cache
def plugin_modules(parts: Parts) -> dict[str, str]:
    """The SHA-256 of each module by name, as it was when it was first asked for; none without a plug-in."""
    classes = _classes(parts)
    own = {_top(cls.__module__) for cls in classes} - {OURS}
    left = [base.__module__ for cls in classes for base in cls.__mro__] if own else []
    found: dict[str, str] = {}
    while left:
        module = sys.modules.get(left.pop())
        path = getattr(module, "__file__", None)
        if module is None or not path or module.__name__ in found or not _is_of_author(module, Path(path), own):
            continue
        with suppress(OSError):
            found[module.__name__] = digest_of_file(Path(path))
            left += _imported(module, Path(path))
    return dict(sorted(found.items()))


def changed_modules(known: dict[str, str], parts: Parts) -> list[str]:
    """The modules that are not those of a record, and those of the run's classes that it does not have."""
    now, named = plugin_modules(parts), {cls.__module__ for cls in _classes(parts)}
    differing = {name for name, digest in known.items() if (now.get(name) or _on_disk(name)) != digest}
    return sorted(differing | {name for name in now if name in named and name not in known})


def _classes(parts: Parts) -> list[type]:
    return [cls for field in fields(parts) if (cls := getattr(parts, field.name)) is not None]


def _top(name: str) -> str:
    return name.partition(".")[0]


def _is_of_author(module: ModuleType, path: Path, own: set[str]) -> bool:
    """Return True if a module is of a plug-in's own package, or is in no folder of installed ones."""
    top = _top(module.__name__)
    if top in own or top == OURS or top in sys.stdlib_module_names:
        return top in own
    places = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    places |= {*site.getsitepackages(), site.getusersitepackages()}
    return not any(path.is_relative_to(place) for place in places)


def _imported(module: ModuleType, path: Path) -> Iterator[str]:
    """Names that a module's source may import."""
    with suppress(ValueError, SyntaxError):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                relative = "." * node.level + (node.module or "")
                base = importlib.util.resolve_name(relative, module.__package__) if node.level else relative
                yield from (base, *(f"{base}.{alias.name}" for alias in node.names))


def _on_disk(name: str) -> str | None:
    """The digest of a module that is not imported; None where it is gone."""
    with suppress(ImportError, ValueError, AttributeError, OSError):
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin:
            return digest_of_file(Path(spec.origin))
    return None
