"""`orthobench list [models|tasks|tables] [--counts]`: what there is; `list tasks` with shapes, sizes and baselines."""

import os
from pathlib import Path

from orthobench.config.files import conf_dir, options
from orthobench.errors import ConfigError
from orthobench.schema import did_you_mean
from orthobench.terminal import say
from orthobench.verbs.arguments import Parser

KINDS = {"models": "model", "tasks": "task", "tables": "experiment"}


def description(group: str, name: str) -> str:
    """The first line of a configuration file, which says what it is."""
    text = (conf_dir() / group / f"{name}.yaml").read_text(encoding="utf-8")
    lines = [
        line.lstrip("# ").rstrip() for line in text.splitlines() if line.startswith("#") and "@package" not in line
    ]
    return lines[0].rstrip(".") if lines else ""


def details(task: str, data_root: str) -> list[str]:
    """The lines below a task: shapes, sizes and baseline, and where its data is."""
    lines = (conf_dir() / "task" / f"{task}.yaml").read_text(encoding="utf-8").splitlines()
    found = [line.lstrip("# ") for line in lines[1:3] if line.startswith("# ")]
    if len(found) == 2:
        folder = found[1].removeprefix("Data: ")
        there = (Path(data_root) / folder).is_dir()
        found[1] = f"data in {Path(data_root) / folder}" if there else f"no data: orthobench prepare {folder}"
    return found


def main(arguments: list[str]) -> int:
    """Print one line per model, task or table.

    Raises:
        ConfigError: another word than the three.
    """
    parser = Parser(__doc__)
    parser.add_argument("--counts", action="store_true", help="parameters of every model, on copying or flat MNIST")
    given = parser.read(arguments)
    words = given.words
    for word in words:
        if word not in KINDS:
            raise ConfigError(f"list {word} is not known: {did_you_mean(word, KINDS)}")
    root = os.environ.get("ORTHOBENCH_DATA", "data")
    for kind in words or list(KINDS):
        names = [name for name in options(KINDS[kind]) if name != "none"]
        width = max(map(len, names), default=0)
        if not words and names:
            say(f"{kind}:")
        for name in names:
            counts = _counts(name) if kind == "models" and given.counts else ""
            say(f"  {name:{width}}  {counts}{description(KINDS[kind], name)}")
            for line in details(name, root) if kind == "tasks" and words else []:
                say(f"  {'':{width}}    {line}")
    return 0


def _counts(model: str) -> str:
    """Counts on copying, or on flat MNIST for a feed-forward model."""
    from orthobench.config.compose import compose
    from orthobench.run.run import Run

    network = compose([f"model={model}"]).values["model"].get("network", "recurrent")
    exp = Run.of([f"model={model}", "task=copying" if network == "recurrent" else "task=mnist_flat"])
    counts = exp.parameters
    n = exp.settings.model["hidden_size"]
    return f"n={n:<5} {counts['total']:>8,} parameters, {counts['recurrent']:>8,} recurrent   "
