"""The memory that a run needs is estimated, and what it frees is used again; only GNU C has a setting for that."""

import ctypes
import errno
import subprocess
import sys
from typing import Any, ClassVar

import pytest
import torch

import orthobench
from orthobench.cells import Cell, Matrices, State
from orthobench.errors import ConfigError, MemoryExhausted, is_exhaustion
from orthobench.run import memory
from tests.making import network

PROGRAM = """
import resource
import torch
from orthobench.run.memory import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.empty(40 << 20, dtype=torch.uint8).fill_(1)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

if {kept}:
    keep_freed_memory()
torch.empty(48 << 20, dtype=torch.uint8).fill_(1)  # an aligned block fits into a larger one alone, where that is freed
print(min(faults() for _ in range(8)))
"""


class Associative(Cell):
    """S = S + v k^T, read by k: a state of N^2 numbers beside a projection of N."""

    matrix_names = ()
    returns_output: ClassVar[bool] = True

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._make_parameters(orthogonal=(), biased=self.gates)

    def state_shapes(self) -> tuple[tuple[int, ...], ...]:
        return ((self.hidden_size, self.hidden_size),)

    def step(self, p_t: torch.Tensor, state: State, W: Matrices) -> tuple[torch.Tensor, State]:
        S = state[0] + p_t[:, :, None] * p_t[:, None, :]
        return (S @ p_t[:, :, None])[..., 0], (S,)


def test_a_matrix_state_counts_in_what_a_run_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    model, task = network(Associative, hidden_size=64), orthobench.build("model=rnn", "task=adding", "T=100").task
    states = 4 * 64 * 64 * 100 * task.batch_size  # bytes of those of all steps
    assert memory.estimate(model, task) > states
    monkeypatch.setattr(memory, "available", lambda accelerator: states)
    with pytest.raises(ConfigError, match=r"this run needs about .* use at most task.batch_size="):
        memory.refuse_if_too_large(model, task, "cpu")


@pytest.mark.parametrize("name", ["lstm", "gru", "scornn", "mlstm", "lem", "urnn_full"])
def test_the_values_of_a_step_are_no_fewer_than_those_of_its_states(name: str) -> None:
    (cell,) = orthobench.build(f"model={name}", "task=adding", "T=5", "recipe=none").model.cells
    assert cell.values_per_step >= cell.state_bytes() / cell.U.element_size()


def test_memory_that_torch_keeps_free_on_a_gpu_is_there_for_the_next_run(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = {"mem_get_info": (5, 100), "memory_reserved": 90, "memory_allocated": 20, "is_available": True}
    for name, value in numbers.items():
        monkeypatch.setattr(torch.cuda, name, lambda value=value: value)
    assert memory.available("auto") == 75


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (torch.OutOfMemoryError(), True),
        (MemoryError(), True),
        (OSError(errno.ENOMEM, "no memory"), True),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"), True),
        (RuntimeError("CUDA error: out of memory\nCUDA kernel errors might be reported later"), True),
        (RuntimeError("CUDA's driver says: out of memory"), True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), True),
        (RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"), True),
        (RuntimeError("CUDA error: an illegal memory access was encountered"), False),
        (RuntimeError("out of resource: shared memory"), False),
        (MemoryExhausted("out of memory with task.batch_size=4; use task.batch_size=2."), False),
    ],
    ids=str,
)
def test_memory_that_has_run_out_is_known_by_what_libraries_say(error: Exception, expected: bool) -> None:
    assert is_exhaustion(error) is expected


@pytest.mark.gpu
def test_freed_memory_of_a_gpu_is_there_for_the_next_run() -> None:
    before = memory.available("gpu")
    block = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    assert memory.available("gpu") < before - (1 << 29)
    del block
    assert memory.available("gpu") > before - (1 << 29)


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="this C library has no mallopt")
@pytest.mark.slow
def test_freed_memory_is_used_again() -> None:
    def fewest_faults(kept: bool) -> int:
        command = [sys.executable, "-c", PROGRAM.format(kept=kept)]
        return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    assert fewest_faults(kept=True) < 10 < fewest_faults(kept=False)
