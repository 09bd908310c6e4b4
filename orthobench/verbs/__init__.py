"""The verbs of the command line, one per file; `main(arguments)` returns the exit code."""

from typing import NamedTuple


class VerbHelp(NamedTuple):
    """Verb of the command line: what it does, in a line, and an example."""

    does: str
    example: str


GROUPS = {
    "run": {
        "show": VerbHelp(
            "print what a run would be: configuration, parameters, baseline, engine, folder",
            "orthobench show model=lstm task=adding",
        ),
        "plan": VerbHelp(
            "print what a sweep would cost: runs done, missing and failed, time and memory",
            "orthobench plan model=scornn,lstm task=adding T=200 seed=1,2,3",
        ),
        "tune": VerbHelp(
            "search for the best settings of a model on a task by validation, with Optuna",
            "orthobench tune model=scornn task=adding 'optimizer.lr=log(1e-4,1e-1)' --trials 20",
        ),
        "reproduce": VerbHelp(
            "run published tables, record and render them",
            "orthobench reproduce scornn/figure1 cell=lstm_1000 --preset smoke",
        ),
        "rerun": VerbHelp(
            "repeat a recorded run, and report how its numbers differ from the record",
            "orthobench rerun sgornn/table2 lstm seed=3",
        ),
        "prepare": VerbHelp(
            "download, verify and unpack a data set; a run downloads nothing",
            "orthobench prepare mnist",
        ),
    },
    "look": {
        "list": VerbHelp(
            "list models, tasks and tables",
            "orthobench list models --counts",
        ),
        "compare": VerbHelp(
            "print published numbers beside ours, or compare the settings of your own runs",
            "orthobench compare runs/",
        ),
        "best": VerbHelp(
            "print the command that trains the best settings of your runs longer",
            "orthobench best runs/ --by model",
        ),
        "plot": VerbHelp(
            "draw figures of recorded tables, or of your own runs",
            "orthobench plot runs/",
        ),
        "eval": VerbHelp(
            "test a finished run's weights at other lengths or on other data",
            "orthobench eval runs/adding-scornn-54975264bb T=400,800",
        ),
        "inspect": VerbHelp(
            "measure the dynamics of a trained cell: eigenvalues, Lyapunov exponent, norms, gradients",
            "orthobench inspect runs/adding-scornn-54975264bb",
        ),
        "doctor": VerbHelp(
            "report what this machine has and lacks",
            "orthobench doctor",
        ),
        "bench": VerbHelp(
            "measure how fast engines, cells, parametrizations and training are on this machine",
            "orthobench bench --quick",
        ),
    },
    "publish": {
        "tables": VerbHelp(
            "write the tables of recorded results to results/tables",
            "orthobench tables scornn",
        ),
        "site": VerbHelp(
            "write a site of all recorded results, which opens without a network",
            "orthobench site",
        ),
        "cite": VerbHelp(
            "print the BibTeX entries of models, papers or tables",
            "orthobench cite scornn sgornn/table1",
        ),
        "submit": VerbHelp(
            "pack finished runs for others, sealed by checksums, or check such packs",
            "orthobench submit runs/adding-scornn-54975264bb --to packs",
        ),
        "collect": VerbHelp(
            "check finished runs made elsewhere, and copy them here",
            "orthobench collect runs-of-june.tar.gz",
        ),
    },
    "own": {
        "check": VerbHelp(
            "test a cell or a task of your own as those of this package are tested",
            "orthobench check model=gru",
        ),
        "export": VerbHelp(
            "write a finished run's network as a file for other programs",
            "orthobench export runs/adding-scornn-54975264bb --format torch",
        ),
        "generate": VerbHelp(
            "write text with a finished run of a language model",
            'orthobench generate runs/ptb_char-lstm-* --prompt "the cat" --tokens 200',
        ),
    },
}
VERBS = {name: verb for verbs in GROUPS.values() for name, verb in verbs.items()}
RENAMED = {"report": "site"}
INTRODUCTION = """\
orthobench measures how well recurrent neural networks remember, and what that costs.

usage: orthobench KEY=VALUE ...         train, validate and test one network, and record it
       orthobench -m KEY=A,B ...        the same for each combination of values: a sweep
       orthobench VERB ...              see below
"""
RUNS = """
examples:
  orthobench model=scornn task=copying T=200 trainer.max_steps=2000
  orthobench -m model=scornn,gru,lstm task=adding T=50 seed=1,2,3
  orthobench show model=lstm task=adding
"""


def short_help() -> str:
    """Text for a call without arguments: the verbs of each group in a line."""
    groups = "".join(f"\n{group:10}{', '.join(verbs)}" for group, verbs in GROUPS.items())
    end = "\northobench --help has a line for each verb, and every setting; orthobench VERB --help has an example."
    return f"{INTRODUCTION}{groups}\n{RUNS}{end}"


def full_help() -> str:
    """First part of `--help`, before the settings: a line for each verb, in its group."""
    groups = (
        "\n".join((f"\n{group}:", *(f"  {name:11}{verb.does}" for name, verb in verbs.items())))
        for group, verbs in GROUPS.items()
    )
    return INTRODUCTION + "\n".join(groups) + f"\n{RUNS}\northobench VERB --help has an example and every option.\n"
