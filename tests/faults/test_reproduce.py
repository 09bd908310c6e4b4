"""`reproduce` that is killed or stopped again and again goes on where it was, and ends with the same records."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from orthobench.study.records import records
from tests.conftest import write
from tests.faults.conftest import REPO, Count

TABLE = """
description: "Mine, Table 1: adding"
track: published
seeds: [1, 2, 3]
margin: {test/loss: 0.01}
common: [task=adding, recipe=none, T=5, trainer.max_steps=400, trainer.val_check_interval=50, task.val_size=8,
         task.test_size=8, model.hidden_size=4]
cells:
  rnn: [model=rnn]
  gru: [model=gru]
presets: {}
"""
PUBLISHED = """
rows:
  - {table: table1, row: RNN, column: Test loss, metric: test/loss, section: "1", seeds: 1, select: last, kind: result,
    value: 0.05, cell: rnn}
"""
MADE_OF = ("run_id", "cell", "seed", "status", "steps", "best_val:test/loss", "last:test/loss", "last:val/loss")
NAME = "mine/table1"


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    """A folder of `--config-dir` with a table of one's own."""
    files = {
        "experiment/mine/table1.yaml": TABLE,
        "published/mine.yaml": PUBLISHED,
        "published/mine.bib": "@misc{a,}\n",
    }
    return write(tmp_path / "conf", files)


def start(home: Path, conf: Path) -> "subprocess.Popen[str]":
    home.mkdir(exist_ok=True)
    env = {**os.environ, "PYTHONPATH": str(REPO), "ORTHOBENCH_RUNS": str(home / "runs")}
    words = ["reproduce", NAME, "--config-dir", str(conf), f"results_root={home / 'results'}", "--jobs", "2"]
    command = [sys.executable, "-m", "orthobench", *words]
    return subprocess.Popen(command, cwd=home, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def made(home: Path) -> list[dict[str, object]]:
    """The records but for what differs from time to time."""
    lines = records.read(home / "results", NAME)
    return [{name: line.values.get(name) for name in MADE_OF} for line in lines]


@pytest.mark.faults
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_it_goes_on_where_it_was(number: signal.Signals, tmp_path: Path, conf: Path, count: Count) -> None:
    out, _ = start(tmp_path / "whole", conf).communicate(timeout=300)
    expected = made(tmp_path / "whole")
    assert len(expected) == 6, out
    home, rng = tmp_path / "home", random.Random(int(number))
    for _ in range(3):
        process = start(home, conf)
        time.sleep(rng.uniform(3, 9))
        process.send_signal(number)
        process.communicate(timeout=120)
        assert made(home) == [line for line in expected if line in made(home)], "a record is whole, or is not there"
        count("times that reproduce was killed or stopped")
    end = time.monotonic() + 300
    while time.monotonic() < end:
        process = start(home, conf)
        out, _ = process.communicate(timeout=300)
        if "elsewhere" not in out:
            break
    assert process.returncode == 0, out
    assert "Traceback" not in out
    assert made(home) == expected
