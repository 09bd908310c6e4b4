"""The one place that meets Lightning's Trainer: how it is made, and what of it is left out or replaced, and why.

Lightning is pinned below 2.7, because some of this relies on what is not its public interface; a test fails when a new
version changes any of it.
"""

import orthobench.common.lean_lightning  # noqa: F401 - first: it imports Lightning without what no run uses

# isort: split

import inspect
import logging
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import torch
from lightning.fabric.plugins import CheckpointIO
from lightning.fabric.plugins.environments.lightning import LightningEnvironment
from lightning.fabric.utilities import move_data_to_device
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.profilers import AdvancedProfiler, PassThroughProfiler, PyTorchProfiler, SimpleProfiler
from lightning.pytorch.strategies import SingleDeviceStrategy

from orthobench.errors import ConfigError
from orthobench.recording.checkpoint import SafeCheckpointIO
from orthobench.run.memory import device_of
from orthobench.tasks.base import Batch, Task
from orthobench.tasks.duration import Duration, evaluation_limits

EVERY_STEP = (
    "on_train_batch_start",
    "on_before_zero_grad",
    "on_before_backward",
    "on_after_backward",
    "on_before_optimizer_step",
    "on_train_batch_end",
)
COUNTED_BY_US = (
    "max_epochs", "max_steps", "min_epochs", "min_steps", "val_check_interval", "check_val_every_n_epoch",
    "limit_train_batches",
)  # fmt: skip
NOTHING = nullcontext()
CheckpointIO.register(SafeCheckpointIO)


class LeanModule(LightningModule):
    """A LightningModule without the work that Lightning does at every step for features that no run uses.

    Stacked these were a tenth of what a short step costs.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Keep the signature of `training_step`, which Lightning inspects anew at every step."""
        super().__init_subclass__(**kwargs)
        if "training_step" in vars(cls):
            cls.training_step.__signature__ = inspect.signature(cls.training_step)  # type: ignore[attr-defined]

    def __setattr__(self, name: str, value: Any) -> None:
        """Bypass nn.Module.__setattr__ for `_current_fx_name`, which Lightning sets twice per hook."""
        if name == "_current_fx_name":
            self.__dict__[name] = value
        else:
            super().__setattr__(name, value)

    def _on_before_batch_transfer(self, batch: Batch, dataloader_idx: int = 0) -> Batch:
        """The batch: Lightning looks here for the hooks of a data module at every batch, and there are none."""
        return batch

    def _apply_batch_transfer_handler(self, batch: Batch, device: Any = None, dataloader_idx: int = 0) -> Batch:
        """The batch on the module's device, without a search for hooks."""
        device = device or self.device
        return batch if device.type == "cpu" else move_data_to_device(batch, device)

    def configure_gradient_clipping(
        self, optimizer: Any, gradient_clip_val: Any = None, gradient_clip_algorithm: Any = None
    ) -> None:
        """Clip where that is asked for; Lightning checks whether it may before it looks whether it shall."""
        if gradient_clip_val:
            super().configure_gradient_clipping(optimizer, gradient_clip_val, gradient_clip_algorithm)

    def optimizer_zero_grad(self, epoch: int, batch_idx: int, optimizer: Any) -> None:
        """Drop the gradients, without the profiler's context that torch's own method opens."""
        for group in optimizer.param_groups:
            for p in group["params"]:
                p.grad = None


class StayingStrategy(SingleDeviceStrategy):
    """Strategy of one device, on which the model stays between fit, validation and test.

    Lightning moves it to the CPU after each of them; captured graphs would be lost, and the record would be told of the
    wrong device, engine and memory.
    """

    def teardown(self) -> None:
        """Close the plug-ins, and move nothing."""
        self.precision_plugin.teardown()
        self.checkpoint_io.teardown()


PROFILERS = {"simple": SimpleProfiler, "advanced": AdvancedProfiler, "pytorch": PyTorchProfiler}


class NoProfiler(PassThroughProfiler):
    """A profiler that measures nothing and costs nothing; Lightning's runs a generator forty times a step."""

    def profile(self, action_name: str) -> Any:
        """A context that does nothing."""
        return NOTHING


def leave_out_unused_hooks(*owners: Callback | LightningModule) -> None:
    """Set every hook of a step to None that its owner's class leaves as Lightning defines it: None is passed over.

    For each hook of each callback Lightning opens a profiler's context, notes the hook's name and writes a line for a
    debug log, though most have nothing to do: half of what a step costs beyond its computation.
    """
    for owner in owners:
        for hook in EVERY_STEP:
            if getattr(type(owner), hook).__module__.startswith("lightning."):
                setattr(owner, hook, None)


def refuse_half_on_a_cpu(given: dict[str, Any]) -> None:
    """Refuse half precision without a GPU, which Lightning would replace by bfloat16.

    Raises:
        ConfigError: it is asked for.
    """
    if device_of(given.get("accelerator", "auto")).type == "cpu" and given.get("precision") == "16-mixed":
        raise ConfigError("trainer.precision=16 needs a GPU: use trainer.precision=bf16 or trainer.precision=32.")


def make_trainer(
    given: dict[str, Any],
    task: Task,
    length: Duration,
    callbacks: Sequence[Callback],
    logger: Any,
    folder: str,
) -> Trainer:
    """The trainer of one run on one device.

    Args:
        given: the settings of `trainer`; lengths among them are counted in steps by `length` instead.
        task: the run's task.
        length: the run's lengths.
        callbacks: what watches and saves.
        logger: a logger, or false.
        folder: the run's folder.

    Raises:
        ConfigError: half precision is asked for on a CPU, where Lightning computes in bfloat16 in its place.
    """
    files: Any = SafeCheckpointIO()
    alone = LightningEnvironment()  # not Slurm's: a run is one process, whatever task of a job it is
    alone.set_global_rank(0)
    kept = {key: value for key, value in given.items() if key not in (*COUNTED_BY_US, "accelerator", "devices")}
    profiler = PROFILERS[kept["profiler"]](dirpath=folder, filename="profile") if kept.get("profiler") else NoProfiler()
    refuse_half_on_a_cpu(given)
    device = device_of(given.get("accelerator", "auto"))
    index = torch.device("cuda", torch.cuda.current_device()) if device.type == "cuda" else device
    trainer = Trainer(
        **{"gradient_clip_algorithm": None, **kept, "profiler": profiler, **evaluation_limits(given, task)},
        accelerator=device.type,
        devices=1,
        strategy=StayingStrategy(index),
        max_steps=length.steps or -1,
        max_epochs=-1,
        min_steps=length.least,
        min_epochs=0,  # training is one endless epoch; Lightning's default would wait for its end
        val_check_interval=length.val_every,
        check_val_every_n_epoch=None,
        num_sanity_val_steps=0,
        logger=logger,
        callbacks=list(callbacks),
        plugins=[files, alone],
        default_root_dir=folder,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        use_distributed_sampler=False,
    )
    trainer._signal_connector.register_signal_handlers = lambda: None  # ours alone: Lightning's end a run unsaved
    return trainer


def hooked_at_every_step(owner: Callback) -> bool:
    """Return True if a callback has anything to do at a step, see `leave_out_unused_hooks`."""
    hooks = (getattr(owner, hook) for hook in EVERY_STEP)
    return any(hook is not None and not hook.__module__.startswith("lightning.") for hook in hooks)


def before_every_batch(trainer: Trainer, work: Callable[[Any], int]) -> None:
    """Let `work` train by itself before every batch of the trainer's own loop.

    Args:
        trainer: a trainer whose training begins.
        work: takes the source of batches, which it may read from; returns how many steps it made, which the trainer
            then counts as its own.
    """
    loop: Any = trainer.fit_loop.epoch_loop
    advance = loop.advance

    def after_work(batches: Any) -> None:
        made = work(batches)
        if made:
            _count(trainer, made)
        advance(batches)

    loop.advance = after_work


def validate_now(trainer: Trainer) -> None:
    """Make up for the validation that a run was stopped before, or in, as if it had gone on.

    Lightning leaves it out where training goes on from such a checkpoint, and counts its batches all the same; here
    they are counted where they are made.
    """
    training: Any = trainer.fit_loop.epoch_loop
    if training.restarted_on_train_batch_end:  # else it is counted after this validation, and saved before
        training.batch_progress.increment_completed()
        training.reset_restart_stage()
    loop = training.val_loop
    total, current = loop.batch_progress.total, loop.batch_progress.current
    if current.ready != current.completed:  # stopped within: its batches are made again
        before = total.completed - current.completed
        total.reset()
        total.increment_by(before)
    trainer.validating = True
    loop.restarting = False
    loop.run()
    loop.increment_progress_to_evaluation_end = lambda: None
    trainer.training = True


def end_again(trainer: Trainer, steps: int, state: dict[str, Any]) -> None:
    """Let a run that was stopped after its last step pass through the end of training, as if it had gone on.

    Lightning would begin no training there, and the epoch would stay open in its counters. Where the checkpoint is from
    the validation after that end, the epoch is over; if that validation was whole, it is counted as Lightning would.
    """
    loops = state["loops"]
    if loops["fit_loop"]["epoch_progress"]["current"]["completed"]:
        if state["callbacks"]["Saver"]["validated"] == steps:
            trainer.validate_loop.load_state_dict(loops["validate_loop"])
        return
    training: Any = trainer.fit_loop.epoch_loop
    begin = training.on_run_start

    def over(batches: Any) -> None:
        training._batches_that_stepped += training.restarted_on_last
        training.max_steps, training.restarting = steps, False
        begin(batches)

    training.max_steps, training.on_run_start = steps + 1, over


def _count(trainer: Trainer, steps: int) -> None:
    """Count steps of one batch each that were made elsewhere."""
    loop: Any = trainer.fit_loop.epoch_loop
    progress = loop.automatic_optimization.optim_progress.optimizer
    for counted in (loop.batch_progress, progress.step, progress.zero_grad):
        counted.increment_by(steps)
    loop._batches_that_stepped += steps
    for config in trainer.lr_scheduler_configs:
        loop.scheduler_progress.increment_by(steps)
        scheduler: Any = config.scheduler
        scheduler._step_count += steps
        scheduler.last_epoch += steps
        pairs = zip(scheduler.base_lrs, scheduler.lr_lambdas, strict=True)
        scheduler._last_lr = [base * factor(scheduler.last_epoch) for base, factor in pairs]
        for group, rate in zip(scheduler.optimizer.param_groups, scheduler._last_lr, strict=True):
            group["lr"] = rate


def quieten() -> None:
    """Silence Lightning's advice on loaders, devices and logging, none of which applies to a run."""
    for name in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module=r"lightning\..*")
    warnings.filterwarnings("ignore", message=r".*LeafSpec.*")
    if torch.get_num_threads() > 1 and not torch.cuda.is_available():
        torch.set_num_threads(1)
