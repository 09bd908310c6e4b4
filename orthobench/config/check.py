"""From a composed configuration to checked settings and the run's identity.

Every value is checked against the signature of the constructor that will get it, and defaults are filled in. The run id
is a hash of exactly the settings that change the numbers.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from orthobench.common import paths, registry
from orthobench.common.schema import (
    Field,
    NonNegative,
    OneOf,
    OptionalPositive,
    OptionalPositiveFloat,
    Positive,
    PositiveFloat,
    Range,
    coerce,
    did_you_mean,
    fields,
)
from orthobench.config import places, typo_hints
from orthobench.config.compose import Composed
from orthobench.config.settings import SECTIONS, Parts, Settings, tied_counts
from orthobench.config.stopping import STOPPING, stopping_settings
from orthobench.config.trainer import trainer_settings
from orthobench.errors import ConfigError

ROOT: dict[str, Any] = {
    "T": OptionalPositive,
    "seed": Annotated[int, Range(0, 2**64 - 1)],
    "variant": Literal["paper", "code"] | None,
    "params": OptionalPositive,
    "engine": Annotated[str, OneOf(registry.engines)],
    "checkpoint": Literal["states", "auto"] | OptionalPositive,
    "ensemble": bool,
    "force": bool,
    "fork": bool,
    "timeout": OptionalPositiveFloat,
    "cell": str | None,
    "init_from": str | None,
    "deviations": list[str],
    "data_root": str,
    "runs_root": str,
    "results_root": str,
}
DIAGNOSTICS = {
    "hidden_gradients": Field("hidden_gradients", list[Positive], []),
    "singular_values": Field("singular_values", bool, False),
    "jacobian": Field("jacobian", NonNegative, 0),
    "train_batches": Field("train_batches", NonNegative, 0),
}
DATA = {"verify": Field("verify", bool, True)}
LOGGERS = {
    "csv": {},
    "none": {},
    "tensorboard": {},
    "wandb": {
        "project": str,
        "entity": str | None,
        "group": str | None,
        "mode": Literal["online", "offline", "disabled"] | None,
        "tags": list[str],
        "artifacts": bool,
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


def check(composed: Composed) -> Settings:
    """Check composed values against the constructors' signatures.

    Raises:
        ConfigError: a key is unknown, or a value has the wrong type or is out of range, wherever it was written.
    """
    values, choices = dict(composed.values), composed.choices
    for key in values:
        if key not in ROOT and key not in SECTIONS:
            raise ConfigError(f"{key}= is not a setting: {_place(key, values)}")
    for name in SECTIONS:
        if not isinstance(values[name], dict):
            raise ConfigError(f"{name}={values[name]!r}: {name} is a group of settings, set each as {name}.KEY=VALUE.")
    run = {key: coerce(values[key], kind, key) for key, kind in ROOT.items() if key in values}
    run = places.of_run(run, composed.typed)
    data = _fill(values["data"], DATA, "data")
    task, made = _task(values["task"], choices["task"], run, data, composed)
    model, (network, cell, recurrent) = _model(values["model"], choices["model"], run, composed)
    if run["variant"] is not None and "variant" not in task.keys() | model.keys():
        both = f"task={task['name']} with model={model['name']}"
        raise ConfigError(f"variant={run['variant']} does not apply to {both}: neither has variants, so leave it out.")
    _refuse_another_shape(model, network.sequential, made, task["name"])
    if model.get("embedding_size") and not made.tokens_in:
        size = model["embedding_size"]
        raise ConfigError(
            f"model.embedding_size={size} does not apply to task={task['name']}: it has no tokens, so leave it out."
        )
    optimizer, rules = _optimizer(values["optimizer"], recurrent.constrained)
    trainer = trainer_settings(values["trainer"])
    trainer, cap = _typed_steps(trainer, made, composed.typed)
    _refuse_scaling(trainer, model)
    schedule, schedule_class = _schedule(values["schedule"], trainer)
    filled = _fill(values["stopping"], STOPPING, "stopping")
    stopping = stopping_settings(filled, made, composed.recorded is not None)
    diagnostics = _fill(values["diagnostics"], DIAGNOSTICS, "diagnostics")
    _refuse_jacobian(diagnostics, model, cell)
    if "hidden_size" not in model:
        raise ConfigError(f"model.network={model['network']}: {network.__name__} needs an argument hidden_size.")
    counts = tied_counts(recurrent, model["recurrent"], model["hidden_size"], model)
    return Settings(
        model=model | counts,
        task=task,
        optimizer=optimizer,
        schedule=schedule,
        trainer=trainer,
        stopping=stopping,
        logger=_logger(values["logger"]),
        diagnostics=diagnostics,
        data=data,
        run=run,
        shares={key: model[key] for key in counts},
        parts=Parts(type(made), network, cell, recurrent, *rules, schedule_class),
        hidden_size=model["hidden_size"] if "model.hidden_size" in composed.typed else None,
        task_made=made,
        cap=cap,
        foreign=composed.foreign,
    )


def _place(key: str, values: dict[str, Any]) -> str:
    """A hint where a word belongs that is not a top-level key."""
    inner = {word: f"{name}.{word}" for name in SECTIONS if isinstance(values[name], dict) for word in values[name]}
    if key in inner:
        return f"did you mean '{inner[key]}'?"
    return typo_hints.other_key(key) or did_you_mean(key, [*ROOT, *SECTIONS])


def _fill(
    given: dict[str, Any], known: Mapping[str, Field], section: str, beside: tuple[str, ...] = (), choice: str = ""
) -> dict[str, Any]:
    """`given`, checked against the `known` fields and completed by their defaults; `beside` are further keys to name.

    `choice` is what a section's keys depend on, such as task=har2.
    """
    for key in given:
        if key not in known:
            place = f"to {choice}" if choice else "here"
            raise ConfigError(f"{section}.{key} does not apply {place}: {did_you_mean(key, [*known, *beside])}")
    filled = {}
    for key, field in known.items():
        if key in given:
            filled[key] = coerce(given[key], field.annotation, f"{section}.{key}")
        elif not field.required:
            filled[key] = list(field.default) if isinstance(field.default, tuple) else field.default
    return filled


def _task(
    given: dict[str, Any], name: str, run: dict[str, Any], data: dict[str, Any], composed: Composed
) -> tuple[dict[str, Any], Any]:
    """The task's settings, and the task itself, whose constructor checks what its signature cannot say."""
    cls: Any = registry.find("task", name, "task")
    known = fields(cls)
    legal = {key: field for key, field in known.items() if key not in TASK_PROVIDED}
    filled = _fill(given, legal, "task", choice=f"task={name}")
    if cls.fixed_length and run["T"] is not None:
        raise ConfigError(f"T={run['T']} does not apply to task={name}, so leave it out: {cls.fixed_length}.")
    if "T" in known:
        filled["T"] = known["T"].default if run["T"] is None else coerce(run["T"], known["T"].annotation, "T")
    if "variant" in known:
        filled["variant"] = run["variant"] or composed.variants.get("task") or known["variant"].default
    if composed.recorded is None:
        filled = places.of_task(set(cls.own_files) & set(filled), filled, composed.typed)
    filled = cls.resolve(filled, Path(run["data_root"]))
    made = cls(seed=run["seed"], data_root=paths.absolute(run["data_root"]), **filled | (composed.recorded or {}))
    if not registry.is_ours(cls):
        made.refuse_incomplete()
    made.verify = data["verify"]
    if composed.recorded is None:
        made.look()
    return {"name": name, **filled}, made


def _model(
    given: dict[str, Any], name: str, run: dict[str, Any], composed: Composed
) -> tuple[dict[str, Any], tuple[Any, Any, Any]]:
    """The model's settings, and its classes: network, cell and parametrization."""
    given = dict(given)
    network, recurrent = given.pop("network", "recurrent"), given.pop("recurrent", "free")
    named = {"name": name, "network": network, "recurrent": recurrent}
    cls: Any = registry.find("parametrization", recurrent, "model.recurrent")
    network_class = registry.find("network", network, "model.network")
    own = fields(network_class)
    known = fields(cls)
    cell: Any = None
    if "make_cell" in own:
        if "cell" not in given:
            raise ConfigError(f"model={name}: its file names no cell; write one into it, such as `cell: elman`.")
        named["cell"] = given.pop("cell")
        cell = registry.find("cell", named["cell"], "model.cell")
        known = recurrence_fields(cell, cls)
    known = {**known, **own}
    legal = {key: field for key, field in known.items() if key not in PROVIDED}
    if composed.typed & {"model.cell", "model.recurrent", "model.network"}:
        given = {key: value for key, value in given.items() if key in legal or f"model.{key}" in composed.typed}
    filled = _fill(given, legal, "model", tuple(named)[1:], f"model={name}")
    if run["params"] is not None and filled.get("layer_sizes"):
        raise ConfigError(
            f"params={run['params']} does not apply: model.layer_sizes= says how large the model is, "
            "so drop one of them."
        )
    if "variant" in known:
        filled["variant"] = run["variant"] or composed.variants.get("model") or known["variant"].default
    where = f"model.cell={named['cell']} has a real state" if cell else f"model.network={network} is real"
    refuse_complex(cls, filled, cell, f"model.recurrent={recurrent} is a complex matrix here, but {where}")
    return {**named, **filled}, (network_class, cell, cls)


def recurrence_fields(cell: Any, recurrent: Any) -> dict[str, Field]:
    """The settings of a cell and of its recurrent matrices, by name, those that the caller provides among them.

    Raises:
        ConfigError: the cell has no recurrent matrix, and `recurrent` is not `Free`.
    """
    name = registry.snake_case(recurrent.__name__)
    matrices = cell.gates if cell.matrix_names is None else cell.matrix_names
    if not matrices and name != "free":
        raise ConfigError(
            f"model.recurrent={name} does not apply: {cell.__name__} has no recurrent matrix; use model.recurrent=free."
        )
    known = {**(fields(recurrent) if matrices else {}), **fields(cell)}
    if len(matrices) > 1 and name != "free":
        return {**fields(registry.find("parametrization", "free", "")), **known}
    return known


def refuse_complex(recurrent: Any, given: dict[str, Any], cell: Any, problem: str) -> None:
    """Refuse a matrix that is complex with these settings in a model whose state is real.

    Raises:
        ConfigError: it is one; `problem` is the beginning of the sentence.
    """
    if recurrent.is_complex(given) and not (cell and cell.complex_state):
        raise ConfigError(f"{problem}: use model.cell=complex_elman or a real parametrization.")


def _typed_steps(trainer: dict[str, Any], task: Any, typed: frozenset[str]) -> tuple[dict[str, Any], int | None]:
    """The settings of the trainer, and a recipe's max_epochs where a typed max_steps is longer, which then counts."""
    steps, epochs = trainer.get("max_steps", -1), trainer.get("max_epochs")
    if "trainer.max_steps" not in typed or "trainer.max_epochs" in typed or steps == -1 or not epochs:
        return trainer, None
    batches, limit = task.batches("train"), trainer.get("limit_train_batches")
    if limit is not None:
        batches = max(int(limit * batches), 1) if isinstance(limit, float) else min(batches, limit)
    if epochs * batches // (trainer.get("accumulate_grad_batches") or 1) >= steps:
        return trainer, None
    return {key: value for key, value in trainer.items() if key != "max_epochs"}, epochs


def _refuse_another_shape(model: dict[str, Any], sequential: bool, task: Any, name: str) -> None:
    """Refuse a network that reads sequences on a task without time, or the other way round."""
    if sequential and not task.sequential:
        use = "use task=mnist or a feed-forward model such as mlp"
        raise ConfigError(f"model={model['name']} reads sequences, and task={name} has none: {use}.")
    if task.sequential and not sequential:
        use = "use task=mnist_flat or a recurrent model"
        raise ConfigError(f"model={model['name']} is a feed-forward model, and task={name} has sequences: {use}.")


def _refuse_scaling(trainer: dict[str, Any], model: dict[str, Any]) -> None:
    """Refuse settings that depend on the size of gradients in the backward pass where the loss is scaled."""
    for key in ("rms_gradient", "recurrent_gradient_clip"):
        if trainer.get("precision") == "16-mixed" and model.get(key):
            raise ConfigError(
                f"model.{key}={model[key]} does not apply with trainer.precision=16-mixed, which scales gradients: "
                "use bf16-mixed."
            )


def _refuse_jacobian(diagnostics: dict[str, Any], model: dict[str, Any], cell: Any) -> None:
    if diagnostics["jacobian"] and (cell is None or cell.complex_state):
        why = "has no hidden state" if cell is None else "has a complex hidden state"
        raise ConfigError(
            f"diagnostics.jacobian={diagnostics['jacobian']} does not apply: model={model['name']} {why}"
            "; use diagnostics.jacobian=false."
        )


def _optimizer(given: dict[str, Any], constrained: bool) -> tuple[dict[str, Any], tuple[Any, Any]]:
    """The optimizer's settings, and its rules for the free and for the constrained parameters."""
    given = {key: value for key, value in given.items() if value is not None}
    name = given.pop("name", "adam")
    rule = recurrent_rule = registry.find("optimizer", name, "optimizer.name")
    lr = coerce(given.pop("lr", 1e-3), PositiveFloat, "optimizer.lr")
    lr_recurrent = coerce(given.pop("lr_recurrent", lr), PositiveFloat, "optimizer.lr_recurrent")
    recurrent = given.pop("recurrent", name)
    if recurrent != name:
        recurrent_rule = registry.find("optimizer", recurrent, "optimizer.recurrent")
    beside = ("name", "lr", "lr_recurrent", "recurrent")
    filled = {"name": name, "lr": lr, **_fill(given, fields(rule), "optimizer", beside, f"optimizer={name}")}
    if constrained:
        filled |= {"lr_recurrent": lr_recurrent, "recurrent": recurrent}
    return filled, (rule, recurrent_rule)


def _schedule(given: dict[str, Any], trainer: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    """The schedule's settings, and its class.

    Raises:
        ConfigError: it goes by a number of steps that the run does not have.
    """
    given = {key: value for key, value in given.items() if value is not None}
    name = given.pop("name", "constant")
    cls = registry.find("schedule", name, "schedule.name")
    if cls.over_the_run and trainer.get("max_steps", -1) == -1 and not trainer.get("max_epochs"):
        ends = f"trainer.max_time={trainer.get('max_time')} alone ends this one"
        raise ConfigError(
            f"schedule={name} goes by the steps of the whole run, and {ends}: set trainer.max_steps= or "
            "trainer.max_epochs=, too."
        )
    return {"name": name, **_fill(given, fields(cls), "schedule", ("name",), f"schedule={name}")}, cls


def _logger(given: dict[str, Any]) -> dict[str, Any]:
    given = dict(given)
    name = coerce(given.pop("name", "csv"), Literal[tuple(LOGGERS)], "logger.name")
    known = {key: Field(key, kind) for key, kind in LOGGERS[name].items()}
    return {"name": name, **_fill(given, known, "logger", ("name",), f"logger={name}")}
