"""A run that starts from another one's weights does not validate or test on what those were trained on.

Where both have the same data and ask for the same division, the first one's is kept, whatever the seed. Elsewhere rows
are compared: what would be drawn for validation or the test, and was trained on, is refused; what a file or an archive
names for it is told.
"""

from typing import TYPE_CHECKING

from orthobench.common.registry import is_ours
from orthobench.config.settings import Settings
from orthobench.errors import ConfigError
from orthobench.run.recorded_data import is_the_runs
from orthobench.tasks.base import Split, Task
from orthobench.tasks.seen import count

if TYPE_CHECKING:
    from orthobench.run.load import Finished

HELD_OUT: tuple[Split, ...] = ("val", "test")


def is_divided_alike(settings: Settings, task: Task, first: "Finished") -> bool:
    """Return True if a task asks for the division of another run's: the same data, and the same settings of what
    divides them.

    Args:
        settings: the run's.
        task: its task.
        first: the other run.
    """
    if type(task) is not type(first.task):
        return False
    asked = (*task.divides, "dataset")
    alike = all(settings.task.get(key) == first.settings.task.get(key) for key in asked)
    return alike and has_the_data_of(task, first) and (is_ours(type(task)) or task.seed == first.task.seed)


def _has_the_division_of(settings: Settings, task: Task, one: "Finished") -> bool:
    return is_divided_alike(settings, task, one) and task.division_seed == one.task.division_seed


def has_the_data_of(task: Task, first: "Finished") -> bool:
    """Return True if a task reads the files of the user's own that another run has read; true where it reads none."""
    own = task.files()
    return not own or own == first.task.files() or is_the_runs(own, first.record.get("sources"))


def remarks_on_seen(settings: Settings, task: Task, first: "Finished") -> list[str]:
    """Sentences on what is divided as before, and on each named part that has rows on which the weights were trained.

    Raises:
        ConfigError: a part that is drawn has such rows.
    """
    found = []
    if task.division_seed != task.seed:
        found.append(f"the data are divided as those of {first.run_id}, by its seed {task.division_seed}")
    for one in (first, *first.before()):
        if type(task) is not type(one.task) or _has_the_division_of(settings, task, one):
            continue
        known = set(one.task.row_digests("train"))
        for split in HELD_OUT if known else ():
            rows = task.row_digests(split)
            seen = count(rows, known)
            if not seen:
                continue
            fact = f"{seen:,} of {len(rows):,} {split} {task.rows_are} are in the training part of {one.run_id}"
            drawn = split not in task.named_parts
            if drawn and (task.rows_are != "lines" or has_the_data_of(task, one)):
                values = {key: one.settings.task.get(key) for key in task.divides}
                keep = " ".join(f"task.{key}={value}" for key, value in values.items() if value is not None)
                raise ConfigError(
                    f"init_from={settings.run['init_from']} is refused: {fact}, whose division is {keep}; ask for the "
                    "same one, or name the parts in the file."
                )
            found.append(f"{fact}, from whose weights this run starts: its score there is not of unseen data")
    return found
