"""Configuration -> objects, by registered name: the single place."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

from orthobench.cells.base import Cell
from orthobench.common.paths import absolute
from orthobench.common.registry import is_ours
from orthobench.config.settings import Settings
from orthobench.errors import ConfigError
from orthobench.models.base import Network
from orthobench.models.contract import tried_rule
from orthobench.models.make_cell import chosen, fitted, make_cell, make_recurrent
from orthobench.models.optim import Optimizer, groups
from orthobench.models.recurrent import Recurrent
from orthobench.models.schedules import Schedule
from orthobench.models.surroundings import torch_as_new
from orthobench.parametrizations.base import Parametrization
from orthobench.parametrizations.rectangular_svd import RectangularSVD
from orthobench.parametrizations.svd import SVD
from orthobench.tasks.base import Task

LARGEST = 1 << 14
USUAL = 64  # hidden units from which a budget is approached; nearly every model allows it
MOST_REFUSED = 2 * USUAL  # sizes that a model may refuse before it allows one
GUESSES = 4  # sizes that are guessed from the counts so far, before the interval is halved


def build_task(settings: Settings) -> Task:
    """The task, the one that the check made where there is one; no data is read yet."""
    if settings.task_made is not None:
        return settings.task_made
    given = {key: value for key, value in settings.task.items() if key != "name"}
    task = settings.parts.task(seed=settings.run["seed"], data_root=absolute(settings.run["data_root"]), **given)
    task.verify = settings.data["verify"]
    return task


@torch_as_new()
def build_model(settings: Settings, task: Task) -> Network:
    """The model, its initial values drawn from the run's seed, those that a cell draws by torch too."""
    given = settings.model
    rng = np.random.default_rng([settings.run["seed"], len("model")])
    network: Any = settings.parts.network
    provided = {
        "input_size": task.input_size,
        "output_size": task.output_size,
        "readout": task.readout,
        "make_cell": _cell_maker(settings, rng, task),
        "make_matrix": partial(_make_matrix, settings, rng),
        "rng": rng,
        "engine": settings.run["engine"],
    }
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(settings.run["seed"])  # torch's own would format a stack for every device
        model: Network = network(**chosen(provided, network), **chosen(given, network))
    model.sequences = getattr(task, "batch_size", None)
    model.checkpoint = settings.run["checkpoint"]
    reason = None if model.checkpoint is None else model.why_no_segments()
    if reason is not None:
        raise ConfigError(
            f"checkpoint={model.checkpoint} does not apply to model={given['name']}: {reason}; use checkpoint=null."
        )
    return model


def build_optimizer(settings: Settings, model: Network) -> Optimizer:
    """The optimizer, with a group for the constrained parameters."""
    given = settings.optimizer
    parts = settings.parts
    arguments = chosen(given, parts.rule)
    rule = parts.rule(**arguments) if is_ours(parts.rule) else tried_rule(parts.rule, arguments)
    name = given.get("recurrent", given["name"])
    recurrent_rule = rule if name == given["name"] else parts.recurrent_rule()
    return Optimizer(groups(model, rule, given["lr"], recurrent_rule, given.get("lr_recurrent", given["lr"])))


def build_schedule(settings: Settings) -> Schedule:
    """The learning-rate schedule."""
    cls = settings.parts.schedule
    return cls(**chosen(settings.schedule, cls))


def fit_to_budget(settings: Settings) -> Settings:
    """The settings with the hidden size whose parameter count is nearest to `params=`, when that is set.

    Raises:
        ConfigError: even the smallest model is more than twice the budget, or none is large enough; or another hidden
            size is asked for beside it; or the model allows none of the usual sizes, for its own reason.
    """
    budget = settings.run.get("params")
    if budget is None:
        return settings
    task = build_task(settings)
    totals: dict[int, int] = {}
    refused: list[ConfigError] = []

    def first(size: int, end: int) -> int | None:
        """The first size in size..end-1 that the model allows, if any; notes its total."""
        for allowed in range(size, end):
            try:
                totals[allowed] = build_model(settings.with_hidden_size(allowed), task).parameter_counts()["total"]
                return allowed
            except ConfigError as error:
                refused.append(error)
                if len(refused) > MOST_REFUSED and not totals:  # a fault of the model, whatever its size
                    raise refused[0] from None
        return None

    # sizes up to `low` that are allowed are below the budget, and the first from `high` on is not
    low, high = 0, USUAL
    found = first(USUAL, USUAL + 1)
    if found is None:
        high, found = 1, first(1, 2)
    while found is None or totals[found] < budget:
        low = max(totals, default=high)
        # counts grow at most with the square of the size: up to this one they stay below the budget
        high = max(math.ceil(low * math.sqrt(budget / totals[low])) if totals else 2 * high, low + 1)
        if high > LARGEST:
            problem = "is too large" if totals else "cannot be met"
            raise ConfigError(f"params={budget} {problem} with up to {LARGEST} hidden units; choose another number.")
        found = first(high, 2 * high)
    guesses = 0
    while high - low > 1:
        guesses += 1
        middle = _guess(totals, budget) if guesses <= GUESSES else (low + high) // 2
        middle = min(max(middle, low + 1), high - 1)
        found = first(middle, high)
        if found is None or totals[found] >= budget:
            high = middle
        else:
            low = found
    best = min(totals, key=lambda size: (abs(totals[size] - budget), size))
    if not budget / 2 <= totals[best] <= 2 * budget:
        raise ConfigError(f"params={budget} is too {'small' if totals[best] > budget else 'large'}: "
                          f"use params={totals[best]}, the nearest that a model has.")  # fmt: skip
    if settings.hidden_size not in (None, best):
        raise ConfigError(
            f"model.hidden_size={settings.hidden_size} beside params={budget}, which makes it {best}: drop one of them."
        )
    return settings.with_hidden_size(best)


def _guess(totals: dict[int, int], budget: int) -> int:
    """The size of a budget, were the root of the count a straight line between the nearest two that are known."""
    below = max((size for size, count in totals.items() if count < budget), default=0)
    above = min(size for size, count in totals.items() if count >= budget)
    least, most, root = (math.sqrt(count) for count in (totals.get(below, 0), totals[above], budget))
    return below + math.floor((above - below) * (root - least) / (most - least))


def cell_settings(settings: Settings, task: Task | None) -> dict[str, Any]:
    """The settings of a model's cells, `T_max` being the task's longest sequence where it is not chosen."""
    given = {**settings.model, **settings.shares}
    if "T_max" in given and given["T_max"] is None and task is not None:
        given["T_max"] = task.longest
    return given


def _cell_maker(settings: Settings, rng: np.random.Generator, task: Task) -> Callable[[int, int], Cell]:
    """Maker of the cells of a model, the first of them first: it alone may read one-hot tokens."""
    given, parts = cell_settings(settings, task), settings.parts
    embedded = parts.network is not Recurrent or given.get("embedding_size") is not None
    one_hot = given.get("input_init") == "auto" and task.tokens_in and not embedded

    def make(input_size: int, hidden_size: int) -> Cell:
        nonlocal one_hot
        scheme = {"input_init": "small_one_hot"} if one_hot else {}
        one_hot = False
        return make_cell(given | scheme, parts.cell, parts.recurrent, rng, input_size, hidden_size)

    return make


def _make_matrix(settings: Settings, rng: np.random.Generator, rows: int, columns: int) -> Parametrization:
    given, recurrent = {**settings.model, **settings.shares}, settings.parts.recurrent
    if rows == columns:
        return make_recurrent(given, recurrent, rows, rng, constrained=True, gates=1, input_size=0)
    if recurrent is not SVD:
        raise ConfigError(
            "model.ends=constrained needs matrices that are not square, which "
            f"model.recurrent={settings.model['recurrent']} does not have: use model.recurrent=svd or model.ends=free."
        )
    options = chosen(given, SVD)
    for key, limit in SVD.limits(min(rows, columns)).items():
        options[key] = fitted(options[key], limit, key)
    return RectangularSVD(rows, columns, rng, **options)
