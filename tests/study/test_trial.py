"""A trial is followed by its validation curve: it is pruned, resumed, waited for, or found finished."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orthobench.errors import StorageError
from orthobench.launch.processes import TIMED_OUT
from orthobench.recording.digest import read_sealed
from orthobench.recording.run_folder import read
from orthobench.study.catalogue import SHIPPED
from orthobench.study.sweep_run import SweepRun
from orthobench.study.tune import trial as module
from orthobench.study.tune.trial import Outcome, TrialRun, follow
from tests.own_runs import run

WORDS = ["model=gru", "task=adding", "T=20"]


class Trained:
    """A process that validates between two looks at it, and ends when it is asked to, or after `steps` of these."""

    steps, code = 4, 0

    def __init__(self, command: Any, place: Any) -> None:
        self.folder, self.done = command.folder, 0
        assert read(Path(command.words[0])).folder == self.folder, "its settings are there when it starts"

    def poll(self, stopping: bool) -> int | None:
        if stopping:
            run(self.folder.parent, *WORDS, status="stopped", reason="stopped by SIGTERM")
            return 75
        if self.done == self.steps:
            if not self.code:
                run(self.folder.parent, *WORDS, val=0.25)
            return self.code
        self.done += 1
        rows = "".join(f"{step},0,val/loss,{1 / step}\n" for step in range(1, self.done + 1))
        (self.folder / "metrics.csv").write_text(f"step,epoch,name,value\n{rows}")
        return None


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TrialRun:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "Process", Trained)
    monkeypatch.setattr(module, "LOOK_S", 0.0)
    return TrialRun(SweepRun(WORDS, SHIPPED.settings([*WORDS, "runs_root=runs"])), "val/loss", tmp_path / "0.log")


def test_a_run_is_followed_to_its_end(work: TrialRun) -> None:
    seen: dict[int, float] = {}
    assert follow(work, lambda step, value: bool(seen.setdefault(step, value)) and False) == Outcome("done", value=0.25)
    assert seen == {1: 1.0, 2: 0.5, 3: 1 / 3, 4: 0.25}


def test_a_pruned_run_is_no_finished_one(work: TrialRun) -> None:
    outcome = follow(work, lambda step, value: step == 2)
    assert outcome == Outcome("pruned", "pruned by its validation score at step 2")
    record = read_sealed(work.run.folder / "record.json")
    assert record is not None
    told = "pruned by its validation score at step 2; the same command resumes the run."
    assert (record["status"], record["reason"]) == ("stopped", told)
    assert work.run.code() is None, "a sweep would go on with it"


def test_a_run_that_had_ended_when_it_was_to_be_pruned_is_done(work: TrialRun, monkeypatch: pytest.MonkeyPatch) -> None:
    class Ending(Trained):
        """Its run ends between the look at the curve that prunes it and the signal."""

        def poll(self, stopping: bool) -> int | None:
            if stopping:
                run(self.folder.parent, *WORDS, val=0.25)
                return 0
            return super().poll(stopping)

    monkeypatch.setattr(module, "Process", Ending)
    assert follow(work, lambda step, value: step == 2) == Outcome("done", value=0.25)


def test_a_finished_run_is_not_started_and_never_pruned(work: TrialRun, monkeypatch: pytest.MonkeyPatch) -> None:
    run(Path("runs"), *WORDS, val=0.125)
    monkeypatch.setattr(module, "Process", None)
    assert follow(work, lambda step, value: True) == Outcome("done", value=0.125)


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({"status": "diverged", "reason": "nan"}, Outcome("diverged", "nan")),
        ({"metrics": {"best_val": {}}}, Outcome("failed", "its record has no val/loss", code=2)),
    ],
)
def test_what_a_finished_run_may_lack(work: TrialRun, changes: dict[str, Any], outcome: Outcome) -> None:
    run(Path("runs"), *WORDS, **changes)
    assert follow(work, lambda step, value: False) == outcome


def test_a_run_that_fails_is_told_with_its_code(work: TrialRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Trained, "code", 3)
    outcome = follow(work, lambda step, value: False)
    assert (outcome.status, outcome.code, outcome.value) == ("failed", 3, None)
    assert str(work.log) in outcome.reason


@pytest.mark.parametrize("reached", [[0], [2, 1, 5, 5, 3]])
@pytest.mark.parametrize(
    ("code", "why"),
    [
        (-9, "killed by SIGKILL, perhaps for want of memory"),
        *((code, "its process ended unfinished") for code in (75, 0)),
    ],
)
def test_a_run_that_is_lost_again_and_again_without_a_further_step_has_failed(
    code: int, why: str, reached: list[int], work: TrialRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its outcome has no exit code, so that the tuning goes on with other values."""
    begun = []

    class Lost(Trained):
        def poll(self, stopping: bool) -> int | None:
            begun.append(self)
            rows = "".join(f"{step},0,train/loss,1\n" for step in range(reached[min(len(begun), len(reached)) - 1] + 1))
            (self.folder / "metrics.csv").write_text(f"step,epoch,name,value\n{rows}")
            return code

    monkeypatch.setattr(module, "Process", Lost)
    outcome = follow(work, lambda step, value: False)
    reason = f"{why}, 3 times after step {max(reached)}; see {work.log}"
    assert (outcome, len(begun)) == (Outcome("failed", reason), 3 if reached == [0] else 5)


def test_a_run_that_stops_by_itself_but_gets_further_is_resumed(
    work: TrialRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its record, where it stops more often than it logs."""
    begun = []

    class Stopping(Trained):
        def poll(self, stopping: bool) -> int | None:
            begun.append(self)
            run(self.folder.parent, *WORDS, status="stopped" if len(begun) < 9 else "done", steps=len(begun), val=0.25)
            return 75 if len(begun) < 9 else 0

    monkeypatch.setattr(module, "Process", Stopping)
    assert follow(work, lambda step, value: False) == Outcome("done", value=0.25)
    assert len(begun) == 9


def test_the_process_is_ended_where_the_study_cannot_be_told(work: TrialRun, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    class Working(Trained):
        code, killed = None, False  # type: ignore[assignment]

        def ask(self) -> None:
            asked.append(self)
            self.code = 75

    def told(step: int, value: float) -> bool:
        raise StorageError("the journal cannot be written.")

    monkeypatch.setattr(module, "Process", Working)
    with pytest.raises(StorageError):
        follow(work, told)
    assert len(asked) == 1


def test_a_run_of_another_process_is_waited_for(work: TrialRun, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = iter([True, True, False])

    def held(folder: Path) -> bool:
        if (found := next(looks)) is False:
            run(Path("runs"), *WORDS, val=0.5)
        return found

    monkeypatch.setattr(module, "is_held", held)
    monkeypatch.setattr(Trained, "steps", 0)
    assert follow(work, lambda step, value: False).status == "done"
    assert list(looks) == []


def test_a_point_that_is_no_number_is_not_reported(work: TrialRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Trained, "steps", 0)
    work.run.folder.mkdir(parents=True)
    (work.run.folder / "metrics.csv").write_text("step,epoch,name,value\n1,0,val/loss,nan\n2,0,val/loss,0.5\n")
    seen: list[Any] = []
    follow(work, lambda step, value: bool(seen.append((step, value))))
    assert json.dumps(seen) == "[[2, 0.5]]"


def test_a_trial_has_the_time_of_a_job(work: TrialRun, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = []

    class Late(Trained):
        code = TIMED_OUT

        def __init__(self, command: Any, place: Any) -> None:
            super().__init__(command, place)
            limits.append(command.timeout)

    monkeypatch.setattr(module, "Process", Late)
    timed = replace(work, run=SweepRun(WORDS, SHIPPED.settings([*WORDS, "runs_root=runs", "timeout=3"])))
    outcome = follow(timed, lambda step, value: False)
    assert (outcome.status, limits) == ("failed", [3.0]), "it is not begun again"
    assert "time" in outcome.reason
