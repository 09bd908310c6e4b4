"""One interface of all launchers: what the words choose, what is refused, and commands on this machine's GPUs."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from orthobench.common.packages import install
from orthobench.config import policy
from orthobench.errors import ConfigError, Stopped
from orthobench.launch import local, remote
from orthobench.launch.local import Local
from orthobench.launch.processes import Pool
from orthobench.launch.remote import carry_out
from orthobench.launch.workers import Command
from orthobench.recording.claim import Claim
from orthobench.study.launcher import launcher_of
from tests.conftest import Refused
from tests.launch.test_forked import command, until


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if all packages were."""
    monkeypatch.setattr(policy, "_is_there", lambda package: True)


@pytest.mark.parametrize(
    ("name", "words", "expected"),
    [
        (None, [], None),
        (None, ["hydra/launcher=local"], 1),
        (None, ["hydra/launcher=basic"], 1),
        (None, ["hydra.launcher.n_jobs=3"], 3),
        (None, ["hydra/launcher=local", "hydra.launcher.jobs=3"], 3),
        ("local", ["hydra.launcher.jobs=2"], 2),
        (None, ["hydra/launcher=joblib", "hydra.launcher.n_jobs=4"], 4),
        (None, ["hydra/launcher=joblib"], len(os.sched_getaffinity(0))),
    ],
)
def test_a_name_or_words_choose_a_launcher(
    name: str | None, words: list[str], expected: int | None, tmp_path: Path
) -> None:
    found = launcher_of(name, words, tmp_path)
    assert (found and found.at_once) == expected
    assert found is None or isinstance(found, Local)


def test_the_settings_of_slurm_become_those_of_sbatch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []
    monkeypatch.setattr("orthobench.launch.slurm.Slurm", lambda *arguments: given.append(arguments))
    words = ["partition=gpu", "time=90", "gpus=1", "memory_gb=1.5", "array=50", "options={nice: 7}", "setup=[ml cuda]"]
    launcher_of("slurm", [f"hydra.launcher.{word}" for word in words], tmp_path)
    folder, options, array, *_ = given[0]
    assert (folder, array) == (tmp_path / ".slurm", 50)
    assert options == {
        "partition": "gpu", "time": 90, "cpus_per_task": 1, "gpus_per_node": 1, "mem": "1536M", "setup": ["ml cuda"],
        "array_parallelism": 256, "signal_delay_s": 120, "stderr_to_stdout": True,
        "additional_parameters": {"requeue": True, "nice": 7},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "words", "sentence"),
    [
        ("slurn", [], "--launcher slurn is not known: did you mean 'slurm'"),
        (
            "slurm",
            ["hydra.launcher.partitoin=gpu"],
            "hydra.launcher.partitoin is no setting of hydra/launcher=slurm: did you mean 'partition'",
        ),
        ("local", ["hydra.launcher.partition=gpu"], "partition is no setting of hydra/launcher=local: allowed: gpus, "),
        ("joblib", ["+hydra.launcher.n_job=2"], "n_job is no setting of hydra/launcher=local: did you mean 'n_jobs'"),
        ("ray", ["hydra.launcher.name=slurm"], "name is no setting of hydra/launcher=ray"),
        ("slurm", ["hydra.launcher.time=1h"], "time=1h is not a whole number >= 1: give minutes, such as 60."),
        ("slurm", ["hydra.launcher.poll_s=fast"], "poll_s=fast is not a number >= 0.1: give seconds, such as 10."),
        ("slurm", ["hydra.launcher.memory_gb=4G"], "memory_gb=4G is not a number >= 0.01: give gigabytes, such as 4."),
        ("slurm", ["hydra.launcher.array=0"], "hydra.launcher.array=0 is not a whole number >= 1"),
        ("slurm", ["hydra.launcher.time=1"], "signal_s=120 is not within the time limit"),
        ("ray", ["hydra.launcher.cpus=half"], "hydra.launcher.cpus=half is not a number >= 0"),
        ("ray", ["hydra.launcher.retries=1.5"], "retries=1.5 is not a whole number"),
        ("local", ["hydra.launcher.jobs=0"], "hydra.launcher.jobs=0 is not a whole number >= 1"),
        ("local", ["hydra.launcher.n_jobs=0"], "hydra.launcher.n_jobs=0 is not a whole number >= 1"),
        ("joblib", ["hydra.launcher.n_jobs=two"], "hydra.launcher.n_jobs=two is not a whole number >= 1"),
        ("local", ["hydra.launcher.gpus=some"], "hydra.launcher.gpus=some is neither all"),
        ("local", ["hydra.launcher.gpus=[0,0]"], "is neither all"),
        ("local", ["hydra.launcher.gpus=2"], "this machine shows 1 GPUs"),
        ("local", ["hydra.launcher.gpus=[-1]"], "this machine shows 1 GPUs"),
        ("local", ["hydra.launcher.gpus=1", "hydra.launcher.n_jobs=2"], "n_jobs=2 does not apply beside"),
        ("local", ["hydra.launcher.gpus=1", "hydra.launcher.per_gpu=0"], "per_gpu=0 is not a whole number >= 1"),
        ("local", ["hydra.launcher.gpus=1", "hydra.launcher.per_gpu=half"], "per_gpu=half is not a whole number"),
        ("local", ["hydra.launcher.per_gpu=2"], "per_gpu=2 needs hydra.launcher.gpus="),
        ("local", [f"hydra.launcher.{word}" for word in ("gpus=1", "per_gpu=3", "n_jobs=2")], "3 on each"),
    ],
)
def test_what_is_wrong_is_refused(
    name: str, words: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    with pytest.raises(ConfigError, match=sentence):
        launcher_of(name, words, tmp_path)


@pytest.mark.parametrize("name", ["slurm", "ray"])
@pytest.mark.parametrize("verb", [("-m", "seed=1,2"), ("reproduce", "urnn_ugru/table3", "--preset", "smoke")])
def test_a_missing_package_is_a_sentence_and_nothing_starts(
    name: str, verb: tuple[str, ...], here: Path, monkeypatch: pytest.MonkeyPatch, refused: Refused
) -> None:
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, {"slurm": "submitit"}.get(name, name), None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr(policy, "_is_there", lambda package: False)
    refused([*verb, f"hydra/launcher={name}"], install(name))
    assert not (here / "runs").exists()


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> list[SimpleNamespace]:
    """The commands that a launcher on this machine was given, each with its GPU; they end when a test says so."""
    given = list[SimpleNamespace]()

    def submit(command: Command) -> SimpleNamespace:
        given.append(one := SimpleNamespace(gpu=command.variables[local.VISIBLE], code=None, poll=lambda: one.code))
        return one

    monkeypatch.setattr("torch.cuda.device_count", lambda: 4)
    monkeypatch.delenv(local.VISIBLE, raising=False)
    monkeypatch.setattr(local, "launcher", lambda fork: SimpleNamespace(submit=submit))
    return given


def filled(words: str, folder: Path) -> Local:
    """A launcher that has as many commands as it takes at once."""
    found = launcher_of(None, [f"hydra.launcher.{word}" for word in words.split()], folder)
    assert isinstance(found, Local)
    for _ in range(found.at_once):
        found.submit(command("exit", "0"))
    return found


@pytest.mark.parametrize(
    ("gpus", "visible", "names"),
    [("all", None, "0 1 2 3"), ("2", None, "0 1"), ("[2,0]", None, "2 0"), ("[1]", "GPU-a,GPU-b,GPU-c,GPU-d", "GPU-b")],
)
def test_each_command_has_a_gpu_for_itself(
    gpus: str, visible: str | None, names: str, given: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if visible:
        monkeypatch.setenv(local.VISIBLE, visible)
    found = filled(f"gpus={gpus}", tmp_path)
    assert [one.gpu for one in given] == names.split()
    with pytest.raises(ConfigError, match="runs at a time are wanted"):
        Pool(found.at_once + 1, lambda: False, place=found)


@pytest.mark.parametrize(("per_gpu", "first"), [(1, "0 1 2 3"), (2, "0 1 2 3 0 1 2 3")])
def test_all_gpus_are_kept_busy(per_gpu: int, first: str, given: list[Any], tmp_path: Path) -> None:
    """Commands are spread over four GPUs, and each next one goes to the GPU that is used least."""
    found = filled(f"gpus=4 per_gpu={per_gpu}", tmp_path)
    assert [one.gpu for one in given] == first.split()
    with pytest.raises(ConfigError, match=f"{found.at_once + 1} runs at a time are wanted, and 4 GPUs"):
        found.submit(command("exit", "0"))
    for gpu in ("2", "1"):
        next(one for one in given if one.gpu == gpu).code = 0
        found.submit(command("exit", "0"))
        assert given[-1].gpu == gpu
    for one in given:
        one.code = 0 if one.gpu == "3" else one.code
    for _ in range(per_gpu):
        found.submit(command("exit", "0"))
    assert [one.gpu for one in given[-per_gpu:]] == ["3"] * per_gpu


def test_a_command_sees_the_gpu_that_it_was_given(tmp_path: Path) -> None:
    log, place = tmp_path / "log", Local(1, ["GPU-7"])
    worker, found = place.submit(command("show", local.VISIBLE, log=log)), list[int | None]()
    until(lambda: found.append(worker.poll()) or found[-1] is not None)
    assert log.read_text() == "GPU-7"


def test_a_worker_keeps_the_time_limit_of_its_command(tmp_path: Path) -> None:
    late = Command("tests.launch.program", ["sleep", str(tmp_path / "began")], None, timeout=0.2)
    assert carry_out(late, lambda: False, "a worker") == 124


def test_a_worker_waits_for_the_attempt_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It finds the run claimed, by what is left of the attempt that it follows, and does it when that has ended."""
    run, claims = tmp_path / "run", list[Claim]()
    claim = Claim(run).__enter__()
    codes = iter([Stopped.exit_code, 0])

    def attempt(*_: Any) -> int:
        code = next(codes)
        claims.append(claim)
        return code

    monkeypatch.setattr(remote, "_attempt", attempt)
    threading.Timer(0.3, claim.__exit__, [None, None, None]).start()
    assert carry_out(Command("orthobench", [], None, "run", run), lambda: False, "a worker") == 0
    assert len(claims) == 2


TIED = """
import subprocess, sys, time
from pathlib import Path
from orthobench.launch.workers import Command, Subprocesses
log = Path(sys.argv[1])
Subprocesses().submit(Command("tests.launch.tied", [sys.argv[2]], log, tied=True))
time.sleep(60)
"""


def test_a_tied_child_is_asked_to_stop_when_its_parent_is_killed(tmp_path: Path) -> None:
    began = tmp_path / "began"
    with subprocess.Popen([sys.executable, "-c", TIED, str(tmp_path / "log"), str(began)]) as parent:
        until(began.exists)
        parent.kill()
    until(lambda: (tmp_path / "log").read_text() == f"{signal.SIGTERM:d}")


def test_a_machine_without_a_gpu_says_so() -> None:
    with pytest.raises(ConfigError, match=r"gpus=all: this machine shows no GPUs; leave gpus out\.$"):
        local._names("all", [])
