"""Configuration -> objects, by registered name: the single place."""

from functools import partial
from typing import Any

import numpy as np

from orthobench.cells.base import Cell
from orthobench.errors import ConfigError
from orthobench.models.recurrent import Recurrent
from orthobench.optim import RULES, SCHEDULES, Optimizer, Schedule, groups
from orthobench.parametrizations.base import Parametrization
from orthobench.registry import find
from orthobench.schema import fields, resolve_count
from orthobench.settings import Settings
from orthobench.tasks.base import Task

LARGEST = 1 << 14


def build_task(settings: Settings) -> Task:
    """The task; no data is read yet."""
    given = {key: value for key, value in settings.task.items() if key != "name"}
    cls = find("task", settings.task["name"], "task")
    return cls(seed=settings.run["seed"], data_root=settings.run["data_root"], **given)


def build_model(settings: Settings, task: Task) -> Recurrent:
    """The model, its initial values drawn from the run's seed."""
    given = settings.model
    rng = np.random.default_rng([settings.run["seed"], len("model")])
    cell_class = find("cell", given["cell"], "model.cell")

    def make_cell(input_size: int, hidden_size: int) -> Cell:
        arguments = {**_chosen(given, cell_class), "hidden_size": hidden_size}
        make_recurrent = partial(_make_recurrent, {**given, **settings.shares}, hidden_size, rng)
        return cell_class(input_size=input_size, rng=rng, make_recurrent=make_recurrent, **arguments)

    return Recurrent(
        task.input_size,
        task.output_size,
        task.readout,
        make_cell,
        rng,
        settings.run["engine"],
        **_chosen(given, Recurrent),
    )


def build_optimizer(settings: Settings, model: Recurrent) -> Optimizer:
    """The optimizer, with a group for the constrained parameters."""
    given = settings.optimizer
    rule_class = RULES[given["name"]]
    rule = rule_class(**_chosen(given, rule_class))
    name = given.get("recurrent", given["name"])
    recurrent_rule = rule if name == given["name"] else RULES[name]()
    return Optimizer(groups(model, rule, given["lr"], recurrent_rule, given.get("lr_recurrent", given["lr"])))


def build_schedule(settings: Settings) -> Schedule:
    """The learning-rate schedule."""
    cls = SCHEDULES[settings.schedule["name"]]
    return cls(**_chosen(settings.schedule, cls))


def fit_to_budget(settings: Settings) -> Settings:
    """The settings with the hidden size whose parameter count is nearest to `params=`, when that is set.

    Raises:
        ConfigError: even the smallest model is more than twice the budget.
    """
    budget = settings.run.get("params")
    if budget is None:
        return settings
    task = build_task(settings)

    def total(size: int) -> int | None:
        """Parameters of the model of this size; null when the model does not allow it."""
        try:
            return build_model(settings.with_hidden_size(size), task).parameter_counts()["total"]
        except ConfigError:
            return None

    totals: dict[int, int] = {}

    def reaches(size: int, end: int) -> bool:
        """Whether the first allowed size in size..end-1 has at least the budget; notes its total."""
        for allowed in range(size, end):
            count = total(allowed)
            if count is not None:
                totals[allowed] = count
                return count >= budget
        return False

    high = 1
    while not reaches(high, 2 * high) and high < LARGEST:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reaches(middle, high) else (middle, high)
    if not totals:
        raise ConfigError(f"params={budget}: no hidden size up to {LARGEST} is allowed with these settings.")
    best = min(totals, key=lambda size: (abs(totals[size] - budget), size))
    if not budget / 2 <= totals[best] <= 2 * budget:
        raise ConfigError(f"params={budget} is too {'small' if totals[best] > budget else 'large'}: "
                          f"the nearest model has {totals[best]} parameters.")  # fmt: skip
    return settings.with_hidden_size(best)


def _chosen(given: dict[str, Any], cls: type) -> dict[str, Any]:
    """The entries of `given` that the constructor of `cls` takes."""
    return {key: given[key] for key in fields(cls) if key in given}


def _make_recurrent(
    given: dict[str, Any], n: int, rng: np.random.Generator, constrained: bool, gates: int, input_size: int
) -> Parametrization:
    cls = find("parametrization", given["recurrent"] if constrained else "free", "model.recurrent")
    arguments = _chosen(given, cls)
    for key, limit in cls.limits(n).items():  # a layer narrower than the hidden size keeps a share, or the count
        value = arguments[key]
        count = not isinstance(value, str) and value >= 1
        arguments[key] = min(int(value), limit) if count else resolve_count(value, limit, f"model.{key}")
    if "fan_in" in fields(cls):
        arguments |= {"fan_in": input_size + n, "fan_out": gates * n}
    return cls(n=n, rng=rng, **arguments)
