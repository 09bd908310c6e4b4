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
    ("words", "expected"),
    [
        ([], None),
        (["hydra/launcher=local"], 1),
        (["hydra/launcher=basic"], 1),
        (["hydra.launcher.n_jobs=3"], 3),
        (["hydra/launcher=local", "hydra.launcher.jobs=3"], 3),
    ],
)
def test_words_choose_a_launcher(words: list[str], expected: int | None, tmp_path: Path) -> None:
    found = launcher_of(None, words, tmp_path)
    assert (found and found.at_once) == expected


def test_a_name_chooses_a_launcher_and_words_set_it(tmp_path: Path) -> None:
    found = launcher_of("local", ["hydra.launcher.jobs=2"], tmp_path)
    assert isinstance(found, Local)
    assert found.at_once == 2


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
        ("slurm", ["hydra.launcher.partion=x"], "partion"),
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
    refused([*verb, f"hydra/launcher={name}"], f"pip install 'orthobench[{name}]'")
    assert not (here / "runs").exists()


@pytest.mark.parametrize(("words", "expected"), [(["n_jobs=4"], 4), ([], len(os.sched_getaffinity(0)))])
def test_joblib_is_a_word_for_several_at_a_time_on_this_machine(words: list[str], expected: int) -> None:
    found = launcher_of(None, ["hydra/launcher=joblib", *(f"hydra.launcher.{word}" for word in words)], Path())
    assert isinstance(found, Local)
    assert found.at_once == expected


@pytest.mark.parametrize(
    ("gpus", "visible", "names"),
    [("all", None, "0 1 2"), ("2", None, "0 1"), ("[2,0]", None, "2 0"), ("[1]", "GPU-a,GPU-b,GPU-c", "GPU-b")],
)
def test_each_command_has_a_gpu_for_itself(
    gpus: str, visible: str | None, names: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A third command gets the GPU of the one that has ended."""
    monkeypatch.setattr("torch.cuda.device_count", lambda: 3)
    monkeypatch.setenv(local.VISIBLE, visible) if visible else monkeypatch.delenv(local.VISIBLE, raising=False)
    found = launcher_of(None, [f"hydra.launcher.gpus={gpus}"], tmp_path)
    assert isinstance(found, Local)
    assert found.at_once == len(names.split())
    given, ended = list[Command](), list[int]()

    def submit(command: Command) -> SimpleNamespace:
        number = len(given)
        given.append(command)
        return SimpleNamespace(poll=lambda: 0 if number in ended else None)

    monkeypatch.setattr(local, "launcher", lambda fork: SimpleNamespace(submit=submit))
    for _ in range(found.at_once):
        found.submit(command("exit", "0"))
    ended.append(0)
    found.submit(command("exit", "0"))
    used = [one.variables[local.VISIBLE] for one in given]
    assert used == [*names.split(), names.split()[0]]
    with pytest.raises(ConfigError, match="runs at a time are wanted"):
        Pool(found.at_once + 1, lambda: False, place=found)


@pytest.mark.parametrize(("per_gpu", "first"), [(1, "0 1 2 3"), (2, "0 1 2 3 0 1 2 3")])
def test_all_gpus_are_kept_busy(per_gpu: int, first: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands are spread over four GPUs, and each next one goes to the GPU that is used least."""
    monkeypatch.setattr("torch.cuda.device_count", lambda: 4)
    monkeypatch.delenv(local.VISIBLE, raising=False)
    words = ["hydra/launcher=local", "hydra.launcher.gpus=4", f"hydra.launcher.per_gpu={per_gpu}"]
    found = launcher_of(None, words, tmp_path)
    assert isinstance(found, Local)
    given, ended = list[str](), set[int]()

    def submit(command: Command) -> SimpleNamespace:
        number = len(given)
        given.append(command.variables[local.VISIBLE])
        return SimpleNamespace(poll=lambda: 0 if number in ended else None)

    monkeypatch.setattr(local, "launcher", lambda fork: SimpleNamespace(submit=submit))
    for _ in range(found.at_once):
        found.submit(command("exit", "0"))
    assert given == first.split()
    with pytest.raises(ConfigError, match=f"{found.at_once + 1} runs at a time are wanted, and 4 GPUs"):
        found.submit(command("exit", "0"))
    for gpu in ("2", "1"):
        ended.add(given.index(gpu))
        found.submit(command("exit", "0"))
        assert given[-1] == gpu
    ended.update(number for number, gpu in enumerate(given) if gpu == "3")
    for _ in range(per_gpu):
        found.submit(command("exit", "0"))
    assert given[-per_gpu:] == ["3"] * per_gpu


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
