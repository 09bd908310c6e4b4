"""The checked settings of a run, and its identity: a digest of exactly the settings that change the numbers."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from orthobench.common.paths import absolute
from orthobench.common.registry import in_module
from orthobench.common.schema import resolve_count
from orthobench.errors import ConfigError

SECTIONS = ("model", "task", "optimizer", "schedule", "trainer", "stopping", "logger", "diagnostics", "data")

NO_EFFECT = {"num_workers"}
OF_TRAINING = ("batch_size", "eval_batch_size", "num_workers", "train_size", "epoch_batches")  # not of what is asked

TRAINER_NUMBERS = (
    "max_steps", "max_epochs", "min_steps", "min_epochs", "max_time", "limit_train_batches",
    "limit_val_batches", "limit_test_batches", "val_check_interval", "check_val_every_n_epoch",
    "accumulate_grad_batches", "gradient_clip_val", "gradient_clip_algorithm", "precision",
)  # fmt: skip

WHOLE = "1 of an epoch"
SEED = "\0seed"  # no setting's value

UNSAID = {
    "limit_train_batches": WHOLE, "limit_val_batches": WHOLE, "limit_test_batches": WHOLE, "precision": "32-true",
    "accumulate_grad_batches": 1, "check_val_every_n_epoch": 1, "gradient_clip_algorithm": "norm",
}  # fmt: skip

LATER = {  # settings of a task or of a part of a model that came later, with the value that changes no number
    ("task", "series", "missing"): "refuse",
    ("task", "series", "group"): None,
    ("network", "recurrent", "input_convolution"): None,
    ("recurrent", "schur", "gain_penalty"): 0,
    ("recurrent", "schur", "recurrent_group"): "all",
    ("recurrent", "schur", "upper_decay"): 0,
    ("cell", "mlstm", "convolution"): None,
    ("cell", "mlstm", "read"): "plain",
    ("cell", "mlstm", "gate_inputs"): "x",
    ("cell", "mlstm", "input_init"): "small",
    ("cell", "slstm", "forget_bias"): "linear",
    ("cell", "slstm", "convolution"): None,
    ("cell", "mamba3", "rank"): 1,
    ("cell", "deltaproduct", "output_gate"): "none",
    ("cell", "deltaproduct", "scaled_query"): False,
    **{
        ("cell", name, key): None
        for name, keys in {"mlstm": ("key_width",), "deltaproduct": ("key_width", "value_width")}.items()
        for key in keys
    },
}

ONLY_WITH = {
    "gradient_clip_algorithm": ("gradient_clip_val",), "min_steps": ("max_time", "patience", "threshold"),
    "min_epochs": ("max_time", "patience", "threshold"),
}  # fmt: skip


@dataclass(frozen=True)
class Parts:
    """The classes that a run's settings name, each found once; this room imports none of theirs.

    Attributes:
        task: a `Task`.
        network: a `Network`.
        cell: a `Cell`; None for a network without recurrent layers.
        recurrent: the `Parametrization` of the recurrent matrices.
        rule: the optimizer's `Rule`; `recurrent_rule` is that of the constrained parameters.
        schedule: a `Schedule`.
    """

    task: Any
    network: Any
    cell: Any
    recurrent: Any
    rule: Any
    recurrent_rule: Any
    schedule: Any


@dataclass(frozen=True)
class Settings:
    """Checked settings of one run: plain values, defaults filled in, one dictionary per section.

    Attributes:
        parts: the classes that the values name.
        task_made: the task that the check made, which has read no data; None for settings that were made from another
            run's by changing the seed.
        foreign: the digest of each YAML file in a folder of `--config-dir` that they are from, by its name.
        shares: the model's settings that are tied to the hidden size, as they were given.
        hidden_size: the hidden size on the command line; None where none was typed.
        cap: the recipe's max_epochs, which a longer max_steps on the command line has replaced; None where none has.
    """

    model: dict[str, Any]
    task: dict[str, Any]
    optimizer: dict[str, Any]
    schedule: dict[str, Any]
    trainer: dict[str, Any]
    stopping: dict[str, Any]
    logger: dict[str, Any]
    diagnostics: dict[str, Any]
    data: dict[str, Any]
    run: dict[str, Any]
    shares: dict[str, Any]
    parts: Parts = field(repr=False)
    hidden_size: int | None = None
    cap: int | None = None
    task_made: Any = field(default=None, compare=False, repr=False)
    foreign: tuple[tuple[str, str], ...] = field(default=(), compare=False, repr=False)

    @property
    def identity(self) -> dict[str, Any]:
        """The settings that change the numbers."""
        return identity_of(self.as_dict())

    @property
    def run_id(self) -> str:
        """`<task>-<model>-<10 hex digits>`, the name of the run's folder, which is never within another one."""
        model = str(self.model["name"]).replace("/", "-")  # of a file in a folder of the user's
        return f"{self.task['name']}-{model}-{self.digest[:10]}"

    @cached_property
    def digest(self) -> str:
        """All 64 hexadecimal digits; the folder's name has 10, which two runs of ten thousand were seen to share."""
        before, after = self._around_seed
        return hashlib.sha256(f"{before}{self.run['seed']}{after}".encode()).hexdigest()

    @cached_property
    def _around_seed(self) -> tuple[str, str]:
        """The text that is digested, up to the seed and after it."""
        text = json.dumps(_canonical({**self.identity, "seed": SEED}), sort_keys=True, separators=(",", ":"))
        before, _, after = text.partition(json.dumps(SEED))
        return before, after

    @property
    def folder(self) -> Path:
        """The run's folder."""
        return Path(self.run["runs_root"]) / self.run_id

    def as_dict(self) -> dict[str, Any]:
        """All settings, by section."""
        sections = {name: dict(getattr(self, name)) for name in SECTIONS}
        return {**self.run, **sections}

    def as_kept(self) -> dict[str, Any]:
        """All settings, as config.yaml holds them: with the whole path of the data, which are found from anywhere."""
        return self.as_dict() | {"data_root": absolute(self.run["data_root"])}

    def with_hidden_size(self, size: int) -> "Settings":
        """The same settings with another hidden size; shares of it are computed again, counts are checked against it.

        Raises:
            ConfigError: the parametrization does not allow this size, or a count exceeds it.
        """
        counts = tied_counts(self.parts.recurrent, self.model["recurrent"], size, self.shares)
        return replace(self, model=self.model | {"hidden_size": size} | counts)

    def with_seed(self, seed: int) -> "Settings":
        """The same settings with another seed."""
        found = replace(self, run={**self.run, "seed": seed}, task_made=None)
        vars(found)["_around_seed"] = self._around_seed  # a table has many seeds of one row
        return found


def identity_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that change the numbers, of all the settings of a run as config.yaml holds them."""
    stopping = {key: value for key, value in values.get("stopping", {}).items() if value is not None}
    model, task = values["model"], values["task"]
    return {
        "model": _without_later(model, model),
        "task": _without_later({k: v for k, v in task.items() if k not in NO_EFFECT}, {"task": task["name"]}),
        "optimizer": values["optimizer"],
        "schedule": values["schedule"],
        "trainer": _numbers(values["trainer"], stopping),
        **({"stopping": stopping} if stopping else {}),
        "seed": values["seed"],
        **({"init_from": Path(values["init_from"]).name} if values.get("init_from") else {}),
    }


def _without_later(values: Mapping[str, Any], names: Mapping[str, Any]) -> dict[str, Any]:
    """Settings without those of `LATER` that change no number, for parts that have these names."""
    unchanged = {
        key for (part, name, key), value in LATER.items() if names.get(part) == name and values.get(key) == value
    }
    return {key: value for key, value in values.items() if key not in unchanged}


def tied_counts(cls: Any, name: str, n: int, given: dict[str, Any]) -> dict[str, int]:
    """The settings of the parametrization `name` that are tied to the hidden size n, as whole numbers.

    Raises:
        ConfigError: n does not suit the parametrization, or a setting does not suit n.
    """
    reason = cls.valid_size(n)
    if reason:
        raise ConfigError(f"model.hidden_size={n} does not suit {name}: {reason}")
    limits = cls.limits(n)
    unknown = next((key for key in limits if key not in given), None)
    if unknown is not None:
        raise ConfigError(f"{in_module(cls)}: `limits` names {unknown}, which is no argument of it: name one.")
    return {key: resolve_count(given[key], limit, f"model.{key}") for key, limit in limits.items()}


def _numbers(trainer: dict[str, Any], stopping: dict[str, Any]) -> dict[str, Any]:
    """The trainer's settings that change the numbers, without defaults and settings that have no effect."""
    found = {key: _length(key, trainer[key]) for key in TRAINER_NUMBERS if trainer.get(key) is not None}
    if isinstance(found.get("val_check_interval"), int):
        found.pop("check_val_every_n_epoch", None)
    given = {*found, *stopping}
    return {k: v for k, v in found.items() if v != UNSAID.get(k) and not given.isdisjoint(ONLY_WITH.get(k, (k,)))}


def _length(key: str, value: Any) -> Any:
    """A length as it is hashed: 1.0 is a whole epoch, 1 is one batch."""
    share = isinstance(value, float) and (key.startswith("limit_") or key == "val_check_interval")
    return f"{value:g} of an epoch" if share else value


def _canonical(value: Any) -> Any:
    """The value in one spelling: 190.0 becomes 190."""
    if isinstance(value, dict):
        return {key: _canonical(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_canonical(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value
