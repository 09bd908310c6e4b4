"""What the rows of a log point say of the step that was done."""

from pathlib import Path

import pytest

from tests.run.callbacks.watching import finished


def test_the_learning_rate_is_that_of_the_step(tmp_path: Path) -> None:
    words = ("model=rnn", "schedule=linear", "optimizer.lr=0.06", f"runs_root={tmp_path}")
    _, curve = finished(*words)
    found = {int(step): float(rate) for step, rate in curve.of("lr/free")}
    assert found == pytest.approx({2: 0.05, 4: 0.03, 6: 0.01})
