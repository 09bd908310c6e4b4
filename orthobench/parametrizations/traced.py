"""Asking for what looks on while a module runs: a tracer, an exporter, or anything else that stands in for tensors."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

capturing: ContextVar[bool] = ContextVar("capturing", default=False)  # work becomes a CUDA graph, as it is
core: Any = torch._C  # it has no type stubs
jit: Any = torch.jit


def traced(*tensors: Tensor) -> bool:
    """Return True if torch's operations are recorded or replaced, so that no value may be read and no compiled loop be
    run.

    That is so in torch.export, torch.onnx and torch.jit.trace, under any mode of `__torch_dispatch__` (make_fx, fake
    tensors, a counter of operations), and where one of the tensors has no values, on the device meta, or is of a class
    with such a method.
    """
    if torch.compiler.is_compiling() or torch.compiler.is_exporting():
        return torch.compiler.is_exporting()
    if capturing.get():
        return False
    if jit.is_tracing() or core._len_torch_dispatch_stack():
        return True
    plain = core._disabled_torch_dispatch_impl
    return any(t.is_meta or getattr(type(t), "__torch_dispatch__", None) is not plain for t in tensors)


def mapped(t: Tensor) -> bool:
    """Return True if torch.func.vmap may map t, so that its values cannot be read."""
    return core._functorch.is_functorch_wrapped_tensor(t) and core._functorch.TransformType.Vmap in transforms()


def maps_derivatives() -> bool:
    """Return True if torch.func.vmap is active together with a derivative of torch.func."""
    found = set(transforms())
    return len(found) > 1 and core._functorch.TransformType.Vmap in found


def differentiating() -> bool:
    """Return True if a derivative of torch.func is active, or forward mode, in which a tensor may have a tangent."""
    return forward_ad._current_level >= 0 or any(kind != core._functorch.TransformType.Vmap for kind in transforms())


def transforms() -> list[Any]:
    """The kinds of the active transforms of torch.func, outermost first."""
    return [transform.key() for transform in core._functorch.get_interpreter_stack() or []]


def in_full_precision(device_type: str) -> Any:
    """A context without autocast, whose regions torch.export would make functions of their own; meta has none."""
    without = torch.compiler.is_exporting() or device_type == "meta"
    return nullcontext() if without else torch.autocast(device_type, enabled=False)


def autocasts(device_type: str) -> bool:
    """Return True under autocast, which the device meta does not have."""
    return device_type != "meta" and torch.is_autocast_enabled(device_type)


@contextmanager
def untraced() -> Iterator[None]:
    """A context that torch.jit.trace does not see: what is computed in it becomes constants."""
    state = core._get_tracing_state()
    core._set_tracing_state(None)
    try:
        yield
    finally:
        core._set_tracing_state(state)
