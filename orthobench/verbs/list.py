"""`orthobench list [models|tasks|tables] [--counts]`: what there is."""

from orthobench.config import conf_dir, options
from orthobench.errors import ConfigError
from orthobench.schema import did_you_mean
from orthobench.terminal import say

KINDS = {"models": "model", "tasks": "task", "tables": "experiment"}


def description(group: str, name: str) -> str:
    """The first line of a configuration file, which says what it is."""
    text = (conf_dir() / group / f"{name}.yaml").read_text(encoding="utf-8")
    lines = [
        line.lstrip("# ").rstrip() for line in text.splitlines() if line.startswith("#") and "@package" not in line
    ]
    return lines[0].rstrip(".") if lines else ""


def main(arguments: list[str]) -> int:
    """Print one line per model, task or table.

    Raises:
        ConfigError: another word than the three.
    """
    words = [word for word in arguments if word != "--counts"]
    for word in words:
        if word not in KINDS:
            raise ConfigError(f"list {word} is not known: {did_you_mean(word, KINDS)}")
    for kind in words or list(KINDS):
        names = [name for name in options(KINDS[kind]) if name != "none"]
        width = max(map(len, names), default=0)
        if not words and names:
            say(f"{kind}:")
        for name in names:
            counts = _counts(name) if kind == "models" and "--counts" in arguments else ""
            say(f"  {name:{width}}  {counts}{description(KINDS[kind], name)}")
    return 0


def _counts(model: str) -> str:
    from orthobench.app import experiment

    exp = experiment([f"model={model}", "task=copying"])
    counts = exp.parameters
    n = exp.settings.model["hidden_size"]
    return f"n={n:<5} {counts['total']:>8,} parameters, {counts['recurrent']:>8,} recurrent   "
