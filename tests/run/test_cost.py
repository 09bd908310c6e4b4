"""What `plan` takes for a run's cost: its clock, a bound from longer sequences, and whether the machine is busy."""

import itertools
from typing import Any

import pytest
import torch

from orthobench.__main__ import main
from orthobench.config.many import settings
from orthobench.run import cost as plan_cost
from orthobench.run.cost import Cost, busy, clock_of, no_shorter_is_dearer

RUN = [
    "model=rnn", "task=recall", "recipe=none", "trainer.max_steps=8", "trainer.max_epochs=null", "task.val_size=4",
    "task.test_size=4", "task.batch_size=2", "task.eval_batch_size=2", "logger=none", "trainer.accelerator=cpu",
]  # fmt: skip


def identity(*words: str) -> dict[str, Any]:
    return settings([*RUN, *words]).identity


def cost(step_s: float, steps: int = 8) -> Cost:
    return Cost(10, steps, step_s, evaluation_s=10 * step_s, start_s=1.0, peak_bytes=None)


@pytest.mark.parametrize(("threads", "seconds"), [(1, 6.0), (4, 1.5)])
def test_on_a_cpu_the_clock_is_of_the_work_per_thread(
    threads: int, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.process_time", lambda: 6.0)
    monkeypatch.setattr("time.perf_counter", lambda: 100.0)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    assert (clock_of("cpu")(), clock_of("cuda")()) == (seconds, 100.0)


@pytest.mark.parametrize("scale", [1.0, 10.0])
def test_a_run_is_measured_by_that_clock_alone(scale: float, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = itertools.count()
    monkeypatch.setattr(plan_cost, "clock_of", lambda device: lambda: scale * next(ticks))
    monkeypatch.setattr(plan_cost, "start_up", lambda: 0.0)
    found = plan_cost.measure([*RUN, "T=5"])
    assert found.step_s == scale / plan_cost.FIRST, "the clock is looked at once between two logs"


def test_a_shorter_sequence_is_never_dearer() -> None:
    measured = [(identity("T=200"), cost(3.0)), (identity("T=400"), cost(2.0)), (identity("T=800"), cost(5.0))]
    assert no_shorter_is_dearer(measured) == [cost(2.0), cost(2.0), cost(5.0)]


@pytest.mark.parametrize(
    ("other", "steps"),
    [(["T=400", "model.hidden_size=7"], 8), (["T=400"], 9), (["T=100"], 8)],
    ids=["another model", "another number of steps", "a shorter one"],
)
def test_another_run_is_no_bound(other: list[str], steps: int) -> None:
    measured = [(identity("T=200"), cost(3.0)), (identity(*other), cost(2.0, steps))]
    assert no_shorter_is_dearer(measured)[0] == cost(3.0)


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


@pytest.mark.parametrize(("least", "steps"), [((), 2), (("trainer.min_steps=5",), 5), (("trainer.min_steps=50",), 8)])
def test_a_time_limit_counts_from_the_least_step(
    least: tuple[str, ...], steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = itertools.count()
    monkeypatch.setattr(plan_cost, "clock_of", lambda device: lambda: next(ticks))
    monkeypatch.setattr(plan_cost, "start_up", lambda: 0.0)
    found = plan_cost.measure([*RUN, "T=5", "trainer.max_time=00:00:00:01", *least])
    assert found.steps == steps


def test_a_plan_bounds_the_short_by_the_long_and_warns_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(plan_cost, "measure", lambda words, folders: cost(3.0 if "T=200" in words else 2.0))
    monkeypatch.setattr(plan_cost, "busy", lambda: "this machine is busy")
    assert main(["plan", *RUN, "T=200,400"]) == 0
    out, err = capsys.readouterr()
    assert out.count("8 steps x 2000.0 ms") == 2
    assert err == "orthobench: this machine is busy\n"
