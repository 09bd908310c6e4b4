"""Commands given to a Ray cluster, by a stand-in for the package: the cluster itself is in tests/clusters."""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from orthobench.common.packages import install
from orthobench.errors import ConfigError, Stopped
from orthobench.launch.processes import LOSSES, Process
from orthobench.launch.ray import Ray
from orthobench.launch.workers import Command


class RayError(Exception):
    pass


class RayTaskError(RayError):
    pass


class TaskCancelledError(RayError):
    pass


class FakeRay:
    """As much of the package as is used; tasks end when a test says so."""

    exceptions = SimpleNamespace(RayError=RayError, RayTaskError=RayTaskError, TaskCancelledError=TaskCancelledError)

    def __init__(self) -> None:
        self.asked: dict[str, Any] = {}
        self.ended: dict[str, Any] = {}
        self.cancelled: list[tuple[str, bool]] = []
        self.given: list[str] = []
        self.waits = 0

    def is_initialized(self) -> bool:
        return False

    def init(self, address: str, **_: Any) -> None:
        if address != "here":
            raise ConnectionError(f"no cluster\nat {address}")

    def remote(self, **asked: Any) -> Callable[[Any], Any]:
        self.asked = asked

        def start(command: Command, surroundings: Any) -> str:
            self.given.append(command.name)
            return f"{command.name} {len(self.given)}"

        return lambda function: SimpleNamespace(options=lambda name: SimpleNamespace(remote=start))

    def wait(self, references: list[str], num_returns: int, timeout: float) -> tuple[list[str], list[str]]:
        assert (num_returns, timeout) == (len(references), 0)
        self.waits += 1
        return [one for one in references if one in self.ended], []

    def get(self, reference: str) -> int:
        found = self.ended[reference]
        if isinstance(found, Exception):
            raise found
        return found

    def cancel(self, reference: str, force: bool = False) -> None:
        self.cancelled.append((reference, force))


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeRay:
    fake = FakeRay()
    monkeypatch.setitem(sys.modules, "ray", fake)
    monkeypatch.setattr("orthobench.launch.ray.POLL_S", 0.0)
    return fake


def launcher(address: str = "here") -> Ray:
    return Ray(address, 0.5, 1, 2, 7, 10)


def command(name: str = "a") -> Command:
    return Command("orthobench", ["seed=1"], None, name)


def test_a_task_asks_for_what_the_settings_say(fake: FakeRay) -> None:
    launcher()
    assert fake.asked == {"num_cpus": 0.5, "num_gpus": 1, "max_retries": 7, "memory": 2 << 30}


@pytest.mark.parametrize(
    ("end", "code"), [(0, 0), (5, 5), (-9, -9), (TaskCancelledError(), Stopped.exit_code), (75, 75)]
)
def test_how_a_command_has_ended(fake: FakeRay, end: Any, code: int) -> None:
    worker = launcher().submit(command())
    assert worker.poll() is None
    fake.ended["a 1"] = end
    assert worker.poll() == code
    assert worker.poll() == code  # which is not asked again


def test_one_question_is_asked_for_all_commands(fake: FakeRay, monkeypatch: pytest.MonkeyPatch) -> None:
    ray = launcher()
    workers = [ray.submit(command(name)) for name in "abc"]
    monkeypatch.setattr("orthobench.launch.ray.POLL_S", 1e9)
    assert [worker.poll() for worker in workers] == [None, None, None]
    assert fake.waits <= 1


def test_what_ray_gives_up_is_given_to_it_again_but_not_for_ever(fake: FakeRay) -> None:
    process = Process(command(), launcher())
    for attempt in range(1, LOSSES):
        fake.ended[f"a {attempt}"] = RayError("the node died")
        assert process.poll(False) is None
    assert fake.given == ["a"] * LOSSES
    fake.ended[f"a {LOSSES}"] = RayError("the node died")
    assert process.poll(False) == Stopped.exit_code


def test_it_can_be_cancelled_and_killed(fake: FakeRay) -> None:
    worker = launcher().submit(command())
    worker.cancel()
    worker.kill()
    assert fake.cancelled == [("a 1", False), ("a 1", True)]


def test_workers_that_lack_the_program_end_the_work_with_one_sentence(fake: FakeRay) -> None:
    worker = launcher().submit(command())
    fake.ended["a 1"] = RayTaskError("Traceback\nModuleNotFoundError: No module named 'orthobench'")
    with pytest.raises(ConfigError, match=r"cannot carry out a command; .*: ModuleNotFoundError"):
        worker.poll()


@pytest.mark.usefixtures("fake")
def test_a_cluster_that_does_not_answer_is_named() -> None:
    with pytest.raises(ConfigError, match=r"hydra.launcher.address=there: no Ray cluster answers there \(no cluster"):
        launcher("there")


def test_a_missing_package_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigError, match=re.escape(install("ray"))):
        launcher()


def test_surroundings_are_those_of_the_driver(monkeypatch: pytest.MonkeyPatch, here: Path) -> None:
    import os

    from orthobench.launch.remote import Surroundings

    monkeypatch.setenv("ORTHOBENCH_RUNS", "theirs")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    given = Surroundings.of_this_process()
    assert "CUDA_VISIBLE_DEVICES" not in given.environment
    monkeypatch.setenv("ORTHOBENCH_RUNS", "mine")
    monkeypatch.setenv("ORTHOBENCH_PLUGINS", "mine")
    monkeypatch.chdir("/")
    given.enter()
    assert os.environ["ORTHOBENCH_RUNS"] == "theirs"
    assert "ORTHOBENCH_PLUGINS" not in os.environ
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "3"
    assert Path.cwd() == here
