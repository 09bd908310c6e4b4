"""The verbs of the command line, one per file; `main(arguments)` returns the exit code."""

VERBS = {
    "list": "the models, tasks and tables that can be run",
    "show": "what a run would be: configuration, parameters, baseline, engine, folder",
    "plan": "what a sweep would cost: runs done, missing and failed, time and memory",
    "prepare": "download, verify and unpack a data set",
    "reproduce": "run published tables, record and render them",
    "rerun": "make a recorded run again, and say how its numbers differ from the record",
    "collect": "bring finished runs made elsewhere here, after checking them",
    "eval": "a finished run's weights at other lengths or on other data",
    "inspect": "the dynamics of a trained cell: eigenvalues, Lyapunov exponent, norms, gradients",
    "export": "a finished run's network as a file for other programs: ONNX, torch.export, weights",
    "generate": "text from a finished run on a language model's task",
    "tables": "write results/tables from what is recorded",
    "compare": "published numbers beside ours, or the settings of your own runs, in the terminal",
    "best": "the command that runs the best settings of your own runs longer",
    "tune": "the best settings of a model on a task by validation, found by Optuna",
    "plot": "figures from what is recorded, or of your own runs",
    "submit": "finished runs as a sealed pack for others, or a check of such packs",
    "site": "pages of everything that is recorded, to open from a folder without a network",
    "cite": "the BibTeX entry of a model's paper",
    "doctor": "what this machine has and lacks",
    "check": "whether a cell of your own passes the checks that those here pass",
    "bench": "how fast engines, cells, parametrizations and training are on this machine",
}
RENAMED = {"report": "site"}
GROUPS = {
    "run": ("show", "plan", "tune", "reproduce", "rerun", "prepare"),
    "look": ("list", "compare", "best", "plot", "eval", "inspect", "doctor", "bench"),
    "publish": ("tables", "site", "cite", "submit", "collect"),
    "own": ("check", "export", "generate"),
}
EXAMPLES = {
    "list": "orthobench list models --counts",
    "show": "orthobench show model=lstm task=adding",
    "plan": "orthobench plan model=scornn,lstm task=adding T=200 seed=1,2,3",
    "prepare": "orthobench prepare mnist",
    "reproduce": "orthobench reproduce scornn/figure1 cell=lstm_1000 --preset smoke",
    "rerun": "orthobench rerun sgornn/table2 lstm seed=3",
    "collect": "orthobench collect runs-of-june.tar.gz",
    "eval": "orthobench eval runs/adding-scornn-54975264bb T=400,800",
    "inspect": "orthobench inspect runs/adding-scornn-54975264bb",
    "export": "orthobench export runs/adding-scornn-54975264bb --format torch",
    "generate": 'orthobench generate runs/ptb_char-lstm-* --prompt "the cat" --tokens 200',
    "tables": "orthobench tables scornn",
    "compare": "orthobench compare runs/",
    "best": "orthobench best runs/ --by model",
    "tune": "orthobench tune model=scornn task=adding 'optimizer.lr=log(1e-4,1e-1)' --trials 20",
    "plot": "orthobench plot runs/",
    "submit": "orthobench submit runs/adding-scornn-54975264bb --to packs",
    "site": "orthobench site",
    "cite": "orthobench cite scornn sgornn/table1",
    "doctor": "orthobench doctor",
    "check": "orthobench check model=gru",
    "bench": "orthobench bench --quick",
}
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
        "\n".join((f"\n{group}:", *(f"  {verb:11}{VERBS[verb]}" for verb in verbs))) for group, verbs in GROUPS.items()
    )
    return INTRODUCTION + "\n".join(groups) + f"\n{RUNS}\northobench VERB --help has an example and every option.\n"
