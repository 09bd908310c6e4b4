"""What a record says of the machine."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from orthobench.recording.record import peak_bytes

CPU = torch.device("cpu")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
@pytest.mark.slow
def test_the_peak_of_memory_stays_after_what_made_it() -> None:
    """Linux counts per CPU and adds up late: on a large machine these figures are wrong by 100 MB and more."""
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    held = np.ones(1 << 30, dtype=np.uint8)
    del held
    assert (peak_bytes(CPU) or 0) > resident + (1 << 29)
