"""Finished runs that nobody trained: folders with the settings of the command line and made-up scores."""

from pathlib import Path
from typing import Any

from orthobench.recording.digest import write_sealed
from orthobench.recording.record import code
from orthobench.study.catalogue import SHIPPED


def run(root: Path, *words: str, val: float | None = 0.5, test: float | None = None, **changes: Any) -> Path:
    """The folder of a run.

    Args:
        root: where its folder is made.
        *words: its overrides.
        val: the headline score in validation; None for a run that diverged before its first one.
        test: the same of the test; that of the validation by default.
        **changes: further keys of record.json, or other values of them.
    """
    checked = SHIPPED.settings([*words, f"runs_root={root}"])
    metric = checked.task_made.metric if checked.task_made else "loss"
    best = {} if val is None else {f"val/{metric}": val, f"test/{metric}": val if test is None else test}
    record = {
        "schema": 2, "status": "done", "reason": None, "run_id": checked.run_id, "identity": checked.digest,
        "model": checked.model["name"], "task": checked.task["name"], "T": checked.task.get("T"),
        "seed": checked.run["seed"], "steps": 10, "epochs": 0, "parameters": {"total": 100, "recurrent": 50},
        "baseline": {metric: 0.25}, "metrics": {"best_val": best or None, "last": best or None, "best_test": None},
        "orthogonality": {"max": None, "last": None, "lost": None}, "config": checked.as_dict(), "sources": None,
        "code": code() | {"dirty": False}, "env": {}, "hardware": {}, "time": {},
        "curve": {f"val/{metric}": [[5, 0.9], [10, val]]},
    }  # fmt: skip
    write_sealed(checked.folder / "record.json", record | changes)
    return checked.folder
