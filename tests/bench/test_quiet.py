"""Who had the cores while something was measured: from a made-up /proc/stat, and from loads."""

import os
from pathlib import Path

import pytest

from orthobench.bench import quiet
from orthobench.bench.quiet import Load, busy_s, refuse_if_busy, watched
from orthobench.errors import ConfigError, Stopped

TICK = 1 / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize(
    ("load", "problem"),
    [
        (Load(10.0, 0.0, 10.0), None),
        (Load(10.0, 0.9, 10.0), None),
        (Load(10.0, 1.1, 10.0), "other programs had 11% of a core"),
        (Load(10.0, 0.0, 9.0), "this program got 90% of a core"),
        (Load(0.02, 3 * TICK, 0.02), None),  # no more than the kernel's clock can be off
    ],
)
def test_what_is_quiet(load: Load, problem: str | None) -> None:
    found = load.problem
    assert found == problem or (problem is not None and found is not None and problem in found)


def stat(path: Path, *cores: tuple[int, ...]) -> Path:
    lines = ["cpu  9 9 9 9 9 9 9 9 0 0", *(f"cpu{i} {' '.join(map(str, core))}" for i, core in enumerate(cores))]
    path.write_text("\n".join([*lines, "intr 12 3", "ctxt 5"]))
    return path


def test_the_cores_that_this_program_may_not_use_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Idle time and waiting for a disk are no work."""
    path = stat(tmp_path / "stat", (100, 10, 1, 7000, 500, 2, 3, 4, 0, 0), (1, 1, 1, 1, 1, 1, 1, 1, 0, 0))
    monkeypatch.setattr(quiet, "STAT", path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    assert busy_s() == pytest.approx(120 * TICK)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    assert busy_s() == pytest.approx(126 * TICK)


def test_others_are_what_this_program_did_not_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quiet, "STAT", stat(tmp_path / "stat", (100, 0, 0, 0)))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    clocks = iter([1.0, 3.0])
    monkeypatch.setattr(quiet.time, "process_time", lambda: next(clocks))
    load = watched(lambda: stat(tmp_path / "stat", (100 + round(5 / TICK), 0, 0, 0)))
    assert load.others_s == pytest.approx(3.0)
    assert load.own_s == 2.0


def test_a_busy_machine_is_refused_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quiet, "watched", lambda work: Load(1.0, 0.5, 0.0))
    with pytest.raises(Stopped, match="other programs have 47% of a core, and 10% is allowed; nothing was measured"):
        refuse_if_busy()


def test_a_system_that_does_not_tell_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quiet, "STAT", tmp_path / "none")
    with pytest.raises(ConfigError, match="needs Linux"):
        busy_s()
