"""One interface of four launchers: what the words choose, what is refused, and commands carried out by joblib."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orthobench.__main__ import main
from orthobench.config import policy
from orthobench.errors import ConfigError, Stopped
from orthobench.launch import launchers, remote
from orthobench.launch.joblib import Joblib
from orthobench.launch.launchers import named
from orthobench.launch.processes import Local, Process
from orthobench.launch.remote import carry_out
from orthobench.launch.workers import Command, WorkerLost
from orthobench.recording.claim import Claim
from tests.launch.test_forked import command, until


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if all packages were."""
    monkeypatch.setattr(policy, "_is_there", lambda package: True)


@pytest.mark.parametrize(
    ("words", "expected"),
    [([], None), (["hydra/launcher=local"], 1), (["hydra/launcher=local", "hydra.launcher.jobs=3"], 3)],
)
def test_words_choose_a_launcher(words: list[str], expected: int | None, tmp_path: Path) -> None:
    found = named(None, words, tmp_path)
    assert (found and found.at_once) == expected


def test_a_name_chooses_a_launcher_and_words_set_it(tmp_path: Path) -> None:
    found = named("local", ["hydra.launcher.jobs=2"], tmp_path)
    assert isinstance(found, Local)
    assert found.at_once == 2


def test_the_settings_of_slurm_become_those_of_sbatch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []
    monkeypatch.setattr("orthobench.launch.slurm.Slurm", lambda *arguments: given.append(arguments))
    words = ["partition=gpu", "time=90", "gpus=1", "memory_gb=1.5", "array=50", "options={nice: 7}", "setup=[ml cuda]"]
    named("slurm", [f"hydra.launcher.{word}" for word in words], tmp_path)
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
    ],
)
def test_what_is_wrong_is_refused(name: str, words: list[str], sentence: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=sentence):
        named(name, words, tmp_path)


@pytest.mark.parametrize("name", ["slurm", "ray"])
@pytest.mark.parametrize("verb", [("-m", "seed=1,2"), ("reproduce", "urnn_ugru/table3", "--preset", "smoke")])
def test_a_missing_package_is_a_sentence_and_nothing_starts(
    name: str,
    verb: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, {"slurm": "submitit"}.get(name, name), None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr(policy, "_is_there", lambda package: False)
    assert main([*verb, f"hydra/launcher={name}"]) == 2
    assert f"pip install 'orthobench[{name}]'" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_a_plug_in_of_hydras_is_left_to_it() -> None:
    assert launchers.made({"_target_": "hydra_plugins.some.Launcher"}, Path()) is None


@pytest.fixture
def joblib() -> Iterator[Joblib]:
    pytest.importorskip("joblib")
    joblib = Joblib(1)
    yield joblib
    joblib.close()


def children(parent: int, word: bytes) -> list[int]:
    """The children of a process whose command line has a word."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            ours = int((path / "stat").read_text().rpartition(")")[2].split()[1]) == parent
            if ours and word in (path / "cmdline").read_bytes():
                found.append(int(path.name))
        except OSError:
            continue
    return found


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("words", "code"), [(("exit", "7"), 7), (("raise",), 1), (("kill",), -signal.SIGKILL)])
def test_joblib_gives_the_exit_code(joblib: Joblib, words: tuple[str, ...], code: int, tmp_path: Path) -> None:
    worker, found = joblib.submit(command(*words, log=tmp_path / "logs" / "a.txt")), list[int | None]()
    until(lambda: found.append(worker.poll()) or found[-1] is not None)
    assert found[-1] == code
    assert (tmp_path / "logs" / "a.txt").read_text().startswith("# joblib's worker on ")


@pytest.mark.slow
def test_joblibs_command_can_be_stopped(joblib: Joblib, tmp_path: Path) -> None:
    process = Process(command("sleep", str(tmp_path / "began")), joblib)
    until(lambda: process.poll(False) is None and (tmp_path / "began").exists())
    until(lambda: process.poll(True) is not None)
    assert process.code == Stopped.exit_code


@pytest.mark.slow
def test_a_killed_worker_of_joblibs_is_a_lost_one_and_the_next_command_has_another(
    joblib: Joblib, tmp_path: Path
) -> None:
    worker = joblib.submit(command("sleep", str(tmp_path / "began")))
    until((tmp_path / "began").exists)
    for pid in children(os.getpid(), b"popen_loky"):
        os.kill(pid, signal.SIGKILL)
    with pytest.raises(WorkerLost):
        until(lambda: worker.poll() is not None)
    again, found = joblib.submit(command("exit", "3")), list[int | None]()
    until(lambda: found.append(again.poll()) or found[-1] is not None)
    assert found[-1] == 3


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
