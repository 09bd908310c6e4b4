"""The settings of the trainer, checked against Lightning's own signature and against what a run can use."""

from datetime import timedelta
from typing import Annotated, Any, Literal

from orthobench.common.schema import (
    OptionalPositive,
    OptionalPositiveFloat,
    Positive,
    Range,
    coerce,
    fields,
    refuse_unknown,
)
from orthobench.errors import ConfigError

Length = Annotated[int | float, Range(0, above=True)]

Limit = Annotated[int, Range(1)] | Annotated[float, Range(0, 1, above=True)] | None

TRAINER_REFUSED = {
    "logger": "use logger=csv|wandb|tensorboard|none",
    "callbacks": "they are chosen by the program",
    "plugins": "they are chosen by the program",
    "default_root_dir": "use runs_root=",
    "enable_checkpointing": "a run is always saved",
    "barebones": "a run is always recorded",
    "enable_progress_bar": "a line of progress is always written",
    "enable_model_summary": "`orthobench show` counts the parameters",
    "fast_dev_run": "use trainer.max_steps=1",
    "overfit_batches": "use trainer.limit_train_batches=",
    "reload_dataloaders_every_n_epochs": "batches are a function of seed, epoch and index",
    "use_distributed_sampler": "one run uses one device; use -m for many runs",
    "num_nodes": "one run uses one device; use -m for many runs",
    "strategy": "one run uses one device; use -m for many runs",
    "num_sanity_val_steps": "the configuration is checked before the start",
}

PRECISIONS = {"32": "32-true", "64": "64-true", "16": "16-mixed", "bf16": "bf16-mixed"}

TRAINER_TYPES: dict[str, Any] = {
    "accelerator": Literal["auto", "cpu", "gpu", "cuda"],
    "max_steps": int,
    "max_epochs": OptionalPositive,
    "min_steps": OptionalPositive,
    "min_epochs": OptionalPositive,
    "val_check_interval": Length,
    "accumulate_grad_batches": Positive,
    "gradient_clip_val": OptionalPositiveFloat,
    "gradient_clip_algorithm": Literal["norm", "value"] | None,
    "log_every_n_steps": Positive,
    "check_val_every_n_epoch": Positive,
    "limit_train_batches": Limit,
    "limit_val_batches": Limit,
    "limit_test_batches": Limit,
    "precision": Literal["32", "64", "16", "bf16", "32-true", "64-true", "16-mixed", "bf16-mixed"] | None,
    "max_time": Any,
    "profiler": Literal["simple", "advanced", "pytorch"] | None,
}


def trainer_settings(given: dict[str, Any]) -> dict[str, Any]:
    """The settings of `trainer`, checked.

    Raises:
        ConfigError: a key is not an argument of Lightning's Trainer or is not allowed in a run, or a value is wrong.
    """
    for key, value in given.items():
        if key in TRAINER_REFUSED:
            raise ConfigError(f"trainer.{key}={value} is refused, so leave it out: {TRAINER_REFUSED[key]}.")
    if str(given.get("precision")).startswith(("16-true", "bf16-true", "transformer-engine")):
        why = "it rounds the recurrent matrix, which is then no longer orthogonal; use bf16-mixed"
        raise ConfigError(f"trainer.precision={given['precision']} is refused: {why}.")
    kinds = TRAINER_TYPES if given.keys() <= TRAINER_TYPES.keys() else _signature() | TRAINER_TYPES
    refuse_unknown(given, kinds, "trainer.", " is not an argument of Lightning's Trainer")
    filled: dict[str, Any] = {
        key: _time_limit(value) if key == "max_time" else coerce(value, kinds[key], f"trainer.{key}")
        for key, value in given.items()
    }
    if filled.get("precision"):
        filled["precision"] = PRECISIONS.get(filled["precision"], filled["precision"])
    steps = filled.get("max_steps", -1)
    if steps < 1 and steps != -1:
        raise ConfigError(f"trainer.max_steps={steps} is out of range: it must be >= 1, or -1 for no limit.")
    if filled.get("devices", 1) not in (1, "auto", "1"):
        raise ConfigError(
            f"trainer.devices={filled['devices']} is refused: one run uses one device; use -m for many runs."
        )
    if steps == -1 and not filled.get("max_epochs") and not filled.get("max_time"):
        raise ConfigError("trainer.max_steps=-1 without trainer.max_epochs would never end; set one of them.")
    return filled


def _signature() -> dict[str, Any]:
    """The types of all arguments of Lightning's Trainer that a run may use."""
    from orthobench.common.lean_lightning import lightning

    found = fields(lightning.Trainer)
    return {key: field.annotation for key, field in found.items() if key not in TRAINER_REFUSED}


def _time_limit(value: Any) -> str | None:
    """A time limit such as `01:12:00:00` or {days: 1, hours: 12} in the first form, which is Lightning's."""
    if value is None:
        return None
    try:
        parts = zip(("days", "hours", "minutes", "seconds"), map(int, str(value).split(":")), strict=True)
        limit = timedelta(**(value if isinstance(value, dict) else dict(parts)))
    except (TypeError, ValueError, OverflowError):
        limit = timedelta()
    if limit <= timedelta():
        raise ConfigError(f"trainer.max_time={value!r} is not days:hours:minutes:seconds, such as 00:12:00:00.")
    minutes, seconds = divmod(round(limit.total_seconds()), 60)
    return f"{minutes // 1440:02}:{minutes // 60 % 24:02}:{minutes % 60:02}:{seconds:02}"
