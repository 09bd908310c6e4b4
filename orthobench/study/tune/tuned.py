"""Result of a tuning: its best trial, the recipe that gives these settings again, and the settings that mattered."""

import warnings
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from orthobench.config.overrides import recipe
from orthobench.errors import ConfigError, StorageError
from orthobench.recording.digest import final
from orthobench.recording.files import within, write_bytes
from orthobench.recording.sources import changed
from orthobench.study.tune.search import Search, short

NAME = "tuned"
LEAST = 4  # finished trials, below which nothing is said about importance


def counts(study: Any) -> dict[str, int]:
    """Numbers of trials by the way in which they ended, those that are still worked on as `open`."""
    trials = study.get_trials(deepcopy=False)
    return dict(Counter(t.user_attrs.get("status", "open") if t.state.is_finished() else "open" for t in trials))


def best(study: Any) -> Any | None:
    """The finished trial with the best validation score; None where none is finished."""
    from optuna.trial import TrialState

    done = [t for t in study.get_trials(deepcopy=False) if t.state == TrialState.COMPLETE]
    return study.best_trial if done else None


def ranking(study: Any, names: Iterable[str], most: int = 10) -> list[list[str]]:
    """The trials as rows of a table, the best first: number, values of these settings, score or why there is none."""
    ended = [t for t in study.get_trials(deepcopy=False) if t.state.is_finished()]
    sign = -1 if study.direction.name == "MAXIMIZE" else 1
    scored = sorted((t for t in ended if t.user_attrs.get("status") == "done"), key=lambda t: sign * t.value)
    rows = []
    for trial in (*scored, *(t for t in ended if t not in scored))[:most]:
        why = ": ".join(filter(None, map(trial.user_attrs.get, ("status", "reason"))))
        values = [short(trial.params.get(name, "")) for name in names]
        rows.append([str(trial.number + 1), *values, short(trial.value) if trial in scored else why])
    return rows


def refuse_changed(search: Search, study: Any) -> None:
    """Refuse to go on where trials are finished that were made with other plug-ins or other data.

    Raises:
        ConfigError: they have changed.
    """
    ids = (trial.user_attrs.get("run_id") for trial in study.get_trials(deepcopy=False))
    records = (final(_record(search, run_id)) or {} for run_id in ids if run_id)
    found = dict.fromkeys(why for record in records for why in changed(record.get("sources"), search.first))
    if found:
        raise ConfigError(
            f"{search.folder} is stale: trials were made before a change of {', '.join(found)}; undo that, or move the "
            "folder and those of its runs away to tune anew."
        )


def write_recipe(search: Search, run_id: str) -> tuple[Path, str]:
    """Write the settings of a trial's run as a recipe into a folder for `--config-dir`.

    Returns:
        That folder, and the name for `recipe=`.

    Raises:
        ConfigError: this version gives other settings by the same values.
        StorageError: the trial's record is missing or damaged, or it cannot be written.
    """
    folder = search.folder / "conf"
    path = _record(search, run_id)
    record = final(path)
    if record is None:
        raise StorageError(
            f"{path}, the record of the best run, is missing or damaged: run that anew by its own words."
        )
    text = yaml.safe_dump(recipe(record["config"], search.configuration), sort_keys=False)
    head = f"# @package _global_\n# The best of a tuning, by {search.score}: {run_id}\n"
    write_bytes(folder / "recipe" / f"{NAME}.yaml", (head + text).encode())
    return folder, NAME


def _record(search: Search, run_id: object) -> Path:
    """The record of a trial's run, whose name the journal has.

    Raises:
        StorageError: it is no name of a folder beside that of the study, or a link.
    """
    return within(search.folder.parent, f"{run_id}/record.json")


def importances(study: Any) -> dict[str, float]:
    """Importance of each setting for being among the best trials, in shares of 1 (PED-ANOVA: Watanabe et
    al. 2023).

    Empty for fewer than LEAST finished trials, or where all of them had one score.
    """
    from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances
    from optuna.trial import TrialState

    done = [t for t in study.get_trials(deepcopy=False) if t.state == TrialState.COMPLETE]
    if len(done) < LEAST or len({t.value for t in done}) < 2:
        return {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Optuna's, that the method is new
        found = get_param_importances(study, evaluator=PedAnovaImportanceEvaluator())
    return found if sum(found.values()) else {}
