"""Torch's modes as a run in a process of its own finds them, whatever the program around it has set."""

import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch


@contextmanager
def torch_as_new() -> Iterator[None]:
    """A context, or a decorator: no autocast, no inference mode, and torch's first default type and device.

    A run's numbers are those of its settings. Torch's number of threads, which a run may change, is put back.
    Solvers on a GPU are cuSOLVER's: by default torch gives several systems at once to MAGMA, which waits for the GPU.
    """
    dtype, threads = torch.get_default_dtype(), torch.get_num_threads()
    with ExitStack() as stack:
        stack.enter_context(torch.inference_mode(False))
        for device in ("cpu", "cuda"):
            if torch.is_autocast_enabled(device):
                stack.enter_context(torch.autocast(device, enabled=False))
        if torch.get_default_device().type != "cpu":
            stack.enter_context(torch.device("cpu"))
        if dtype != torch.float32:
            stack.callback(torch.set_default_dtype, dtype)
            torch.set_default_dtype(torch.float32)
        if torch.cuda.is_available():
            stack.callback(prefer_solvers, str(torch.backends.cuda.preferred_linalg_library()).rpartition(".")[2])
            prefer_solvers("cusolver")
        try:
            yield
        finally:
            if torch.get_num_threads() != threads:
                torch.set_num_threads(threads)


@contextmanager
def denormals_as_zero() -> Iterator[None]:
    """A context, or a decorator: this thread, and those it starts, take denormal numbers for zero.

    They are those below 1e-38 in float32. The gradients of outputs that are certain are full of them, and a processor
    takes many times as long for each.
    """
    changed = not denormals_are_zero() and torch.set_flush_denormal(True)
    try:
        yield
    finally:
        if changed:
            torch.set_flush_denormal(False)


def denormals_are_zero() -> bool:
    """Return True if this thread takes denormal numbers for zero."""
    smallest = torch.tensor(torch.finfo(torch.float64).tiny, dtype=torch.float64, device="cpu")
    return not bool(smallest * 0.5)


def prefer_solvers(library: str) -> None:
    """Let torch solve linear systems on GPUs by `cusolver`, `magma`, or as it chooses, `default`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch says that the choice is experimental
        torch.backends.cuda.preferred_linalg_library(library.lower())
