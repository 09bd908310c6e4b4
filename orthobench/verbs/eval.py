"""`orthobench eval RUN... [T=400,800] [task.KEY=VALUE...]`: weights of finished runs at other lengths or data."""

from typing import TYPE_CHECKING, Any

from orthobench.common.terminal import columns, say
from orthobench.errors import ConfigError
from orthobench.verbs.arguments import RunParser, load_run

if TYPE_CHECKING:
    from orthobench.run.load import Finished

NO_SETTINGS = (
    "run",
    "lengths",
    "data_root",
    "content",
    "T",
    "where",
    "root",
)  # what `evaluate` takes beside settings of the task


def main(arguments: list[str]) -> int:
    """Score each run, write `evaluations/` in its folder, and print a table.

    Raises:
        ConfigError: no run of that name, one that is not done, or a word that does not apply.
    """
    from orthobench.config.recorded import task_overrides

    parser = RunParser(__doc__, "orthobench eval runs/NAME T=400,800", settings=True, several=True)
    given = parser.read(arguments)
    task, lengths = task_overrides(given.settings)
    if wrong := [f"task.{name}={task[name]}" for name in NO_SETTINGS if name in task]:
        use = "use T=400,800 for the lengths, and data_root= for where data are"
        raise ConfigError(f"{wrong[0]} is no setting of a task: {use}.")

    for name in given.names:
        run = load_run(given, name)
        say(f"{run.run_id}: the {run.which} weights, of step {run.step:,}")
        _score(run, lengths, given.places.get("data_root"), task)
    return 0


def _score(run: "Finished", lengths: list[int] | None, data_root: str | None, task: dict[str, Any]) -> None:
    """Score one run, and print its table."""
    from orthobench.run.evaluate import evaluate

    made = evaluate(run, lengths, data_root, **task)
    columns(*table(made))
    for sentence in remarks(made, run):
        say(sentence)
    files = str(run.folder / "evaluations")
    known = sum(one["found"] for one in made)
    say(f"{files}: {known} of {len(made)} evaluated before" if known else files)


def remarks(made: list[dict[str, Any]], run: "Finished") -> list[str]:
    """A sentence on each file that is not the run's own: whether it is tested whole, and what of it is not unseen."""
    found = []
    for one in made:
        if "seen" not in one:
            continue
        name = next((str(one["task"][key]) for key in ("path", "dataset") if key in one["task"]), "the data")
        much = "all of it is the test, as it names no test part" if one["whole"] else "its test part is scored"
        seen, rows = one["seen"] or {}, run.task.rows_are
        if not seen:
            found.append(f"{name}: {much}; what of it the run was trained on cannot be told")
            continue
        known = f"{seen['train']:,} of {seen['of']:,} {rows} are in the training part of {run.run_id}"
        known += f", and {seen['val']:,} in its validation part" if seen["val"] else ""
        found.append(f"{name}: {much}; {known}{': the score is not of unseen data' if seen['train'] else ''}")
    return list(dict.fromkeys(found))


def table(made: list[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """The header, and a row per evaluation: its length, every metric with the baseline in brackets, how many."""
    names = list(dict.fromkeys(name for one in made for name in one["metrics"]))
    rows = []
    for one in made:
        cells = []
        for name in names:
            score, baseline = one["metrics"].get(name), one["baseline"].get(name.removeprefix("test/"))
            beside = "" if baseline is None else f" ({baseline:.4g})"
            cells.append("null" if score is None else f"{score:.4g}{beside}")
        count = "unknown" if one["examples"] is None else f"{one['examples']:,}"
        rows.append([_length(one["length"]), *cells, count])
    return ["length", *(f"{name} (baseline)" for name in names), made[0]["unit"]], rows


def _length(length: int | list[int] | None) -> str:
    if isinstance(length, list):
        return "..".join(f"{end:,}" for end in dict.fromkeys(length))
    return "varies" if length is None else f"{length:,}"
