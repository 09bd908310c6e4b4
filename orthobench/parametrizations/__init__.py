"""Maps from free parameters to a constrained matrix, one per file; the file's name is the word in the configuration."""

from orthobench.parametrizations.base import Parametrization

__all__ = ["Parametrization"]
