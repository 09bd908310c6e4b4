"""Members of an ensemble are ordinary runs with the same numbers, stopped, killed or diverging, and take turns."""

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import torch

from orthobench.common import signals
from orthobench.ensemble import member as member_module
from orthobench.ensemble.running import run_members
from orthobench.ensemble.threads_in_turn import Turns
from orthobench.errors import ConfigError
from orthobench.models.optim import Optimizer
from orthobench.recording.run_folder import begin
from orthobench.run.run import Run
from orthobench.study.catalogue import SHIPPED
from tests.ensemble.helpers import RATES, TINY, members, numbers, record


@pytest.mark.parametrize(
    "words",
    [
        ("model=scornn", "task=adding", "optimizer.recurrent=rmsprop"),
        ("model=rnn", "task=copying", "schedule=linear", "trainer.accumulate_grad_batches=2"),
        ("model=exprnn", "task=copying"),
        ("model=sgornn", "task=adding", "optimizer.weight_decay=0.1"),
        ("model=ncgru", "task=adding", "variant=code", "model.reset_period=3"),
    ],
    ids=lambda words: words[0],
)
@pytest.mark.sampled(2)
def test_members_are_bitwise_what_single_runs_are(tmp_path: Path, words: tuple[str, ...]) -> None:
    single, together = members(tmp_path / "single", *words), members(tmp_path / "together", *words)
    for exp in single:
        exp.run()
    assert run_members(together) == [0, 0, 0]
    for one, member in zip(single, together, strict=True):
        assert numbers(one) == numbers(member)
        assert record(member)["ensemble"] == {"members": 3, "computed": "apart"}
        assert "ensemble" not in record(one)


def stop_at(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal arrives once `step` updates have been made by the members together."""

    made = []

    def update(optimizers: list[Optimizer]) -> list[None]:
        made.append(len(optimizers))
        if len(made) == step:
            signals._state["asked"] = 15
        return real(optimizers)

    real = member_module.update
    monkeypatch.setattr(member_module, "update", update)


def test_a_stopped_ensemble_goes_on_and_so_does_a_member_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("model=scornn", "task=adding")
    whole = members(tmp_path / "whole", *words)
    for exp in whole:
        exp.run()
    with monkeypatch.context() as patch, signals.watched():
        stop_at(3, patch)
        assert run_members(members(tmp_path / "stopped", *words)) == [75, 75, 75]
    stopped = members(tmp_path / "stopped", *words)
    assert [(record(exp)["status"], record(exp)["steps"]) for exp in stopped] == [("stopped", 3)] * 3
    stopped[1].run()
    rest = members(tmp_path / "stopped", *words)
    assert run_members(rest) == [0, 0, 0]
    for exp, one in zip(rest, whole, strict=True):
        assert numbers(exp) == numbers(one)
    assert "ensemble" not in record(rest[1])


@pytest.mark.slow
def test_a_killed_ensemble_goes_on_from_its_members_checkpoints(tmp_path: Path) -> None:
    words = ("model=scornn", "task=adding", "trainer.max_steps=60", "trainer.val_check_interval=6")
    common = (*TINY, *words, f"runs_root={tmp_path / 'killed'}")
    begun = [begin(SHIPPED.settings([*common, f"seed={seed}", f"optimizer.lr={lr}"])) for seed, lr in RATES.items()]
    program = [sys.executable, "-m", "orthobench.ensemble", *map(str, begun)]
    process = subprocess.Popen(program, stdout=subprocess.DEVNULL)
    killed, whole = members(tmp_path / "killed", *words), members(tmp_path / "whole", *words)
    while process.poll() is None and not (killed[1].settings.folder / "checkpoints" / "last.ckpt").is_file():
        time.sleep(0.01)
    process.kill()
    process.wait()
    assert not (killed[0].settings.folder / "record.json").exists()
    assert run_members(killed) == [0, 0, 0]
    for exp, one in zip(killed, whole, strict=True):
        one.run()
        assert numbers(exp) == numbers(one)


def test_a_member_that_diverges_leaves_the_others(tmp_path: Path) -> None:
    words = [*TINY, "model=irnn", "task=adding", "optimizer=sgd", f"runs_root={tmp_path / 'runs'}"]
    rates = ("1e-3", "1e30", "1e-2")
    words.remove("trainer.gradient_clip_val=0.5")
    together = [Run.fitted(SHIPPED.settings((*words, f"optimizer.lr={lr}"))) for lr in rates]
    assert run_members(together) == [0, 4, 0]
    assert [record(exp)["status"] for exp in together] == ["done", "diverged", "done"]
    alone = Run.fitted(SHIPPED.settings((*words, "optimizer.lr=1e-2", f"runs_root={tmp_path / 'alone'}")))
    alone.run()
    assert numbers(together[2]) == numbers(alone)


@pytest.mark.gpu
@pytest.mark.parametrize("model", ["scornn", "lstm", "goru"])
def test_on_a_gpu_members_are_single_runs_up_to_rounding(tmp_path: Path, model: str) -> None:
    words = (f"model={model}", "task=copying", "optimizer=sgd", "trainer.accelerator=gpu")
    single, together = members(tmp_path / "single", *words), members(tmp_path / "together", *words)
    for exp in single:
        exp.run()
    assert run_members(together) == [0, 0, 0]
    for one, member in zip(single, together, strict=True):
        assert record(member)["ensemble"]["computed"] == "stacked"
        assert record(member)["metrics"]["last"] == pytest.approx(record(one)["metrics"]["last"], rel=1e-4)


def test_members_take_turns_and_meet_by_what_they_ask() -> None:
    meeting, served, running = Turns(), [], []

    def work(name: str, keys: list[str]) -> str:
        answers = []
        for key in keys:
            running.append(threading.current_thread())
            answers.append(meeting.meet(key, name, serve))
            assert running[-1] is not None
        if name == "c":
            raise ConfigError("c fails")
        return name + "".join(answers)

    def serve(names: list[str]) -> list[str]:
        served.append("".join(names))
        return [name.upper() for name in names]

    with pytest.raises(ConfigError, match="c fails"):
        meeting.run([lambda: work("a", ["x", "x"]), lambda: work("b", ["x", "y"]), lambda: work("c", ["x"])])
    assert served == ["abc", "a", "b"]
    assert meeting.run([lambda: work("a", ["x", "x"]), lambda: work("b", ["x"])]) == ["aAA", "bB"]


def test_an_error_of_the_shared_arithmetic_is_everyones() -> None:
    meeting = Turns()

    def serve(names: list[str]) -> list[str]:
        raise ValueError("no")

    def work() -> str:
        with pytest.raises(ValueError, match="no"):
            meeting.meet("x", None, serve)
        return "caught"

    assert meeting.run([work, work]) == ["caught", "caught"]


def test_members_keep_their_random_states() -> None:
    meeting = Turns()

    def work(seed: int) -> float:
        torch.manual_seed(seed)
        meeting.meet("x", None, lambda requests: requests)
        return float(torch.rand(()))

    found = meeting.run([lambda: work(1), lambda: work(2)])
    assert found == [float(torch.rand((), generator=torch.Generator().manual_seed(seed))) for seed in (1, 2)]
