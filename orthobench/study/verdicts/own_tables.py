"""A user's own runs as tables: one per task and length, a row per combination of settings, seeds as repeats.

Where runs of one model differ in what their task asks, as in `task.digits`, each value of that has a table of its own.

Swept settings are those that tell the rows of one model apart. What else differs between rows is told for each of them:
of the model's own settings among its rows, of all others among the rows of the table. The best row of a model is the
one with the best mean validation score, a diverged seed being worse than any, see `tuning.quality`, and a stale run,
which the same command would not give today, worse than that.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from orthobench.config.settings import OF_TRAINING
from orthobench.study.records.own_runs import OwnRun, text
from orthobench.study.statistics.statistics import Scores
from orthobench.study.verdicts.tuning import quality
from orthobench.tasks.metric import Metric

CASE = ("task", "T", "task.dataset", "task.path", "task.by")
RATES = ("optimizer.lr", "optimizer.lr_recurrent")  # the second is the first where nobody sets it
FIRST = ("model.hidden_size", "optimizer", *RATES, "schedule")
RULES = ("optimizer", "schedule")


@dataclass(frozen=True)
class OwnRow:
    """Runs that differ in nothing but their seed.

    Attributes:
        name: tells it from the others of its table.
        others: beside the swept settings, those by which it differs from most rows: its value and theirs.
    """

    name: str
    settings: dict[str, Any]
    runs: tuple[OwnRun, ...]
    others: dict[str, tuple[Any, Any]]

    @property
    def model(self) -> str:
        """The model's name."""
        return str(self.settings["model"])

    def scores(self, name: str) -> Scores:
        """A score of the weights with the best validation, seed by seed."""
        return Scores.of((run.line for run in self.runs), name, len(self.runs))


@dataclass(frozen=True)
class OwnTable:
    """The runs of one task and length.

    Attributes:
        case: the settings that tell this table from others.
        score: the test score that its task is judged by.
        swept: settings in which rows of one model differ.
        rows: the best model first, and of each model the best row first.
    """

    case: dict[str, Any]
    score: Metric
    swept: tuple[str, ...]
    rows: tuple[OwnRow, ...]

    @property
    def title(self) -> str:
        """`copying, T=200`."""
        named = [f"{key.removeprefix('task.')}={text(value)}" for key, value in self.case.items() if key != "task"]
        return ", ".join([str(self.case["task"]), *named])

    @property
    def validation(self) -> str:
        """The score by which rows are chosen, as `val/NAME`."""
        return self.score.validation

    @cached_property
    def best(self) -> dict[str, str]:
        """By model, the name of its best row."""
        return {model: row.name for model, row in self.best_by(lambda row: row.model).items()}

    def best_by(self, value: Callable[[OwnRow], str]) -> dict[str, OwnRow]:
        """The best row among those of each value."""
        found: dict[str, OwnRow] = {}
        for row in _ordered(self.rows, self.score):
            found.setdefault(value(row), row)
        return found


def tables(runs: Iterable[OwnRun]) -> list[OwnTable]:
    """The tables of some runs, by task and length.

    Raises:
        ConfigError: a task is not known here.
    """
    cases: dict[str, list[OwnRun]] = {}
    known, of_task = list(runs), dict[str, list[dict[str, Any]]]()
    for run in known:
        of_task.setdefault(run.settings["task"], []).append(run.settings)
    asked = {task: _asked(settings) for task, settings in of_task.items()}
    for run in known:
        keys = (*CASE, *asked[run.settings["task"]])
        case = {key: run.settings[key] for key in keys if run.settings.get(key) is not None}
        cases.setdefault(json.dumps([case, run.score.name]), []).append(run)
    order = sorted(cases, key=lambda case: (cases[case][0].settings["task"], cases[case][0].settings.get("T") or 0))
    return [_table(json.loads(case)[0], cases[case]) for case in order]


def _asked(settings: Iterable[dict[str, Any]]) -> list[str]:
    """The settings of a task, beyond `CASE` and those of training on it, in which runs of one model differ.

    What only differs between models, because their papers ask it otherwise, is told for each row.
    """
    known: dict[str, dict[str, set[str]]] = {}
    for own in settings:
        for key in (key for key in own if key.startswith("task.") and key not in CASE):
            known.setdefault(key, {}).setdefault(str(own["model"]), set()).add(json.dumps(own[key]))
    return [
        key
        for key, by_model in known.items()
        if key.removeprefix("task.") not in OF_TRAINING and any(len(values) > 1 for values in by_model.values())
    ]


def _table(case: dict[str, Any], runs: list[OwnRun]) -> OwnTable:
    groups: dict[str, list[OwnRun]] = {}
    for run in runs:
        groups.setdefault(_name(run.settings), []).append(run)
    settings = {name: _seedless(found[0].settings) for name, found in groups.items()}
    swept = _swept(list(settings.values()))
    left = [key for key in _keys(settings.values()) if key not in (*swept, *case, "model")]
    others: dict[str, dict[str, tuple[Any, Any]]] = {name: {} for name in groups}
    for key in left:
        for beside in _comparable(key, settings):
            values = Counter(json.dumps(own.get(key)) for own in beside.values())
            most = json.loads(values.most_common(1)[0][0])
            for name, own in beside.items():
                if own.get(key) != most:
                    others[name][key] = own.get(key), most
    score = runs[0].score
    rows = _ordered([OwnRow(name, settings[name], tuple(groups[name]), others[name]) for name in groups], score)
    models = list(dict.fromkeys(row.model for row in rows))
    return OwnTable(case, score, swept, tuple(sorted(rows, key=lambda row: models.index(row.model))))


def _ordered(rows: Sequence[OwnRow], score: Metric) -> list[OwnRow]:
    """The rows by their quality in validation, the best one first, those with a stale run last."""

    def place(row: OwnRow) -> tuple[bool, tuple[bool, float, float]]:
        return not any(run.stale for run in row.runs), quality([run.line for run in row.runs], score)

    return sorted(rows, key=place, reverse=True)


def _swept(settings: list[dict[str, Any]]) -> tuple[str, ...]:
    """The fewest settings that tell the rows of each model apart, those that are swept most often tried first."""
    chosen: list[str] = []
    keys = [key for key in _keys(settings) if key not in CASE and key != "model"]
    derived = all(own.get(RATES[1]) in (None, own.get(RATES[0])) for own in settings)
    last = (RATES[1],) if derived else ()
    for key in sorted(keys, key=lambda key: (key in last, FIRST.index(key) if key in FIRST else len(FIRST))):
        if _apart(settings, [*chosen, key]) > _apart(settings, chosen):
            chosen.append(key)
    return tuple(key for key in keys if key in chosen)


def _apart(settings: list[dict[str, Any]], keys: list[str]) -> int:
    """Number of rows that these keys and the model tell apart."""
    return len({json.dumps([own["model"], *(own.get(key) for key in keys)]) for own in settings})


def _comparable(key: str, settings: dict[str, dict[str, Any]]) -> list[dict[str, dict[str, Any]]]:
    """The groups of rows, by name, among which a setting is compared.

    The model's own settings are compared among its rows, and those of an optimizer or a schedule among the rows that
    have the same one. A row without a setting of the trainer has its default; without another, it has none to compare.
    """
    section = key.partition(".")[0]
    if section != "trainer":
        settings = {name: own for name, own in settings.items() if key in own}
    if section not in ("model", *RULES) or key in RULES:
        return [settings]
    apart = "model" if section == "model" or key == RATES[1] else section
    found: dict[Any, dict[str, dict[str, Any]]] = {}
    for name, own in settings.items():
        found.setdefault(own[apart], {})[name] = own
    tied = [group for group in found.values() if all(own.get(key) == own.get(RATES[0]) for own in group.values())]
    return [group for group in found.values() if key != RATES[1] or group not in tied]


def _keys(settings: Iterable[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(key for own in settings for key in own))


def _seedless(settings: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in settings.items() if key != "seed"}


def _name(settings: dict[str, Any]) -> str:
    return json.dumps(_seedless(settings), sort_keys=True)
