"""`orthobench export RUN [--format torch|onnx|pt2|safetensors] [--step] [--last]`: a run for other programs."""

from orthobench.common.terminal import say
from orthobench.verbs.arguments import RunParser, load_run


def main(arguments: list[str]) -> int:
    """Write the file, check it against the model at two lengths, and say where it is.

    Raises:
        ConfigError: no run of that name, one that is not done, or a package that is not installed.
    """
    parser = RunParser(__doc__, "orthobench export runs/NAME --format onnx")
    words = (
        "torch: the weights, for torch.load; pt2: torch.export; onnx: ONNX of opset 18; "
        "safetensors: a folder with a model card, for orthobench.load"
    )
    parser.add_argument("--format", choices=("torch", "onnx", "pt2", "safetensors"), default="torch", help=words)
    words = "with onnx: one step, from its input and the states before it to its output and the states after it"
    parser.add_argument("--step", action="store_true", help=words)
    given = parser.read(arguments)
    run = load_run(given)
    from orthobench.run.export import export

    path, difference = export(run, given.format, given.step)
    checked = "" if difference is None else f", within {difference:.1e} of the model at two lengths"
    say(f"{path}: the {run.which} weights, of step {run.step:,}{checked}")
    if run.codes:
        say(f"what its inputs and outputs stand for is in it, under codes: {', '.join(run.codes)}")
    return 0
