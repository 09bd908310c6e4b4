"""Exclude functions from `torch.compile` without importing dynamo."""

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

import torch


def uncompiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator: the function, and all that it calls, runs as it is in what `torch.compile` has compiled.

    That is `torch.compiler.disable`, put off until something is compiled, as it takes a second to import.
    """
    kept: list[Callable[..., Any]] = []

    @wraps(function)
    def call(*arguments: Any) -> Any:
        if "torch._dynamo" not in sys.modules:
            return function(*arguments)
        if not kept:
            kept.append(torch.compiler.disable(function))
        return kept[0](*arguments)

    call._torchdynamo_disable = True  # type: ignore[attr-defined]  # what that function sets
    return call
