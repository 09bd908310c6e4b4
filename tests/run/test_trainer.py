"""What is relied on of Lightning beyond its public interface: a new version that changes any of it fails here."""

import inspect
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.strategies import SingleDeviceStrategy, Strategy
from lightning.pytorch.trainer.connectors.signal_connector import _SignalConnector

import orthobench
from orthobench.models.build import build_optimizer, build_schedule
from orthobench.run.callbacks.finite import Finite
from orthobench.run.learner import Learner
from orthobench.run.task_data import TaskData
from orthobench.run.trainer import EVERY_STEP, LeanModule, StayingStrategy, leave_out_unused_hooks, make_trainer

WORDS = (
    "model=rnn", "task=adding", "recipe=none", "T=5", "model.hidden_size=4", "task.val_size=4", "task.test_size=4",
    "task.batch_size=2", "logger=none", "trainer.max_steps=3",
)  # fmt: skip


def test_lightning_has_the_hooks_and_methods_that_are_left_out_or_replaced() -> None:
    for hook in EVERY_STEP:
        assert getattr(Callback, hook).__module__.startswith("lightning.")
        assert getattr(LightningModule, hook).__module__.startswith("lightning.")
    for name in ("_on_before_batch_transfer", "_apply_batch_transfer_handler"):
        theirs, ours = (list(inspect.signature(getattr(cls, name)).parameters) for cls in (LightningModule, LeanModule))
        assert theirs == ours
    assert "_current_fx_name" in vars(LightningModule()), "which is no parameter"
    assert callable(_SignalConnector.register_signal_handlers)
    assert "self.lightning_module.cpu()" in inspect.getsource(Strategy.teardown)
    assert SingleDeviceStrategy.teardown is Strategy.teardown


class Watch(Callback):
    """What a run looks like from inside of a step."""

    def __init__(self) -> None:
        self.handlers: list[Any] = []

    def on_train_batch_end(self, *args: Any) -> None:
        self.handlers.append(signal.getsignal(signal.SIGTERM))


def fitted(tmp_path: Path, watch: Watch) -> tuple[Trainer, Learner]:
    exp = orthobench.build(*WORDS, f"runs_root={tmp_path}")
    optimizer = build_optimizer(exp.settings, exp.model)
    learner = Learner(exp.model, exp.task, optimizer, build_schedule(exp.settings), exp.duration)
    leave_out_unused_hooks(learner, watch)
    trainer = make_trainer(exp.settings.trainer, exp.task, exp.duration, [watch], False, str(tmp_path))
    trainer.fit(learner, datamodule=TaskData(exp.task, 0, exp.duration.epoch_batches))
    return trainer, learner


def test_a_fit_leaves_signals_alone_calls_what_is_used_and_passes_over_the_rest(tmp_path: Path) -> None:
    watch, before = Watch(), signal.getsignal(signal.SIGTERM)
    trainer, learner = fitted(tmp_path, watch)
    assert trainer.global_step == 3
    assert watch.handlers == [before] * 3
    assert watch.on_before_backward is None
    assert learner.on_before_backward is None
    assert isinstance(trainer.strategy, StayingStrategy)


def test_the_model_stays_where_it_was_trained_and_can_still_be_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = []
    monkeypatch.setattr(LightningModule, "cpu", lambda self: moved.append(self))
    _, learner = fitted(tmp_path, Watch())
    assert moved == []
    monkeypatch.undo()
    assert learner.double().cpu() is learner
    assert next(learner.parameters()).dtype == torch.float64


def test_a_hook_of_ones_own_is_not_left_out() -> None:
    finite = Finite(5)
    leave_out_unused_hooks(finite)
    used = [hook for hook in EVERY_STEP if getattr(finite, hook) is not None]
    assert used == [hook for hook in EVERY_STEP if hook in vars(Finite)]
    assert used
