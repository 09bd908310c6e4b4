"""Sweeps: jobs that fail in any way harm no other, and the same command runs only what is left."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import orthobench
from orthobench.config.check import check
from orthobench.recording.digest import write_sealed
from orthobench.study.catalogue import SHIPPED
from orthobench.study.sweep import jobs, plan, sweep
from tests.faults.conftest import REPO, Count

TINY = (
    "model=rnn",
    "recipe=none",
    "T=4",
    "model.hidden_size=4",
    "trainer.max_steps=5",
    "task.val_size=4",
    "task.test_size=4",
)
HOWS = ("none", "raise", "exit", "exit0", "kill", "segv", "memory", "hang")
FAILING = ("-m", "--config-dir", str(REPO / "tests/faults/conf"), "task=failing", *TINY)


def start(home: Path, *words: str) -> "subprocess.Popen[str]":
    env = {
        **os.environ,
        "ORTHOBENCH_PLUGINS": "tests.faults.plugin",
        "PYTHONPATH": str(REPO),
        "ORTHOBENCH_RUNS": str(home / "runs"),
    }
    command = [sys.executable, "-m", "orthobench", *words]
    return subprocess.Popen(command, cwd=home, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@pytest.mark.faults
@pytest.mark.parametrize(
    "launcher", [(), ("hydra/launcher=joblib", "hydra.launcher.n_jobs=2")], ids=["basic", "joblib"]
)
def test_a_job_that_fails_in_any_way_harms_no_other(tmp_path: Path, launcher: tuple[str, ...], count: Count) -> None:
    words = (*FAILING, f"task.how={','.join(HOWS)}", "seed=1,2", "timeout=60", *launcher)
    process = start(tmp_path, *words)
    out, _ = process.communicate(timeout=1200)
    assert "2 of 16 runs done, " in out, out
    assert process.returncode not in (0, 75)
    for text in ("killed by SIGKILL", "killed by SIGSEGV", "exit code 5", "exit code 7", "took longer than timeout="):
        assert out.count(text) >= 4, (text, out)  # at once and at the end, for two seeds
    count("failing jobs of a sweep that harmed no other", 14)


@pytest.mark.faults
def test_the_same_command_runs_only_what_is_left(tmp_path: Path) -> None:
    words = (*FAILING, "task.how=none,raise", "seed=1,2")
    for done in ("4 runs\n", "4 runs, 2 done already"):
        out, _ = start(tmp_path, *words).communicate(timeout=300)
        assert done in out, out
        assert "2 of 4 runs done, 2 failed" in out


@pytest.mark.faults
def test_a_killed_driver_loses_nothing(tmp_path: Path, count: Count) -> None:
    words, rng = (*FAILING, "seed=1,2,3,4,5,6"), random.Random(2)
    for _ in range(3):
        process = start(tmp_path, *words)
        time.sleep(rng.uniform(2, 15))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        count("drivers of a sweep killed")
    end = time.monotonic() + 120
    while time.monotonic() < end:
        process = start(tmp_path, *words)
        out, _ = process.communicate(timeout=600)
        if "elsewhere" not in out:
            break
    assert process.returncode == 0, out
    assert len(orthobench.records(tmp_path / "runs")) == 6


@pytest.mark.faults
def test_a_stopped_driver_stops_its_jobs_and_goes_on_later(tmp_path: Path) -> None:
    words = (
        "-m",
        *TINY[:-3],
        "task.val_size=4",
        "task.test_size=4",
        "task=copying",
        "trainer.max_steps=30000",
        "trainer.val_check_interval=100",
        "seed=1,2",
    )
    process = start(tmp_path, *words)
    end = time.monotonic() + 120
    while not list((tmp_path / "runs").glob("*/checkpoints/last.ckpt")) and time.monotonic() < end:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 75, out
    assert "stopped; the same command resumes it" in out
    statuses = [json.loads(path.read_text())["status"] for path in (tmp_path / "runs").glob("*/record.json")]
    assert statuses == ["stopped"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ["model=scornn,lstm", "task=adding,copying", "optimizer.lr=1e-3,0.01", "seed=1,2"],
        ["model=scornn", "model.rho=max,0.5,3", "T=8,20", "seed=7"],
        ["model=ncgru", "variant=paper,code", "trainer.max_epochs=null,3", "optimizer=sgd,adam"],
        ["model=scornn", "runs_root='a b','ü'", "params=null,4000", "trainer.gradient_clip_val=null,1.0"],
        ["model=gru", "model.orthogonal=[c],[]", "diagnostics.hidden_gradients=[1]"],
    ],
)
def test_composing_once_equals_composing_every_job(words: list[str]) -> None:
    composer = SHIPPED.composer()
    for job in jobs(SHIPPED.parse(words)):
        assert composer.settings(job) == check(SHIPPED.compose([word.lstrip("+") for word in job]))


@pytest.mark.faults
def test_ten_thousand_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: Count) -> None:
    monkeypatch.setenv("ORTHOBENCH_RUNS", str(tmp_path / "runs"))
    rates = ",".join(f"{0.002 + number / 1e6:.6f}" for number in range(100))
    words = ["model=rnn", "task=adding", *TINY[1:], f"optimizer.lr={rates}", "seed=range(0,100)"]
    started = time.monotonic()
    cells = plan(SHIPPED.parse(words), SHIPPED)
    planned = time.monotonic() - started
    assert len({cell.folder for cell in cells}) == 10_000
    for cell in cells:
        cell.folder.mkdir(parents=True)
        metrics = {"best_val": {"test/loss": 0.1, "val/loss": 0.2}, "last": None}
        content = {
            "schema": 2,
            "status": "done",
            "run_id": cell.folder.name,
            **{"model": "rnn", "task": "adding", "seed": 1, "steps": 5},
            "metrics": metrics,
            "config": {"words": cell.words},
        }
        write_sealed(cell.folder / "record.json", content)
    monkeypatch.setattr(subprocess, "Popen", None)
    started = time.monotonic()
    assert sweep(words, SHIPPED) == 0
    skipped = time.monotonic() - started
    started = time.monotonic()
    assert len(orthobench.records(tmp_path / "runs")) == 10_000
    collected = time.monotonic() - started
    count("seconds to plan 10,000 jobs", planned)
    count("seconds to skip 10,000 done jobs", skipped)
    count("seconds to collect 10,000 records", collected)
    assert (planned < 5, skipped < 30, collected < 60) == (True, True, True), (planned, skipped, collected)
