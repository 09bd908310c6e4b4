"""Classes by registered name: the word in the configuration is the name of the file that holds the class.

A plug-in is any importable module named in $ORTHOBENCH_PLUGINS (comma-separated); a class in it is known by its own name in
lower case with underscores, `MinimalGate` as `minimal_gate`.
"""

import importlib
import inspect
import os
import pkgutil
import re
from functools import lru_cache
from types import ModuleType

from orthobench.errors import ConfigError
from orthobench.schema import did_you_mean

PLUGINS = "ORTHOBENCH_PLUGINS"
KINDS = {
    "cell": ("orthobench.cells", "Cell"),
    "parametrization": ("orthobench.parametrizations", "Parametrization"),
    "task": ("orthobench.tasks", "Task"),
}


def snake_case(name: str) -> str:
    """`ScaledCayley` as `scaled_cayley`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


@lru_cache
def classes(kind: str) -> dict[str, type]:
    """Every concrete class of a kind (cell, parametrization, task) by name, plug-ins included.

    Raises:
        ConfigError: a plug-in cannot be imported.
    """
    package, base_name = KINDS[kind]
    home = importlib.import_module(package)
    base = getattr(home, base_name)
    found: dict[str, type] = {}
    for module in [*_own_modules(home), *_plugins()]:
        own = module.__name__.startswith(package + ".")
        for cls in vars(module).values():
            concrete = inspect.isclass(cls) and issubclass(cls, base) and not inspect.isabstract(cls)
            if concrete and cls.__module__ == module.__name__:
                name = module.__name__.rpartition(".")[2]
                found[
                    name
                    if own and snake_case(cls.__name__).replace("_", "") == name.replace("_", "")
                    else snake_case(cls.__name__)
                ] = cls
    return found


def find(kind: str, name: str, key: str) -> type:
    """The class of a kind called `name`; `key` is where the name was given.

    Raises:
        ConfigError: there is none.
    """
    known = classes(kind)
    if name not in known:
        raise ConfigError(f"{key}={name} is not known: {did_you_mean(name, known)}")
    return known[name]


def _own_modules(home: ModuleType) -> list[ModuleType]:
    names = [module.name for module in pkgutil.iter_modules(home.__path__)]
    return [importlib.import_module(f"{home.__name__}.{name}") for name in names]


def _plugins() -> list[ModuleType]:
    modules = []
    for name in filter(None, (part.strip() for part in os.environ.get(PLUGINS, "").split(","))):
        try:
            modules.append(importlib.import_module(name))
        except ImportError as error:
            raise ConfigError(f"${PLUGINS} names {name!r}, which cannot be imported: {error}.") from error
    return modules
