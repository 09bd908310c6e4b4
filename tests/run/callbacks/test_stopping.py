"""Early stopping: what counts as better, where training ends, and that a resumed run ends at the same step."""

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from lightning.pytorch.callbacks import Timer

import orthobench
from orthobench.errors import ConfigError, Stopped
from orthobench.run.callbacks.saver import Saver
from orthobench.run.callbacks.stopping import Stopping
from tests.run.callbacks.watching import SMALL, finished, steps

SIZES = ("task.val_size=8", "task.test_size=8")
WORDS = (*SMALL, *SIZES, "trainer.max_steps=40", "trainer.val_check_interval=2")
WORDS += ("optimizer.lr=0.3", "stopping.patience=3", "stopping.metric=loss")


def looked_at(
    values: list[float],
    patience: int | None = None,
    direction: str = "lower",
    least: int = 0,
    threshold: float | None = None,
) -> int | None:
    """The number of the validation that ends training; there is one after every step."""
    callback, trainer = Stopping("m", patience, threshold, least), SimpleNamespace(global_step=0, should_stop=False)
    task = SimpleNamespace(metric_of=lambda name: SimpleNamespace(direction=direction))
    for number, value in enumerate(values, 1):
        trainer.global_step = number
        assert not callback.ended, "so that a run that goes on from here is not ended"
        callback.on_validation_end(trainer, SimpleNamespace(results={"val/m": value}, task=task))  # type: ignore[arg-type]
        assert trainer.should_stop == callback.ended == callback.state_dict()["ended"]
        if trainer.should_stop:
            return number
    return None


UP = {"direction": "higher"}


@pytest.mark.parametrize(
    ("values", "given", "end"),
    [
        # only a strictly better number counts
        ([3, 2, 1, 0.5], {"patience": 1}, None),
        ([3, 4], {"patience": 1}, 2),
        ([3, 3, 3], {"patience": 2}, 3),
        ([3, 4, 2, 5, 6, 1], {"patience": 3}, None),
        ([0.1, 0.2, 0.2, 0.15], {"patience": 2, **UP}, 4),
        ([math.nan, math.nan], {"patience": 2}, 2),
        ([math.nan, 5, 6, math.nan], {"patience": 2}, 4),
        # nothing ends before the least step
        ([3, 4, 4, 4, 4], {"patience": 1, "least": 4}, 4),
        ([3, 4, 4, 4, 4], {"patience": 2, "least": 2}, 3),
        ([3, 4, 4, 4, 4, 2, 5, 5], {"patience": 2, "least": 6}, 8),  # better in the meantime
        ([3, 4, 4], {"patience": 1, "least": 9}, None),
        # a value that is good enough ends it
        ([3, 2, 1, 0.5], {"threshold": 1}, 3),
        ([3, 3, 3, 3], {"threshold": 2.9}, None),
        ([0.1, 0.95, 0.3], {"threshold": 0.9, **UP}, 2),
        ([-3, -2, -1], {"threshold": -2, **UP}, 2),
        ([3, 0.5, 0.7, 3, 0.6], {"threshold": 1, "least": 3}, 3),
        ([3, 0.5, 3, 3, 0.6], {"threshold": 1, "least": 3}, 5),  # by the validation that ends it, not by an earlier one
        ([math.nan, math.inf, 1], {"threshold": 1}, 3),
        ([3, 4, 4, 0], {"threshold": 1, "patience": 2}, 3),  # whichever is first
        ([3, 4, 0, 4], {"threshold": 1, "patience": 2}, 3),
    ],
)
def test_the_validation_that_ends_training(values: list[float], given: dict[str, Any], end: int | None) -> None:
    assert looked_at(values, **given) == end


@pytest.mark.parametrize(
    ("values", "losses", "hold", "extra", "solved", "end"),
    [
        ([0, 1, 1, 1, 0, 0, 0], None, 3, 0, 4, 4),
        ([1, 1, 0, 1, 1, 1, 0, 0, 0], None, 3, 2, 6, 8),  # and whatever comes in these steps
        ([1, 1, 0, 1, 1, 0, 1, 1], None, 3, 0, None, None),
        ([0, 0, 0, 0, 0], [5, 4, 4, 4, 4], 3, 0, None, 5),  # flat: the loss, though the score never moves
        ([0, 0, 0, 0, 0], [5, 4, 3, 2, 1], 3, 0, None, None),
        ([1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1, 1], 2, 4, 2, 6),  # solved runs are not ended for being flat
    ],
)
def test_a_run_ends_when_it_is_solved_or_flat(
    values: list[float], losses: list[float] | None, hold: int, extra: int, solved: int | None, end: int | None
) -> None:
    callback = Stopping("m", 3, 0.99, hold=hold, extra_steps=extra, flat_metric="loss")
    directions = {"m": "higher", "loss": "lower"}
    task = SimpleNamespace(metric_of=lambda name: SimpleNamespace(direction=directions[name]))
    trainer, ended = SimpleNamespace(global_step=0, should_stop=False), None
    losses = losses or [-float(i) for i in range(len(values))]
    for step, (value, loss) in enumerate(zip(values, losses, strict=True), 1):
        trainer.global_step = step
        module = SimpleNamespace(results={"val/m": float(value), "val/loss": float(loss)}, task=task)
        again = Stopping("m", 3, 0.99, hold=hold, extra_steps=extra, flat_metric="loss")
        again.load_state_dict(callback.state_dict())  # a resumed run goes on as the one before
        callback = again
        callback.on_validation_end(trainer, module)  # type: ignore[arg-type]
        if trainer.should_stop:
            ended = step
            break
    assert (callback.crossed, ended) == ({"solved": solved}, end)


def test_a_checkpoint_from_before_there_was_a_threshold_tells_whether_training_had_ended() -> None:
    for waited, ended in ((2, False), (3, True)):
        callback = Stopping("m", patience=3)
        callback.load_state_dict({"best": 1.0, "waited": waited})
        assert callback.ended is ended


@pytest.mark.parametrize(
    ("words", "least"),
    [
        (("trainer.min_steps=1",), 1),
        (("trainer.min_steps=25",), 25),
        (("trainer.min_epochs=4", "task.train_size=20"), 20),  # of five batches each
    ],
)
def test_a_run_with_a_least_length_ends_early_after_it(words: tuple[str, ...], least: int) -> None:
    """With steps so small that nothing is better than the first validation."""
    exp, _ = finished(*WORDS[len(SMALL) :], "optimizer.lr=1e-30", *words)
    assert exp.run()["steps"] == max(8, least + least % 2)


@pytest.mark.parametrize(
    ("words", "end"),
    [
        (("trainer.min_steps=5",), 5),
        (("trainer.min_epochs=2", "task.train_size=12", "trainer.min_steps=4"), 6),
        (("trainer.min_steps=5", "trainer.max_steps=3"), 3),
    ],
)
def test_a_time_limit_ends_a_run_at_its_least_step(
    words: tuple[str, ...], end: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the time is over from the start."""
    monkeypatch.setattr(Timer, "time_elapsed", lambda *_: 60.0)
    found = orthobench.build(*SMALL, *SIZES, "trainer.max_steps=40", "trainer.max_time=00:00:00:01", *words).run()
    assert (found["status"], found["steps"]) == ("done", end)


def test_training_ends_and_the_run_is_finished(capsys: pytest.CaptureFixture[str]) -> None:
    exp, curve = finished(*WORDS[len(SMALL) :])
    found = exp.run()
    losses = [value for _, value in curve.of("val/loss")]
    end = looked_at(losses, 3)
    assert end is not None, "it was to end early"
    assert end == len(losses)
    assert (found["status"], found["steps"]) == ("done", 2 * end)
    assert steps(curve, "val/loss")[-1] == 2 * end < 40
    given = {key: value for key, value in found["config"]["stopping"].items() if value is not None}
    assert given == {"patience": 3, "metric": "loss"}
    assert "solved" not in found["crossed"]
    assert "has not improved for 3 validations: training ends at step" in capsys.readouterr().out


def test_a_run_ends_once_its_loss_is_low_enough(capsys: pytest.CaptureFixture[str]) -> None:
    first = finished(*WORDS[len(SMALL) : -2])[1].of("val/loss")
    threshold = sorted(value for _, value in first)[len(first) // 2]
    expected = next(step for step, value in first if value <= threshold)
    exp, curve = finished(*WORDS[len(SMALL) : -2], f"stopping.threshold={threshold!r}")
    assert exp.run()["steps"] == expected == steps(curve, "val/loss")[-1] < 40
    assert f"and has come to {threshold:g}: training ends at step {expected}" in capsys.readouterr().out


@pytest.mark.parametrize(
    "more", [(), ("stopping.patience=null", "stopping.threshold=0.2")], ids=["patience", "threshold"]
)
@pytest.mark.parametrize("place", ["on_train_batch_end", "finish"])
def test_a_run_that_was_interrupted_ends_at_the_same_step(
    place: str, more: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = orthobench.build(*WORDS, *more, f"runs_root={tmp_path / 'whole'}").run()
    assert whole["steps"] < 40
    inner = getattr(Saver, place)

    def interrupted(self: Saver, trainer: Any, *args: Any) -> None:
        if place == "on_train_batch_end" and trainer.global_step == whole["steps"] - 1:
            self.stop_requested = 15
        elif place == "finish":
            raise Stopped("after the validation that ended it")
        inner(self, trainer, *args)

    with monkeypatch.context() as patch:
        patch.setattr(Saver, place, interrupted)
        with pytest.raises(Stopped):
            orthobench.build(*WORDS, *more, f"runs_root={tmp_path / 'two'}").run()
    again = orthobench.build(*WORDS, *more, f"runs_root={tmp_path / 'two'}").run()
    for key in ("metrics", "steps", "best_step", "status", "identity"):
        assert again[key] == whole[key]


def test_it_is_part_of_the_identity_with_its_metric() -> None:
    plain, own, named = (
        orthobench.build(*SMALL, *words).run_id
        for words in ((), ("stopping.patience=3",), ("stopping.patience=3", "stopping.metric=loss"))
    )
    assert plain != own
    assert own == named, "the adding task's own metric is the loss"
    ends = {orthobench.build(*SMALL, f"stopping.threshold={value}").run_id for value in (0.1, 0.10, 0.2)}
    assert len(ends) == 2
    assert plain not in ends
    least = [orthobench.build(*SMALL, f"trainer.min_steps={n}", *WORDS[-2:]).run_id for n in (2, 4)]
    assert least[0] != least[1], "the least number of steps counts where training may end early"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("stopping.metric=loss",), "has no effect without stopping.patience="),
        (("stopping.patience=2", "stopping.metric=los"), "no metric of this task: did you mean 'loss'"),
        (("stopping.hold=3",), "stopping.hold=3 has no effect without stopping.threshold="),
        (("stopping.extra_steps=3", "stopping.patience=2"), "no effect without stopping.threshold="),
        (("stopping.flat_metric=loss", "stopping.threshold=1"), "no effect without stopping.patience="),
        (("stopping.patience=2", "stopping.flat_metric=los"), "stopping.flat_metric=los is no metric"),
        (("stopping.patience=0",), "must be >= 1"),
        (("stopping.patience=2.5",), "stopping.patience=2.5"),
        (("stopping.threshold=low",), "stopping.threshold='low' has the wrong type"),
        (("stopping.threshold=nan",), "stopping.threshold=nan"),
        (("stopping.wait=2",), "stopping.wait"),
    ],
)
def test_wrong_settings_are_refused(words: tuple[str, ...], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        orthobench.build(*SMALL, *words)
