"""`orthobench list [models|tasks|tables] [--counts]`: list them all; `list tasks` with shapes, sizes and baselines."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from orthobench.common.paths import variable
from orthobench.common.program import import_torch
from orthobench.common.schema import refuse_unknown
from orthobench.common.terminal import complain, say
from orthobench.errors import OrthobenchError
from orthobench.study.catalogue import SHIPPED, Catalogue
from orthobench.verbs.arguments import Parser

if TYPE_CHECKING:
    from orthobench.config.configuration import Composer
    from orthobench.tasks import Task

KINDS = {"models": "model", "tasks": "task", "tables": "experiment"}
NO_DATA = Path("/nonexistent")  # the line about a task is the same whatever data a machine has


def main(arguments: list[str]) -> int:
    """Print the name and description of every model, task or table.

    Below each task of `list tasks` stand its shapes, sizes and the trivial predictor's score, as the built task tells
    them, and where its data is.

    One that cannot be built says why, and the exit code is that of its error.

    Raises:
        ConfigError: a word other than the three.
    """
    parser = Parser(__doc__)
    parser.add_argument(
        "--counts",
        action="store_true",
        help="parameters, state and multiply-adds of every model, on copying or flat MNIST",
    )
    parser.add_folders()
    given = parser.read(arguments)
    words, catalogue, code = given.words, given.catalogue, 0
    refuse_unknown(words, KINDS, "list ", " is not known")
    composer = catalogue.composer() if given.counts else None
    if composer is not None:
        import_torch()
    for kind in words or list(KINDS):
        names = [name for name in catalogue.options(KINDS[kind]) if name != "none"]
        width = max(map(len, names), default=0)
        if not words and names:
            say(f"{kind}:")
        for name in names:
            try:
                counts = _counts(name, composer) if kind == "models" and composer is not None else ""
                told = [f"{counts}{catalogue.about(KINDS[kind], name)[0].description}"]
                told += [f"  {line}" for line in (details(name, catalogue) if kind == "tasks" and words else [])]
            except OrthobenchError as error:
                complain(f"orthobench: {name}: {error}")
                told, code = ["cannot be built"], error.exit_code
            for first, line in zip([name, *[""] * len(told)], told, strict=False):
                say(f"  {first:{width}}  {line}".rstrip())
    return code


def details(name: str, catalogue: Catalogue = SHIPPED) -> list[str]:
    """Sentences of the built task about itself, and the place of its data if it reads any."""
    task = _built(name, catalogue)
    if task.data_set is None:
        return [task.describe()]
    folder = Path(variable("ORTHOBENCH_DATA") or "data") / task.data_set
    there = f"data in {folder}" if folder.is_dir() else f"no data: orthobench prepare {task.data_set}"
    return [task.describe(), there]


def _built(name: str, catalogue: Catalogue) -> "Task":
    """A task with the settings of its file and the defaults of its constructor, without any data."""
    from orthobench.common.registry import find
    from orthobench.common.schema import fields

    cls: Any = find("task", name, "task")
    defaults = {key: field.default for key, field in fields(cls).items() if not field.required}
    values = defaults | catalogue.about("task", name)[1] | {"data_root": str(NO_DATA)}
    return cls(**cls.resolve(values, NO_DATA))


def _counts(model: str, composer: "Composer") -> str:
    """Parameters, state and work of a step on copying, or of an example of flat MNIST for a feed-forward model."""
    from orthobench.models.build import fit_to_budget
    from orthobench.run.built import Built

    feeds_forward = composer.files.about("model", model)[1].get("network") == "feed_forward"
    words = [f"model={model}", "task=mnist_flat" if feeds_forward else "task=copying"]
    built = Built(fit_to_budget(composer.settings(words)))
    counts = built.parameters | built.budget
    n = built.settings.model["hidden_size"]
    return (
        f"n={n:<5} {counts['total']:>8,} parameters, {counts['recurrent']:>8,} recurrent, "
        f"{counts['state_bytes']:>6,} bytes of state, {counts['multiply_adds']:>8,} multiply-adds   "
    )
