"""Lightning, imported without what its import loads and no run uses: SciPy, matplotlib and torch's compiler.

A module that needs Lightning imports this one first, which imports it. The three are most of what
`import lightning.pytorch` takes, and half of a run of one step. While Lightning is imported, torchmetrics is told that
SciPy and matplotlib are not installed, and Lightning is given a stand-in for the compiler. All three can be imported as
ever afterwards; only torchmetrics, which no task here uses, goes on without its plots, and Lightning's own code would
be compiled where it asks not to be. Where Lightning has been imported before, or a new version wants more than there is
here, it is as it comes.
"""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

UNUSED = ("scipy", "matplotlib")
COMPILER = "torch._dynamo"
LIGHTNING = "lightning.pytorch"
REFUSED = ImportError, AttributeError, TypeError


class _KnowsCompiled(type):
    """Nothing is compiled before somebody has imported the compiler."""

    def __instancecheck__(cls, instance: Any) -> bool:
        compiler = sys.modules.get(COMPILER)
        return compiler is not None and isinstance(instance, compiler.OptimizedModule)


class OptimizedModule(metaclass=_KnowsCompiled):
    """Stands for `torch._dynamo.OptimizedModule` where Lightning asks whether a module is compiled."""


def disable(function: Any, *_: Any, **__: Any) -> Any:
    """Stands for `torch._dynamo.disable`: a function that nobody compiles is as it is."""
    return function


@contextmanager
def without_unused() -> Iterator[None]:
    """Hide SciPy and matplotlib from the imports inside, and give a stand-in if the compiler is not loaded.

    Raises:
        AttributeError: another version asks otherwise what is installed.
    """
    import lightning_utilities.core.imports as installed
    import torch  # noqa: F401 - before the stand-in, which is not meant for torch

    cache = installed.RequirementCache
    package_available, check = installed.package_available, cache._check_available

    def check_but_unused(self: Any) -> None:
        if self.requirement in UNUSED:
            self.available, self.message = False, f"{self.requirement} is not for Lightning: see {__name__}"
        check(self)

    stand_in: Any = ModuleType(COMPILER)
    stand_in.OptimizedModule, stand_in.disable = OptimizedModule, disable
    compiler = sys.modules.setdefault(COMPILER, stand_in)
    installed.package_available = lambda package_name: package_name not in UNUSED and package_available(package_name)
    cache._check_available = check_but_unused
    try:
        yield
    finally:
        installed.package_available, cache._check_available = package_available, check
        if compiler is stand_in:
            del sys.modules[COMPILER]


def _imported() -> Any:
    """`lightning.pytorch`: without what is unused, or as it comes where that is refused."""
    before = set(sys.modules)
    try:
        if LIGHTNING in sys.modules:
            return sys.modules[LIGHTNING]
        with without_unused():
            return importlib.import_module(LIGHTNING)
    except REFUSED:
        for name in set(sys.modules) - before:
            if name.split(".")[0] in ("lightning", "torchmetrics"):
                del sys.modules[name]
        return importlib.import_module(LIGHTNING)


lightning = _imported()
