"""From a composed configuration to checked settings and the run's identity.

Every value is checked against the signature of the constructor that will get it, defaults are filled in, and what
changes the numbers, and nothing else, is hashed into the run id.
"""

import hashlib
import json
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

from orthobench.config.compose import Composed, compose
from orthobench.errors import ConfigError
from orthobench.registry import find
from orthobench.schema import (
    Field,
    NonNegative,
    Positive,
    PositiveFloat,
    Range,
    coerce,
    did_you_mean,
    fields,
    resolve_count,
)

OptionalPositive = Annotated[int | None, Range(1)]
OptionalPositiveFloat = Annotated[float | None, Range(0, above=True)]
Length = Annotated[int | float, Range(0, above=True)]
Share = Annotated[int, Range(1)] | Annotated[float, Range(0, 1, above=True)] | None
ROOT: dict[str, Any] = {
    "T": OptionalPositive,
    "seed": Annotated[int, Range(0, 2**64 - 1)],
    "variant": Literal["paper", "code"] | None,
    "params": OptionalPositive,
    "engine": Literal["auto", "reference", "fused", "native", "graph", "triton"],
    "ensemble": bool,
    "force": bool,
    "timeout": OptionalPositiveFloat,
    "cell": str | None,
    "deviations": list[str],
    "data_root": str,
    "runs_root": str,
    "results_root": str,
}
SECTIONS = ("model", "task", "optimizer", "schedule", "trainer", "logger", "diagnostics")
DIAGNOSTICS = {
    "hidden_gradients": Field("hidden_gradients", list[Positive], []),
    "singular_values": Field("singular_values", bool, False),
    "jacobian": Field("jacobian", NonNegative, 0),
    "train_batches": Field("train_batches", NonNegative, 0),
}
LOGGERS = {
    "csv": {},
    "none": {},
    "tensorboard": {},
    "wandb": {
        "project": str,
        "entity": str | None,
        "group": str | None,
        "mode": Literal["online", "offline", "disabled"] | None,
    },
}
PROVIDED = {
    "input_size",
    "output_size",
    "readout",
    "make_cell",
    "make_recurrent",
    "make_matrix",
    "rng",
    "engine",
    "n",
    "fan_in",
    "fan_out",
    "variant",
}
TASK_PROVIDED = {"seed", "data_root", "T", "variant"}
NO_EFFECT = {"num_workers"}
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
TRAINER_NUMBERS = (
    "max_steps", "max_epochs", "min_steps", "min_epochs", "max_time", "limit_train_batches",
    "limit_val_batches", "limit_test_batches", "val_check_interval", "check_val_every_n_epoch",
    "accumulate_grad_batches", "gradient_clip_val", "gradient_clip_algorithm", "precision",
)  # fmt: skip
WHOLE = "1 of an epoch"
UNSAID = {
    "limit_train_batches": WHOLE, "limit_val_batches": WHOLE, "limit_test_batches": WHOLE, "precision": "32-true",
    "accumulate_grad_batches": 1, "check_val_every_n_epoch": 1, "gradient_clip_algorithm": "norm",
}  # fmt: skip
ONLY_WITH = {"gradient_clip_algorithm": "gradient_clip_val", "min_steps": "max_time", "min_epochs": "max_time"}
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
    "limit_train_batches": Share,
    "limit_val_batches": Share,
    "limit_test_batches": Share,
    "precision": Literal["32", "64", "16", "bf16", "32-true", "64-true", "16-mixed", "bf16-mixed"] | None,
    "profiler": Literal["simple", "advanced", "pytorch"] | None,
}


@dataclass(frozen=True)
class Settings:
    """Checked settings of one run: plain values, defaults filled in, one dictionary per section.

    Attributes:
        shares: the settings of the model that are tied to the hidden size, as they were given.
        hidden_size: the one that the command line asks for; null where none was typed.
    """

    model: dict[str, Any]
    task: dict[str, Any]
    optimizer: dict[str, Any]
    schedule: dict[str, Any]
    trainer: dict[str, Any]
    logger: dict[str, Any]
    diagnostics: dict[str, Any]
    run: dict[str, Any]
    shares: dict[str, Any]
    hidden_size: int | None = None

    @property
    def identity(self) -> dict[str, Any]:
        """What changes the numbers."""
        return {
            "model": self.model,
            "task": {key: value for key, value in self.task.items() if key not in NO_EFFECT},
            "optimizer": self.optimizer,
            "schedule": self.schedule,
            "trainer": _numbers(self.trainer),
            "seed": self.run["seed"],
        }

    @property
    def run_id(self) -> str:
        """`<task>-<model>-<10 hex digits>`, the name of the run's folder."""
        return f"{self.task['name']}-{self.model['name']}-{self.digest[:10]}"

    @property
    def digest(self) -> str:
        """All 64 digits, of which the folder's name has 10: two of ten thousand runs have been seen to share those."""
        text = json.dumps(_canonical(self.identity), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def folder(self) -> Path:
        """The run's folder."""
        return Path(self.run["runs_root"]) / self.run_id

    def as_dict(self) -> dict[str, Any]:
        """Everything, as config.yaml holds it."""
        sections = {name: dict(getattr(self, name)) for name in SECTIONS}
        return {**self.run, **sections}

    def with_hidden_size(self, size: int) -> "Settings":
        """The same settings with another hidden size; shares of it follow, counts are checked against it.

        Raises:
            ConfigError: the parametrization does not allow this size, or a count exceeds it.
        """
        counts = tied_counts(self.model["recurrent"], size, self.shares)
        return replace(self, model=self.model | {"hidden_size": size} | counts)


def settings(overrides: list[str] | tuple[str, ...], folders: tuple[Path, ...] = ()) -> Settings:
    """Compose and check one run.

    Raises:
        ConfigError: an unknown key, a wrong type or a value out of range, wherever it was written.
    """
    return check(compose(overrides, folders))


def check(composed: Composed) -> Settings:
    """Check composed values against the constructors' signatures; see `settings`."""
    values, choices = dict(composed.values), composed.choices
    for key in values:
        if key not in ROOT and key not in SECTIONS:
            raise ConfigError(f"{key}= is not a setting: {_place(key, values)}")
    for name in SECTIONS:
        if not isinstance(values[name], dict):
            raise ConfigError(f"{name}={values[name]!r}: {name} is a group of settings, each set as {name}.KEY=VALUE.")
    run = {key: coerce(values[key], kind, key) for key, kind in ROOT.items() if key in values}
    task, built = _task(values["task"], choices["task"], run)
    model = _model(values["model"], choices["model"], run, composed.typed)
    _refuse_another_shape(model, built, task["name"])
    if model.get("embedding_size") and not built.tokens_in:
        size = model["embedding_size"]
        raise ConfigError(f"model.embedding_size={size} does not apply to task={task['name']}: it has no tokens.")
    optimizer = _optimizer(values["optimizer"], model)
    trainer = _trainer(values["trainer"])
    _refuse_scaling(trainer, model)
    schedule, logger = _schedule(values["schedule"]), _logger(values["logger"])
    diagnostics = _fill(values["diagnostics"], DIAGNOSTICS, "diagnostics")
    _refuse_jacobian(diagnostics, model)
    recurrent, size = model["recurrent"], model["hidden_size"]
    shares = {key: model[key] for key in tied_counts(recurrent, size, model)}
    model |= tied_counts(recurrent, size, model)
    typed = size if "model.hidden_size" in composed.typed else None
    return Settings(model, task, optimizer, schedule, trainer, logger, diagnostics, run, shares, typed)


def _place(key: str, values: dict[str, Any]) -> str:
    """Where a word that is no top-level key may belong."""
    inner = {word: f"{name}.{word}" for name in SECTIONS if isinstance(values[name], dict) for word in values[name]}
    return f"did you mean '{inner[key]}'?" if key in inner else did_you_mean(key, [*ROOT, *SECTIONS])


def _fill(given: dict[str, Any], known: dict[str, Field], section: str, beside: tuple[str, ...] = ()) -> dict[str, Any]:
    """`given` checked against `known` fields, with defaults for what is not given; `beside` are legal too."""
    for key in given:
        if key not in known:
            raise ConfigError(f"{section}.{key} does not apply here: {did_you_mean(key, [*known, *beside])}")
    filled = {}
    for key, field in known.items():
        if key in given:
            filled[key] = coerce(given[key], field.annotation, f"{section}.{key}")
        elif not field.required:
            filled[key] = list(field.default) if isinstance(field.default, tuple) else field.default
    return filled


def _task(given: dict[str, Any], name: str, run: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    """The task's settings, and the task itself."""
    cls: Any = find("task", name, "task")
    known = fields(cls)
    filled = _fill(given, {key: field for key, field in known.items() if key not in TASK_PROVIDED}, "task")
    if cls.fixed_length and run["T"] is not None:
        raise ConfigError(f"T={run['T']} does not apply to task={name}: {cls.fixed_length}.")
    if "T" in known:
        filled["T"] = known["T"].default if run["T"] is None else coerce(run["T"], known["T"].annotation, "T")
    if "variant" in known:
        filled["variant"] = run["variant"] or known["variant"].default
    filled = cls.resolve(filled, Path(run["data_root"]))
    built = cls(**filled)  # refuses what only the task itself can judge
    return {"name": name, **filled}, built


def _model(given: dict[str, Any], name: str, run: dict[str, Any], typed: frozenset[str]) -> dict[str, Any]:
    given = dict(given)
    network, recurrent = given.pop("network", "recurrent"), given.pop("recurrent", "free")
    named = {"name": name, "network": network, "recurrent": recurrent}
    cls: Any = find("parametrization", recurrent, "model.recurrent")
    own = fields(find("network", network, "model.network"))
    known: dict[str, Field] = fields(cls)
    cell: Any = None
    if "make_cell" in own:
        named["cell"] = given.pop("cell", "elman")
        cell = find("cell", named["cell"], "model.cell")
        known = {**known, **fields(cell)}
        if len(cell.gates) > 1:
            known = {**fields(find("parametrization", "free", "")), **known}
    known |= own
    legal = {key: field for key, field in known.items() if key not in PROVIDED}
    if typed & {"model.cell", "model.recurrent"}:
        given = {key: value for key, value in given.items() if key in legal or f"model.{key}" in typed}
    filled = _fill(given, legal, "model", tuple(named)[1:])
    if run["params"] is not None and filled.get("layer_sizes"):
        raise ConfigError(f"params={run['params']} does not apply: model.layer_sizes= says how large the model is.")
    if "variant" in known:
        filled["variant"] = run["variant"] or known["variant"].default
    if cls.is_complex(filled) and not (cell and cell.complex_state):
        where = f"model.cell={named['cell']} has a real state" if cell else f"model.network={network} is real"
        use = "use model.cell=complex_elman or a real parametrization"
        raise ConfigError(f"model.recurrent={recurrent} is a complex matrix here, but {where}: {use}.")
    return {**named, **filled}


def _refuse_another_shape(model: dict[str, Any], task: Any, name: str) -> None:
    """A network that reads sequences on a task without time, or the other way round."""
    sequential = find("network", model["network"], "model.network").sequential  # type: ignore[attr-defined]
    if sequential and not task.sequential:
        use = "use task=mnist or a feed-forward model such as mlp"
        raise ConfigError(f"model={model['name']} reads sequences, and task={name} has none: {use}.")
    if task.sequential and not sequential:
        use = "use task=mnist_flat or a recurrent model"
        raise ConfigError(f"model={model['name']} is a feed-forward model, and task={name} has sequences: {use}.")


def _refuse_scaling(trainer: dict[str, Any], model: dict[str, Any]) -> None:
    """Settings that look at the size of gradients on their way, where the loss is scaled."""
    for key in ("rms_gradient", "recurrent_gradient_clip"):
        if trainer.get("precision") == "16-mixed" and model.get(key):
            raise ConfigError(
                f"model.{key}={model[key]} does not apply with trainer.precision=16-mixed, which scales gradients: "
                "use bf16-mixed."
            )


def _refuse_jacobian(diagnostics: dict[str, Any], model: dict[str, Any]) -> None:
    cell: Any = find("cell", model["cell"], "model.cell") if "cell" in model else None
    if diagnostics["jacobian"] and (cell is None or cell.complex_state):
        why = "has no hidden state" if cell is None else "has a complex hidden state"
        raise ConfigError(
            f"diagnostics.jacobian={diagnostics['jacobian']} does not apply: model={model['name']} {why}."
        )


def tied_counts(recurrent: str, n: int, given: dict[str, Any]) -> dict[str, int]:
    """The settings of a parametrization that are tied to the hidden size n, as whole numbers.

    Raises:
        ConfigError: n does not suit the parametrization, or a setting does not suit n.
    """
    cls: Any = find("parametrization", recurrent, "model.recurrent")
    reason = cls.valid_size(n)
    if reason:
        raise ConfigError(f"model.hidden_size={n} does not suit {recurrent}: {reason}")
    return {key: resolve_count(given[key], limit, f"model.{key}") for key, limit in cls.limits(n).items()}


def _optimizer(given: dict[str, Any], model: dict[str, Any]) -> dict[str, Any]:
    from orthobench.optim import RULES

    given = {key: value for key, value in given.items() if value is not None}
    name = coerce(given.pop("name", "adam"), Literal[tuple(RULES)], "optimizer.name")
    lr = coerce(given.pop("lr", 1e-3), PositiveFloat, "optimizer.lr")
    lr_recurrent = coerce(given.pop("lr_recurrent", lr), PositiveFloat, "optimizer.lr_recurrent")
    recurrent = coerce(given.pop("recurrent", name), Literal[tuple(RULES)], "optimizer.recurrent")
    beside = ("name", "lr", "lr_recurrent", "recurrent")
    filled = {"name": name, "lr": lr, **_fill(given, fields(RULES[name]), "optimizer", beside)}
    if find("parametrization", model["recurrent"], "model.recurrent").constrained:  # type: ignore[attr-defined]
        filled |= {"lr_recurrent": lr_recurrent, "recurrent": recurrent}
    return filled


def _schedule(given: dict[str, Any]) -> dict[str, Any]:
    from orthobench.optim import SCHEDULES

    given = {key: value for key, value in given.items() if value is not None}
    name = coerce(given.pop("name", "constant"), Literal[tuple(SCHEDULES)], "schedule.name")
    return {"name": name, **_fill(given, fields(SCHEDULES[name]), "schedule", ("name",))}


def _trainer(given: dict[str, Any]) -> dict[str, Any]:
    from lightning.pytorch import Trainer

    known = fields(Trainer)
    for key, value in given.items():
        if key in TRAINER_REFUSED:
            raise ConfigError(f"trainer.{key}={value} is refused: {TRAINER_REFUSED[key]}.")
    allowed = {key: field for key, field in known.items() if key not in TRAINER_REFUSED}
    if str(given.get("precision")).startswith(("16-true", "bf16-true", "transformer-engine")):
        why = "it rounds the recurrent matrix, and what is orthogonal about it is lost; use bf16-mixed"
        raise ConfigError(f"trainer.precision={given['precision']} is refused: {why}.")
    for key in given:
        if key not in allowed:
            raise ConfigError(f"trainer.{key} is not an argument of Lightning's Trainer: {did_you_mean(key, allowed)}")
    filled = {}
    for key, value in given.items():
        kind = TRAINER_TYPES.get(key, allowed[key].annotation)
        filled[key] = _time_limit(value) if key == "max_time" else coerce(value, kind, f"trainer.{key}")
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


def _logger(given: dict[str, Any]) -> dict[str, Any]:
    given = dict(given)
    name = coerce(given.pop("name", "csv"), Literal[tuple(LOGGERS)], "logger.name")
    known = {key: Field(key, kind) for key, kind in LOGGERS[name].items()}
    return {"name": name, **_fill(given, known, "logger", ("name",))}


def _time_limit(value: Any) -> str | None:
    """`01:12:00:00` or {days: 1, hours: 12}, in the first form, which is Lightning's."""
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


def _numbers(trainer: dict[str, Any]) -> dict[str, Any]:
    """What of the trainer's settings changes the numbers: nothing that is so anyway, or has no effect here."""
    found = {key: _length(key, trainer[key]) for key in TRAINER_NUMBERS if trainer.get(key) is not None}
    if isinstance(found.get("val_check_interval"), int):
        found.pop("check_val_every_n_epoch", None)
    return {key: value for key, value in found.items() if value != UNSAID.get(key) and ONLY_WITH.get(key, key) in found}


def _length(key: str, value: Any) -> Any:
    """A length as it is hashed: 1.0 is a whole epoch, 1 is one batch."""
    share = isinstance(value, float) and (key.startswith("limit_") or key == "val_check_interval")
    return f"{value:g} of an epoch" if share else value


def _canonical(value: Any) -> Any:
    """The same value however it was spelt: 190.0 as 190."""
    if isinstance(value, dict):
        return {key: _canonical(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_canonical(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value
