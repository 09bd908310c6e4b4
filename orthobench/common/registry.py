"""Classes by registered name: the word in the configuration is the name of the file that holds the class.

Optimizers share one file, and so do schedules; the word is then the class's own name, `RMSpropTF` as
`rmsprop_tf`.

A plug-in is any importable module named in $ORTHOBENCH_PLUGINS (comma-separated); a class in it, which a package may
have from a module of its own, is known by its name in lower case with underscores, `MinimalGate` as `minimal_gate`.
"""

import importlib
import inspect
import os
import pkgutil
import re
import sys
from functools import lru_cache
from pathlib import Path
from types import ModuleType

from orthobench.common.schema import did_you_mean
from orthobench.errors import ConfigError

PLUGINS = "ORTHOBENCH_PLUGINS"
ENGINES = "orthobench.scan.engines"
KINDS = {
    "cell": ("orthobench.cells", "Cell"),
    "parametrization": ("orthobench.parametrizations", "Parametrization"),
    "task": ("orthobench.tasks", "Task"),
    "network": ("orthobench.models", "Network"),
    "optimizer": ("orthobench.models.optim", "Rule"),
    "schedule": ("orthobench.models.schedules", "Schedule"),
}


def snake_case(name: str) -> str:
    """`ScaledCayley` as `scaled_cayley`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()  # runs of capitals are one word: NCGRU as ncgru


def is_ours(cls: type) -> bool:
    """Return True if a class is of this package, whose tests have tried it."""
    return cls.__module__.startswith("orthobench.")


def find(kind: str, name: str, key: str) -> type:
    """The class of a kind (a key of `KINDS`) called `name`; `key` is where the name was given.

    Raises:
        ConfigError: there is no such class, or there are several, or a plug-in cannot be imported.
    """
    home, base = _home(kind)
    own: dict[str, list[type]] = {}
    for cls in dict.fromkeys(cls for module in _plugins() for cls in _defined(module, base, True)):
        own.setdefault(snake_case(cls.__name__), []).append(cls)
    if not isinstance(name, str):
        raise ConfigError(f"{key}={name} is not known: {did_you_mean(str(name), [*names(kind), *own])}")
    found = _shipped(home, base, name)
    if found is not None and name in own:
        raise ConfigError(f"{key}={name}: {in_module(own[name][0])} has the name of one that orthobench has: it would "
                          "not be used, so give it another name.")  # fmt: skip
    if len(own.get(name, ())) > 1:
        places = " and of ".join(map(in_module, own[name]))
        raise ConfigError(f"{key}={name} is the name of {places}, both of what ${PLUGINS} names: give one of them "
                          "another name.")  # fmt: skip
    if found is None and name not in own:
        given = os.environ.get(PLUGINS)
        searched = (
            f"classes of your own are looked for in the modules that ${PLUGINS} names{f', {given}' if given else ''}"
        )
        guess = did_you_mean(name, [*names(kind), *own])
        alike = next((own[one][0] for one in own if one.replace("_", "") == name.replace("_", "")), None)
        if alike:
            known = snake_case(alike.__name__)
            raise ConfigError(
                f"{key}={name} is not known: {in_module(alike)} is known as {known}, and so must be the file and the "
                "setting that name it."
            )
        told = _why_not(name, base) or (guess if given and guess.endswith("?") else with_hint(guess, searched))
        raise ConfigError(f"{key}={name} is not known: {told}")
    return found or own[name][0]


def with_hint(told: str, hint: str) -> str:
    """Answer of `did_you_mean`, with a hint in front of a list or behind a question; an empty one changes nothing."""
    return told if not hint else f"{told} ({hint})" if told.endswith("?") else f"{hint}; {told}"


def _home(kind: str) -> tuple[ModuleType, type]:
    """The package or module of a kind, and the base class of what is found there."""
    module, base_name = KINDS[kind]
    home = importlib.import_module(module)
    return home, getattr(home, base_name)


def _shipped(home: ModuleType, base: type, name: str) -> type | None:
    """The package's own class of this name."""
    files = _files(home)
    file = importlib.import_module(files[name]) if name in files else None
    return (file and _namesake(file, base)) or _concrete(home, base).get(name)


def _why_not(name: str, base: type) -> str:
    """Why a class of this name in a plug-in is not taken; empty where there is none."""
    for module in _plugins():
        for cls in vars(module).values():
            if inspect.isclass(cls) and snake_case(cls.__name__) == name:
                if not issubclass(cls, base):
                    return f"{cls.__name__} in {module.__name__} is no {base.__name__}: derive it from that class."
                lacks, place = ", ".join(sorted(getattr(cls, "__abstractmethods__", ()))), cls.__module__
                why = f"lacks {lacks}" if lacks else f"is from {place}, which ${PLUGINS} must name itself"
                return f"{cls.__name__} in {module.__name__} {why}."
    return ""


def engines() -> tuple[str, ...]:
    """The allowed values of `engine=`, found without importing torch."""
    return importlib.import_module(ENGINES).words()


@lru_cache
def names(kind: str) -> tuple[str, ...]:
    """The names of the package's own classes of a kind."""
    home, base = _home(kind)
    modules = {name: importlib.import_module(place) for name, place in _files(home).items()}
    files = (name for name, module in modules.items() if _namesake(module, base) is not None)
    return (*files, *_concrete(home, base))


@lru_cache
def _files(home: ModuleType) -> dict[str, str]:
    """The modules of a package and of its folders, by the names of their files; none for a single file."""
    found = pkgutil.walk_packages(getattr(home, "__path__", ()), f"{home.__name__}.")
    places = {module.name.rpartition(".")[2]: module.name for module in found if not module.ispkg}
    return dict(sorted(places.items()))


def _concrete(module: ModuleType, base: type) -> dict[str, type]:
    """The classes that a module itself defines, by name."""
    return {snake_case(cls.__name__): cls for cls in _defined(module, base)}


def _defined(module: ModuleType, base: type, below: bool = False) -> list[type]:
    """The classes that a module itself defines; `below`: those too that it has from its own modules."""
    name, classes = module.__name__, filter(inspect.isclass, vars(module).values())
    own = (cls for cls in classes if cls.__module__ == name or (below and cls.__module__.startswith(f"{name}.")))
    return [cls for cls in own if issubclass(cls, base) and not inspect.isabstract(cls)]


def in_module(cls: type) -> str:
    """`Mine in my_tasks`, as messages name a class."""
    return f"{cls.__name__} in {cls.__module__}"


def _namesake(module: ModuleType, base: type) -> type | None:
    """The class that a file of ours is named after: `PTBChar` in ptb_char.py."""
    wanted = module.__name__.rpartition(".")[2].replace("_", "")
    return next((cls for name, cls in _concrete(module, base).items() if name.replace("_", "") == wanted), None)


def _plugins() -> list[ModuleType]:
    modules = []
    for name in filter(None, (part.strip() for part in os.environ.get(PLUGINS, "").split(","))):
        try:
            modules.append(importlib.import_module(name))
        except (Exception, SystemExit) as error:  # whatever a stranger's module raises
            why = str(error) if isinstance(error, ImportError) else f"{type(error).__name__}: {error}"
            absent = isinstance(error, ModuleNotFoundError) and error.name == name.partition(".")[0]
            fix = "correct that module, or name another"
            if absent and {"", str(Path.cwd())}.isdisjoint(sys.path):
                fix = "the working directory is not searched unless you say so: export PYTHONPATH=$PWD"
            elif absent:
                fix = "name a module of the working directory, or of a folder in PYTHONPATH"
            raise ConfigError(f"${PLUGINS} names {name!r}, which cannot be imported: {why}; {fix}.") from error
    return modules
