"""Commands given to Slurm, by stand-ins for submitit and the queue: the real one is in tests/clusters."""

import re
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from orthobench.common.packages import install
from orthobench.config import policy
from orthobench.errors import ConfigError, Stopped
from orthobench.launch import slurm_queue
from orthobench.launch.slurm import Slurm
from orthobench.launch.slurm_task import SlurmTask
from orthobench.launch.workers import Command, WorkerLost
from orthobench.recording.files import write_json
from tests.conftest import Refused
from tests.launch.test_forked import until


class FailedJobError(Exception):
    pass


class Site:
    """A cluster: its queue, and what its commands were told."""

    def __init__(self) -> None:
        self.queue: dict[str, tuple[str, str]] | None = {}
        self.states: dict[str, str] = {}
        self.stopped: list[str] = []
        self.arrays: list[list[SlurmTask]] = []
        self.refusals: list[str] = []
        self.parameters: dict[str, Any] = {}

    def end(self, job: str, code: int | None, stays: bool = False) -> None:
        """Let a job end with an exit code, or without one; it may stay in the queue."""
        array, _, index = job.partition("_")
        if code is not None:
            write_json(self.arrays[int(array) - 1][int(index or 0)].outcome, {"code": code})
        if not stays and self.queue is not None:
            del self.queue[job]


def installed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A stand-in for submitit."""
    package = ModuleType("submitit")
    for name in ("submitit", "submitit.core", "submitit.core.utils"):
        monkeypatch.setitem(sys.modules, name, package)
    return package


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Site:
    site = Site()

    class Executor:
        def __init__(self, folder: Path, max_num_timeout: int) -> None:
            self.tasks: list[SlurmTask] = []

        def update_parameters(self, **parameters: Any) -> None:
            site.parameters = parameters

        @contextmanager
        def batch(self) -> Iterator[None]:
            self.jobs: list[Any] = []
            yield
            if site.refusals:
                raise FailedJobError(f"sbatch: error: {site.refusals.pop(0)}")
            site.arrays.append(self.tasks)
            number = len(site.arrays)
            for index, job in enumerate(self.jobs):
                job.job_id = f"{number}_{index}" if len(self.jobs) > 1 else str(number)
                assert site.queue is not None
                site.queue[job.job_id] = ("PENDING", site.parameters["job_name"])

        def submit(self, task: SlurmTask) -> Any:
            self.tasks.append(task)
            self.jobs.append(SimpleNamespace(job_id=None))
            return self.jobs[-1]

    package = installed(monkeypatch)
    package.SlurmExecutor = Executor
    package.core = SimpleNamespace(utils=SimpleNamespace(FailedJobError=FailedJobError))
    monkeypatch.setattr(slurm_queue, "check", lambda: None)
    monkeypatch.setattr(slurm_queue, "queued", lambda: site.queue and dict(site.queue))
    monkeypatch.setattr(slurm_queue, "state", site.states.get)
    monkeypatch.setattr(slurm_queue, "stop", site.stopped.extend)
    monkeypatch.setattr("orthobench.launch.slurm.AGAIN_S", 0.0)
    return site


def launcher(folder: Path, array: int = 10) -> Slurm:
    return Slurm(folder / ".slurm", {"partition": "low"}, array, 3, 100, 0.0)


def submitted(slurm: Slurm, *names: str) -> list[Any]:
    return [slurm.submit(Command("orthobench", [f"seed={name}"], None, name)) for name in names]


def begun(slurm: Slurm, *names: str) -> list[Any]:
    """Commands that are in the queue."""
    workers = submitted(slurm, *names)
    until(lambda: all(worker.poll() is None and worker.job for worker in workers))
    return workers


def test_many_commands_are_few_submissions(site: Site, tmp_path: Path) -> None:
    begun(launcher(tmp_path), *"abcdefghijklm")
    assert [len(array) for array in site.arrays] == [10, 3]
    assert site.parameters["partition"] == "low"


def test_one_command_is_a_job_of_its_own(site: Site, tmp_path: Path) -> None:
    (worker,) = begun(launcher(tmp_path), "a")
    assert worker.job == "1"
    site.end("1", 0)
    assert worker.poll() == 0


@pytest.mark.parametrize("code", [0, 5, -9, 124])
def test_an_exit_code_counts_at_once(site: Site, tmp_path: Path, code: int) -> None:
    worker, other = begun(launcher(tmp_path), "a", "b")
    site.end("1_0", code, stays=True)
    assert (worker.poll(), other.poll()) == (code, None)


def test_a_stopped_job_that_is_in_the_queue_again_goes_on(site: Site, tmp_path: Path) -> None:
    worker, _ = begun(launcher(tmp_path), "a", "b")
    site.end("1_0", 75, stays=True)
    assert worker.poll() is None
    site.end("1_0", None)
    assert worker.poll() == Stopped.exit_code


@pytest.mark.parametrize("state", [None, "CANCELLED"])
def test_a_job_that_is_gone_without_a_code_is_lost_or_stopped(site: Site, tmp_path: Path, state: str | None) -> None:
    worker, _ = begun(launcher(tmp_path), "a", "b")
    site.end("1_0", None)
    site.states |= {"1_0": state} if state else {}
    assert worker.poll() is None  # its file may come late
    with nullcontext() if state else pytest.raises(WorkerLost):
        assert worker.poll() == Stopped.exit_code


def test_a_controller_that_does_not_answer_says_nothing_about_a_job(site: Site, tmp_path: Path) -> None:
    worker, _ = begun(launcher(tmp_path), "a", "b")
    known, site.queue = site.queue, None
    assert [worker.poll() for _ in range(4)] == [None] * 4
    site.queue = known
    assert worker.poll() is None


def test_the_driver_stops_what_waits_runs_or_was_never_submitted(site: Site, tmp_path: Path) -> None:
    slurm = launcher(tmp_path)
    worker, _ = begun(slurm, "a", "b")
    site.refusals = ["job submit limit"] * 1000
    (late,) = submitted(slurm, "c")
    worker.cancel()
    late.cancel()
    until(lambda: late.poll() == Stopped.exit_code)
    assert site.stopped == ["1_0"]
    site.end("1_0", None)
    worker.poll()
    assert worker.poll() == Stopped.exit_code


def test_a_driver_that_is_started_again_finds_what_is_queued(site: Site, tmp_path: Path) -> None:
    begun(launcher(tmp_path), "a", "b", "c")
    site.end("1_1", None)
    again = launcher(tmp_path)
    workers = submitted(again, "a", "b", "c")
    assert [worker.job for worker in workers] == ["1_0", "", "1_2"]
    until(lambda: workers[1].poll() is None and bool(workers[1].job))
    assert [len(array) for array in site.arrays] == [3, 1]
    site.end("1_2", 0)
    assert workers[2].poll() == 0


def test_a_submission_whose_id_was_not_written_is_found_by_its_name(site: Site, tmp_path: Path) -> None:
    begun(launcher(tmp_path), "a", "b")
    (path,) = (tmp_path / ".slurm").glob("*/array.json")
    write_json(path, {"runs": ["a", "b"], "job": None})
    assert [worker.job for worker in submitted(launcher(tmp_path), "b", "a")] == ["1_1", "1_0"]


def test_a_full_queue_is_tried_again_with_smaller_arrays(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site.refusals = ["Batch job submission failed: Resource temporarily unavailable"] * 2
    workers = begun(launcher(tmp_path), *"abcdefgh")
    assert [len(array) for array in site.arrays] == [2, 4, 2]
    assert len({worker.job for worker in workers}) == 8
    assert "Slurm takes no array of 8 now" in capsys.readouterr().err


def test_a_missing_package_names_its_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "submitit", None)
    with pytest.raises(ConfigError, match=re.escape(install("slurm"))):
        launcher(tmp_path)


SQUEUE = "12_3|RUNNING|orthobench-ab\n12_[4-5]|PENDING|orthobench-ab\n7|COMPLETING|other\n\n"


def test_what_squeue_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    command(tmp_path, "squeue", f"printf '{SQUEUE}'")
    command(tmp_path, "scontrol", "echo 'JobId=12 JobName=a JobState=CANCELLED Reason=None'")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    found = slurm_queue.queued()
    assert found is not None
    assert found["12_3"] == ("RUNNING", "orthobench-ab")
    assert found["7"][0] == "COMPLETING"
    assert slurm_queue.state("12") == "CANCELLED"
    command(tmp_path, "squeue", "exit 1")
    assert slurm_queue.queued() is None


def test_a_machine_without_slurm_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="squeue is not on this machine"):
        slurm_queue.queued()


@pytest.mark.parametrize("lacking", ["sbatch", "srun", "squeue"])
@pytest.mark.parametrize(
    "words",
    [
        ("-m", "model=gru", "task=copying", "seed=1,2", "hydra/launcher=slurm", "hydra.launcher.partition=gpu"),
        ("reproduce", "urnn_ugru/table3", "--preset", "smoke", "--launcher", "slurm"),
    ],
    ids=["sweep", "reproduce"],
)
def test_nothing_is_written_where_nothing_can_be_submitted(
    words: tuple[str, ...], lacking: str, here: Path, monkeypatch: pytest.MonkeyPatch, refused: Refused
) -> None:
    installed(monkeypatch)
    monkeypatch.setattr(policy, "_is_there", lambda package: True)
    monkeypatch.setattr(shutil, "which", lambda name: None if name == lacking else name)
    refused(list(words), f"{lacking} is not on this machine: the Slurm launcher needs a submitting host.")
    assert not (here / "runs").exists()


def command(folder: Path, name: str, line: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{line}\n")
    (folder / name).chmod(0o755)


def test_a_refused_array_is_not_waited_for(site: Site, tmp_path: Path) -> None:
    from orthobench.launch.processes import Job, Pool

    site.refusals = ["Batch job submission failed: Invalid partition name specified"]
    jobs = [Job([tmp_path / n], None) for n in "ab"]
    started = time.monotonic()
    with pytest.raises(ConfigError, match="sbatch refuses: Batch job submission failed: Invalid partition"):
        list(Pool(2, lambda: False, place=launcher(tmp_path)).run(jobs))
    assert time.monotonic() - started < 30
