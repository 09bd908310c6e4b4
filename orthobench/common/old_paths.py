"""Import paths of plug-ins from before modules moved, such as `orthobench.schema` and `orthobench.tasks.adding`."""

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, spec_from_loader
from types import ModuleType

HOMES = {"orthobench": ("common", "models", "parametrizations"), "orthobench.tasks": ("drawn", "real")}
MOVED = ("initializers", "optim", "registry", "schedules", "schema")  # of the first home; of the second all

GONE = {"orthobench.analysis": "orthobench.study"}  # whose modules are elsewhere and others


class OldPaths(MetaPathFinder, Loader):
    """Finds a module in a folder of its old home, where the old path finds nothing; both have the same classes."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname in GONE:
            raise ModuleNotFoundError(f"{fullname} is {GONE[fullname]} now.", name=fullname)
        home, _, name = fullname.rpartition(".")
        if home not in HOMES or (home == "orthobench" and name not in MOVED):
            return None
        found = (f"{home}.{folder}.{name}" for folder in HOMES[home])
        place = next((place for place in found if find_spec(place)), None)
        return None if place is None else spec_from_loader(fullname, self, origin=place)

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        assert spec is not None
        assert spec.origin is not None
        own = vars(importlib.import_module(spec.origin))
        vars(module).update({name: value for name, value in own.items() if not name.startswith("__")})


sys.meta_path.append(OldPaths())
