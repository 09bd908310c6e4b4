"""Import paths of before the tasks had two folders: `orthobench.tasks.adding` is `orthobench.tasks.drawn.adding`."""

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, spec_from_loader
from types import ModuleType

HOME, FOLDERS = "orthobench.tasks", ("drawn", "real")


class OldPaths(MetaPathFinder, Loader):
    """Finds a task's module in its folder, where the old path finds nothing; both have the same classes."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        home, _, name = fullname.rpartition(".")
        found = (f"{HOME}.{folder}.{name}" for folder in FOLDERS) if home == HOME else ()
        place = next((place for place in found if find_spec(place)), None)
        return None if place is None else spec_from_loader(fullname, self, origin=place)

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        assert spec is not None
        assert spec.origin is not None
        own = vars(importlib.import_module(spec.origin))
        vars(module).update({name: value for name, value in own.items() if not name.startswith("__")})


sys.meta_path.append(OldPaths())
