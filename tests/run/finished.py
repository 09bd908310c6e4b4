"""Runs of two steps, to be opened again."""

from pathlib import Path
from typing import Any

import orthobench

SMALL = (
    "recipe=none", "logger=none", "model.hidden_size=4", "trainer.max_steps=2", "trainer.val_check_interval=1",
    "task.val_size=20", "task.test_size=30", "task.batch_size=4",
)  # fmt: skip


def finished(root: Path, *words: str) -> tuple[Path, dict[str, Any]]:
    """The folder and the record of a run; its best weights are those of the first step or of the second."""
    exp = orthobench.build(*SMALL, *words, f"runs_root={root}")
    return exp.settings.folder, exp.run()
