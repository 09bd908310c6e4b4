"""What a record says of the machine."""

import sys

import numpy as np
import pytest
import torch

from orthobench.recording.record import hardware, peak_bytes

CPU = torch.device("cpu")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
def test_the_peak_of_memory_stays_after_what_made_it() -> None:
    before = peak_bytes(CPU)
    held = np.ones(1 << 27, dtype=np.uint8)
    del held
    after = hardware(CPU)["peak_bytes"]
    assert before is not None
    assert after >= before
    assert after > 1 << 27
