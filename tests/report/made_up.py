"""Records that no run made, for tests of what is computed from records."""

from typing import Any

from orthobench.analysis.records import Line


def made_up(cell: str, seed: int, preset: str = "full", **values: Any) -> Line:
    """A line of a finished run; `diverged=True` for one that diverged; `a__b` stands for a/b, `a___b` for a:b."""
    named = {name.replace("___", ":").replace("__", "/"): value for name, value in values.items()}
    status = "diverged" if named.pop("diverged", False) else "done"
    common = {"run_id": f"task-model-{cell}-{seed}-{preset}", "preset": preset, "cell": cell, "seed": seed}
    return Line({**common, "status": status, "model": "model", "task": "task", "steps": 10, **named})
