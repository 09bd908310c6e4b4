"""Memory that a run frees is used again; only the GNU C library has a setting for that."""

import ctypes
import subprocess
import sys

import pytest

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
print([faults() for _ in range(8)][-1])
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="this C library has no mallopt")
@pytest.mark.slow
def test_freed_memory_is_used_again() -> None:
    def last(kept: bool) -> int:
        command = [sys.executable, "-c", PROGRAM.format(kept=kept)]
        return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    assert last(kept=True) < 10 < last(kept=False)
