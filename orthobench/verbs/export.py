"""`orthobench export RUN [--format torch|onnx|pt2] [--last]`: a finished run's network as a file for other programs."""

from orthobench.config.words import key, value
from orthobench.errors import ConfigError
from orthobench.terminal import say
from orthobench.verbs.arguments import Parser

PLACES = ("runs_root", "data_root")


def main(arguments: list[str]) -> int:
    """Write the file, check it against the model at two lengths, and say where it is.

    Raises:
        ConfigError: no run of that name, one that is not done, or a package that is not installed.
    """
    parser = Parser(__doc__)
    words = "torch: the weights, for torch.load; pt2: torch.export; onnx: ONNX of opset 18"
    parser.add_argument("--format", choices=("torch", "onnx", "pt2"), default="torch", help=words)
    parser.add_argument("--last", action="store_true", help="the last weights, not the best by validation")
    given = parser.read(arguments)
    wrong = [word for word in given.overrides if key(word) not in PLACES]
    if len(given.names) != 1 or wrong:
        raise ConfigError("export needs one run, its folder or its name: `orthobench export runs/NAME --format onnx`.")
    from orthobench.run.export import export
    from orthobench.run.load import load

    run = load(given.names[0], "last" if given.last else "best", **{key(w): value(w) for w in given.overrides})
    path, difference = export(run, given.format)
    checked = "" if difference is None else f", within {difference:.1e} of the model at two lengths"
    say(f"{path}: the {run.which} weights, of step {run.step:,}{checked}")
    return 0
