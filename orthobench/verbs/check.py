"""`orthobench check model=NAME`: the checks that this package's cells pass, a line each; a task of one's own too."""

from orthobench.common.terminal import say
from orthobench.errors import ConfigError
from orthobench.verbs.arguments import Parser

LARGEST = 16  # units of the cell that is checked, because gradients by finite differences are slow


def main(arguments: list[str]) -> int:
    """Print a line per check; exits 0 when none failed, else 1.

    Raises:
        ConfigError: a word that is not known, a network without cells, or a cell or task that breaks the contract.
        DataError: the data of a task of one's own are missing or wrong.
    """
    parser = Parser(__doc__)
    parser.add_folders()
    given = parser.read(arguments)
    if given.names:
        raise ConfigError(
            f"check: {given.names[0]} is no KEY=VALUE: name the model, as in orthobench check model=mine."
        )
    checked = given.catalogue.settings(given.overrides)
    if checked.parts.cell is None:
        raise ConfigError(
            f"model={checked.model['name']} has no cell to check: it is no recurrent network; name a model with a cell."
        )

    import numpy as np

    from orthobench.common.registry import in_module, is_ours
    from orthobench.models.build import cell_settings
    from orthobench.models.make_cell import make_cell
    from orthobench.tasks.contract import tried_task
    from orthobench.testing import outcomes

    task = type(checked.task_made)
    if checked.task_made is not None and not is_ours(task):
        tried_task(checked.task_made)
        say(f"{in_module(task)}, task={checked.task['name']}: it keeps the contract of a task")

    size = checked.model["hidden_size"] if checked.hidden_size else LARGEST
    checked = checked.with_hidden_size(size)
    values = cell_settings(checked, checked.task_made)
    if values.get("T_max", LARGEST) is None:
        values["T_max"] = LARGEST

    def make(input_size: int, hidden_size: int):
        rng = np.random.default_rng(checked.run["seed"])
        return make_cell(values, checked.parts.cell, checked.parts.recurrent, rng, input_size, hidden_size)

    found = outcomes(make, 3, size)
    cls = checked.parts.cell
    say(f"{in_module(cls)}, model={checked.model['name']}, {size} units")
    for one in found:
        say(str(one))
    failed = sum(one.problem is not None for one in found)
    say(f"{failed} of {len(found)} checks failed" if failed else "every check passed")
    return 1 if failed else 0
