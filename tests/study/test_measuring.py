"""What `plan` takes for a run's cost: its clock, a bound from longer sequences, and whether the machine is busy."""

import itertools
from pathlib import Path

import pytest
import torch

from orthobench.__main__ import main
from orthobench.study.catalogue import SHIPPED
from orthobench.study.costs import measuring
from orthobench.study.costs.measuring import busy, clock_of

RUN = [
    "model=rnn", "task=recall", "recipe=none", "trainer.max_steps=8", "trainer.max_epochs=null", "task.val_size=4",
    "task.test_size=4", "task.batch_size=2", "task.eval_batch_size=2", "logger=none", "trainer.accelerator=cpu",
]  # fmt: skip


@pytest.mark.parametrize(("threads", "seconds"), [(1, 6.0), (4, 1.5)])
def test_on_a_cpu_the_clock_is_of_the_work_per_thread(
    threads: int, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.process_time", lambda: 6.0)
    monkeypatch.setattr("time.perf_counter", lambda: 100.0)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    assert (clock_of(torch.device("cpu"))(), clock_of(torch.device("cuda"))()) == (seconds, 100.0)


@pytest.mark.parametrize("scale", [1.0, 10.0])
def test_a_step_is_measured_by_that_clock_alone(scale: float, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = itertools.count()
    monkeypatch.setattr(measuring, "clock_of", lambda device: lambda: scale * next(ticks))
    found = measuring.measure(SHIPPED.settings([*RUN, "T=5"]))
    assert found.step_s == scale, "the clock is looked at once before a step and once after it"
    assert found.batch_s == scale, "evaluations have batches of the same size here"


def test_a_long_sequence_is_measured_by_a_shorter_one_and_scaled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "RATE", 1e3)
    ticks = itertools.count()
    monkeypatch.setattr(measuring, "clock_of", lambda device: lambda: next(ticks))
    asked = [word for word in RUN if word != "task=recall"] + ["task=copying"]
    found = measuring.measure(SHIPPED.settings([*asked, "T=500"]))
    assert (found.T, found.measured_T) == (500, measuring.SHORTEST)
    assert found.step_s == 500 / measuring.SHORTEST


def test_what_is_measured_is_of_a_run_that_nothing_is_written_of(tmp_path: Path) -> None:
    measuring.measure(SHIPPED.settings([*RUN, "T=5", f"runs_root={tmp_path}"]))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("load", "cores", "told"), [(0.9, 2, False), (1.1, 2, True), (0.0, 1, False), (6.9, 8, False), (7.1, 8, True)]
)
def test_a_busy_machine_is_told_of(load: float, cores: int, told: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.getloadavg", lambda: (load, 0.0, 0.0))
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: set(range(cores)))
    found = busy()
    assert (found is not None) == told
    assert found is None or f"load {load}, {cores} core" in found


def test_cores_are_counted_where_a_process_cannot_be_kept_to_some(monkeypatch: pytest.MonkeyPatch) -> None:
    """As under macOS."""
    monkeypatch.delattr("os.sched_getaffinity")
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    monkeypatch.setattr("os.getloadavg", lambda: (3.5, 0.0, 0.0))
    assert "load 3.5, 4 cores" in str(busy())


def test_a_plan_warns_once_and_names_where_costs_are_from(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(measuring, "busy", lambda: "this machine is busy")
    words = [*RUN, f"runs_root={tmp_path}"]
    for told in ("1 scaled, 1 measured", "1 kept, 1 scaled"):
        assert main(["plan", *words, "T=20,40", "seed=1,2"]) == 0
        out, err = capsys.readouterr()
        assert out.splitlines()[1].startswith("4 missing; ")
        assert out.splitlines()[1].endswith(f"({told})")
        assert out.count("8 steps x") == 2
        assert err == "orthobench: this machine is busy\n"
