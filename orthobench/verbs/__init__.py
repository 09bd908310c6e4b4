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
