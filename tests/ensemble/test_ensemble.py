"""Ensembles: members are ordinary runs, and the same numbers as single ones.

On a CPU members are computed apart, so that everything but the arithmetic is tested to the last bit; the arithmetic of
stacked members is compared with that of single ones in float64.
"""

import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from orthobench import signals
from orthobench.config.many import settings
from orthobench.ensemble import grouping
from orthobench.ensemble import member as member_module
from orthobench.ensemble.member import MemberLearner
from orthobench.ensemble.running import run_members
from orthobench.ensemble.stacked import STACKED, Stacked
from orthobench.ensemble.turns import Turns
from orthobench.errors import ConfigError
from orthobench.launch.sweep import sweep
from orthobench.models.build import build_optimizer
from orthobench.optim import Constant, Optimizer
from orthobench.recording.checkpoint import SafeCheckpointIO
from orthobench.run.run import Run

TINY = (
    "recipe=none", "T=6", "model.hidden_size=6", "trainer.max_steps=6", "trainer.val_check_interval=4",
    "trainer.log_every_n_steps=2", "trainer.gradient_clip_val=0.5", "task.val_size=8", "task.test_size=8",
    "task.batch_size=4",
)  # fmt: skip
RATES = {1: "1e-3", 2: "1e-3", 3: "1e-2"}
FLOAT64: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-12}


def members(root: Path, *words: str) -> list[Run]:
    """Three members: two seeds, and a third with a learning rate of its own."""
    common = (*TINY, f"runs_root={root}", *words)
    return [Run.of((*common, f"seed={seed}", f"optimizer.lr={lr}")) for seed, lr in RATES.items()]


def checkpoint(exp: Run) -> dict[str, Any]:
    return SafeCheckpointIO().load_checkpoint(exp.settings.folder / "checkpoints" / "last.ckpt")


def record(exp: Run) -> dict[str, Any]:
    return json.loads((exp.settings.folder / "record.json").read_text())


def numbers(exp: Run) -> dict[str, Any]:
    """What a run leaves that must be the same however it was computed."""
    state, found = checkpoint(exp), record(exp)
    kept = ("status", "metrics", "best_step", "orthogonality", "crossed", "steps", "diverged")
    rows = (exp.settings.folder / "metrics.csv").read_text().splitlines()
    return {
        "weights": {name: value.tolist() for name, value in state["state_dict"].items()},
        "optimizer": repr(state["optimizer_states"]),
        "loops": repr(state["loops"]),
        "random": [part.tolist() for part in state["callbacks"]["Saver"]["random"]],
        "record": {name: found[name] for name in kept},
        "rows": [row for row in rows if "steps_per_s" not in row],
    }


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


MODELS = [
    "scornn", "rnn", "exprnn", "sgornn", "ncgru", "lstm", "gru", "spectral_rnn", "ornn", "urnn_exp", "urnn_full",
    "urnn_restricted", "eunn", "goru",
]  # fmt: skip


def requests(words: tuple[str, ...], common: tuple[str, ...] = (*TINY, "engine=reference")) -> list[Any]:
    """A first batch for each of three learners in float64."""
    found = []
    for seed in RATES:
        exp = Run.of((*common, *words, f"seed={seed}"))
        optimizer = build_optimizer(exp.settings, exp.model)
        learner = MemberLearner(exp.model.double(), exp.task, optimizer, Constant(), exp.duration)
        flat = torch.rand(4, exp.task.input_size), torch.randint(exp.task.output_size, (4,))
        batch = exp.task.batch("train", 0, 0) if exp.task.sequential else flat
        found.append((learner, tuple(part.double() if part.is_floating_point() else part for part in batch)))
    return found


@pytest.mark.parametrize(
    "words",
    [*((f"model={model}", "task=copying") for model in MODELS), ("model=scornn", "task=adding"),
     ("model=gru", "task=parenthesis"), ("model=rnn", "task=recall", "model.layers=2"),
     ("model=urnn_exp", "model.gradient=geodesic", "task=adding"), ("model=scornn", "task=copying", "engine=native"),
     ("model=lstm", "task=adding", "engine=fused")],
    ids=" ".join,
)  # fmt: skip
@pytest.mark.sampled(8)
def test_stacked_members_have_the_gradients_of_single_ones(words: tuple[str, ...]) -> None:
    check_stacked(requests(words))


def test_so_have_stacked_models_with_a_penalty() -> None:
    asked = requests(("model=nnrnn", "task=adding", "model.gain_penalty=30"))
    for i, (learner, _) in enumerate(asked):
        with torch.no_grad():
            learner.model.constrained()[0].gains.add_(0.1 + 0.1 * i)
    losses = [float(loss) for loss, _ in Stacked(asked[0][0].model, STACKED).train(asked)]
    assert all(loss > 30 * 3 * (0.1 + 0.1 * i) ** 2 for i, loss in enumerate(losses))  # six units have three gains
    check_stacked(asked)


def test_so_have_stacked_feed_forward_models() -> None:
    words = (
        "model=spectral_resnet",
        "task=mnist_flat",
        "model.hidden_size=6",
        "model.layers=3",
        "model.ends=constrained",
    )
    check_stacked(requests(words, ("recipe=none",)))


def test_gradients_clipped_over_several_batches_are_left_to_single_members(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("model=gru", "task=adding", "model.recurrent_gradient_clip=1e-3", "trainer.accumulate_grad_batches=2")
    asked = requests(words)
    together = Stacked(asked[0][0].model, STACKED)
    found, single = together.train(asked), [Stacked(r[0].model, STACKED).train([r])[0] for r in asked]
    assert together.forms == ["apart"]
    assert "gradients of matrices are clipped or scaled over several batches" in capsys.readouterr().out
    for (_, gradients), (_, wanted) in zip(found, single, strict=True):
        assert all(torch.equal(g, one) for g, one in zip(gradients, wanted, strict=True) if g is not None)


def check_stacked(asked: list[Any]) -> None:
    together = Stacked(asked[0][0].model, STACKED)
    stacked, single = together.train(asked), [Stacked(r[0].model, STACKED).train([r])[0] for r in asked]
    assert together.forms[0] == "stacked"
    for (loss, gradients), (expected, wanted) in zip(stacked, single, strict=True):
        torch.testing.assert_close(loss, expected, **FLOAT64)
        assert len(gradients) == len(list(asked[0][0].model.parameters()))
        for g, one in zip(gradients, wanted, strict=True):
            torch.testing.assert_close(g, one, **FLOAT64)
    with torch.inference_mode():
        found = together.measure(asked)
        expected = [r[0].task.measure(r[0].model(r[1][0])[0], *r[1][1:]) for r in asked]
    for values, wanted in zip(found, expected, strict=True):
        torch.testing.assert_close(values, wanted, **FLOAT64)


def test_a_stacked_ensemble_runs_from_start_to_end(tmp_path: Path) -> None:
    words = ("model=scornn", "task=copying", "optimizer=sgd", "trainer.precision=64-true", "engine=reference")
    single, together = members(tmp_path / "single", *words), members(tmp_path / "together", *words)
    for exp in single:
        exp.run()
    assert run_members(together, STACKED) == [0, 0, 0]
    for one, member in zip(single, together, strict=True):
        torch.testing.assert_close(checkpoint(member)["state_dict"], checkpoint(one)["state_dict"], **FLOAT64)
        assert record(member)["ensemble"]["computed"] == "stacked"
        found, expected = record(member)["metrics"]["last"], record(one)["metrics"]["last"]
        assert found == pytest.approx(expected, rel=1e-6)  # the readout's metrics are rounded to float32 on the way


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "words",
    [
        ("model=scornn", "optimizer.recurrent=rmsprop", "schedule=linear"),
        ("model=irnn", "optimizer=sgd", "optimizer.momentum=0.5", "schedule=linear"),
        ("model=rnn", "optimizer.weight_decay=0.1", "trainer.gradient_clip_val=0.01"),
        ("model=gru", "optimizer=rmsprop_tf", "trainer.gradient_clip_algorithm=value"),
        ("model=nnrnn", "model.gain_penalty=3"),
        ("model=urnn_restricted",),
    ],
    ids=" ".join,
)
def test_steps_between_two_that_write_are_made_at_once_and_counted(
    tmp_path: Path, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    more = ("task=adding", "trainer.precision=64-true", "engine=reference", "trainer.max_steps=11")
    more = (*more, "trainer.log_every_n_steps=5", "trainer.val_check_interval=7", *words)
    common = [(*TINY, f"seed={seed}", *more) for seed in (1, 2)]
    single, together = ([Run.of((*w, f"runs_root={tmp_path / name}")) for w in common] for name in ("one", "two"))
    for exp in single:
        exp.run()
    made: list[int] = []
    real = member_module.run_ahead
    monkeypatch.setattr(member_module, "run_ahead", lambda *a: (found := real(*a), made.append(found[0][0]))[0])
    assert run_members(together, STACKED) == [0, 0]
    assert made == [0, 3, 1, 2], "from step 1 (the first was computed alone) to 4, from 5 to 6, from 7 to 9"
    for one, other in zip(single, together, strict=True):
        torch.testing.assert_close(checkpoint(other)["state_dict"], checkpoint(one)["state_dict"], **FLOAT64)
        assert repr(checkpoint(other)["loops"]) == repr(checkpoint(one)["loops"])
        states, expected = (checkpoint(exp)["optimizer_states"][0] for exp in (other, one))
        assert states["param_groups"] == expected["param_groups"]
        torch.testing.assert_close(states["state"], expected["state"], **FLOAT64)
        assert checkpoint(other)["lr_schedulers"] == checkpoint(one)["lr_schedulers"]
        assert [row.split(",")[:3] for row in curve(other)] == [row.split(",")[:3] for row in curve(one)]
        assert record(other)["metrics"]["last"] == pytest.approx(record(one)["metrics"]["last"], rel=1e-6)


def curve(exp: Run) -> list[str]:
    return [row for row in (exp.settings.folder / "metrics.csv").read_text().splitlines() if "steps_per_s" not in row]


@pytest.mark.parametrize(
    "words",
    [
        ("model=exprnn",),
        ("model=sgornn",),
        ("model=rnn", "trainer.accumulate_grad_batches=2"),
        ("model=rnn", "trainer.log_every_n_steps=1"),
    ],
    ids=" ".join,
)
@pytest.mark.sampled(1)
def test_steps_with_more_to_do_are_made_one_by_one(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made: list[int] = []
    real = member_module.run_ahead
    monkeypatch.setattr(member_module, "run_ahead", lambda *a: (found := real(*a), made.append(found[0][0]))[0])
    assert run_members(members(tmp_path, "task=adding", *words), STACKED) == [0, 0, 0]
    assert not any(made)


def test_members_with_rates_of_their_own_are_made_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    real = member_module.run_ahead
    monkeypatch.setattr(member_module, "run_ahead", lambda *a: (found := real(*a), made.append(found[0][0]))[0])
    words = ("model=rnn", "task=adding", "trainer.log_every_n_steps=4")
    assert run_members(members(tmp_path, *words), STACKED) == [0, 0, 0]
    assert made
    assert not any(made)


def test_a_member_that_diverges_between_two_looks_leaves_the_others(tmp_path: Path) -> None:
    words = [word for word in TINY if "clip" not in word and "log_every" not in word]
    more = ("model=irnn", "task=adding", "optimizer=sgd", "optimizer.lr=1e-3", "engine=reference")
    runs = [Run.of((*words, *more, f"seed={seed}", f"runs_root={tmp_path / 'together'}")) for seed in (1, 2)]
    task, batch = runs[1].task, runs[1].task.batch
    task.batch = lambda split, epoch, index: (  # type: ignore[method-assign]
        tuple(part * 1e30 for part in batch(split, epoch, index)) if index == 2 else batch(split, epoch, index)
    )
    assert run_members(runs, STACKED) == [0, 4]
    assert [record(exp)["status"] for exp in runs] == ["done", "diverged"]
    assert record(runs[1])["diverged"]["step"] == 3
    assert record(runs[1])["diverged"]["last_loss"] is not None


def test_what_cannot_be_stacked_is_computed_in_another_form(capsys: pytest.CaptureFixture[str]) -> None:
    asked = requests(("model=scornn", "task=copying"))

    def loss(y: Any, *rest: Any) -> Any:
        assert isinstance(y, torch.Tensor)
        return y.sum() if y.sum() > 0 else -y.sum()

    for learner, _ in asked:
        learner.task.loss = loss
    together = Stacked(asked[0][0].model, STACKED)
    assert [float(value) for value, _ in together.train(asked)] == [
        float(loss(learner.model(batch[0])[0]).detach()) for learner, batch in asked
    ]
    assert together.forms == ["apart"]
    assert "cannot be computed stacked" in capsys.readouterr().out


def test_as_many_members_at_once_as_fit(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    asked = requests(("model=scornn", "task=copying"))
    together, sizes = Stacked(asked[0][0].model, STACKED), []
    train = together._train

    def limited(chunk: list[Any]) -> Any:
        sizes.append(len(chunk))
        if len(chunk) > 2:
            raise torch.OutOfMemoryError
        return train(chunk)

    monkeypatch.setattr(together, "_train", limited)
    found = together.train(asked)
    assert sizes == [3, 1, 1, 1]
    assert len(found) == 3
    assert "3 members at once do not fit in memory; 1 at once" in capsys.readouterr().out


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
    listed = tmp_path / "members.json"
    common = (*TINY, *words, f"runs_root={tmp_path / 'killed'}")
    listed.write_text(
        json.dumps({"members": [[*common, f"seed={seed}", f"optimizer.lr={lr}"] for seed, lr in RATES.items()]})
    )
    process = subprocess.Popen([sys.executable, "-m", "orthobench.ensemble", str(listed)], stdout=subprocess.DEVNULL)
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
    together = [Run.of((*words, f"optimizer.lr={lr}")) for lr in rates]
    assert run_members(together) == [0, 4, 0]
    assert [record(exp)["status"] for exp in together] == ["done", "diverged", "done"]
    alone = Run.of((*words, "optimizer.lr=1e-2", f"runs_root={tmp_path / 'alone'}"))
    alone.run()
    assert numbers(together[2]) == numbers(alone)


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


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("model.dropout=0.1", "dropout"),
        ("model.recurrent_gradient_clip=1.0", "recurrent_gradient_clip"),
        ("trainer.precision=16-mixed", "precision=16"),
        ("logger=wandb", "wandb"),
    ],
)
def test_what_cannot_be_a_member(word: str, reason: str) -> None:
    assert grouping.why_not(settings(["model=scornn", "task=adding"])) is None
    assert reason in str(grouping.why_not(settings(["model=scornn", "task=adding", word])))


def test_carried_state_cannot_be_a_member() -> None:
    assert "carries its state" in str(grouping.why_not(settings(["model=lstm", "task=ptb_char", "recipe=none"])))


def test_groups(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    words = [["seed=1"], ["seed=2", "T=9"], ["seed=2"], ["model.dropout=0.1"], ["seed=3", "optimizer.lr=0.1"],
             ["seed=4", "optimizer=sgd"]]  # fmt: skip
    runs = [settings(["model=rnn", "task=adding", "recipe=none", *some]) for some in words]
    monkeypatch.setattr(grouping, "has_gpu", lambda run: True)
    assert grouping.groups(runs, asked=True) == [[0, 2, 4], [1], [3], [5]]
    assert "ensemble=true: a process for each run, because dropout" in capsys.readouterr().out
    monkeypatch.setattr(grouping, "has_gpu", lambda run: False)
    assert grouping.groups(runs) == [[0], [1], [2], [3], [4], [5]]


def test_ensemble_is_no_part_of_a_runs_identity() -> None:
    assert settings(["ensemble=true"]).digest == settings([]).digest


@pytest.mark.slow
def test_a_sweep_trains_an_ensemble_in_one_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(grouping, "has_gpu", lambda run: True)
    words = ["model=irnn", "task=adding", "optimizer=sgd", *TINY[:-4], "task.batch_size=4", "ensemble=true"]
    assert sweep([*words, "optimizer.lr=1e-3,1e30", "seed=1,2"]) == 4
    out, err = capfd.readouterr()
    assert "4 members as one program" in out
    assert "2 of 4 runs done, 2 not" in out
    assert err.count("exit code 4") == 4  # at once and at the end
    assert sweep([*words, "optimizer.lr=1e-3", "seed=1,2,3"]) == 0
    assert "3 runs, 2 done already" in capfd.readouterr().out


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
