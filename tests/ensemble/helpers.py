"""What the tests of ensembles share: three small members, what a run leaves, and a first batch of each."""

import json
from pathlib import Path
from typing import Any

import torch

from orthobench.ensemble.member import MemberLearner
from orthobench.ensemble.stacked import STACKED, Stacked
from orthobench.models.build import build_optimizer
from orthobench.models.schedules import Constant
from orthobench.recording.checkpoint import SafeCheckpointIO
from orthobench.run.run import Run
from orthobench.study.catalogue import SHIPPED

TINY = (
    "recipe=none", "T=6", "model.hidden_size=6", "trainer.max_steps=6", "trainer.val_check_interval=4",
    "trainer.log_every_n_steps=2", "trainer.gradient_clip_val=0.5", "task.val_size=8", "task.test_size=8",
    "task.batch_size=4",
)  # fmt: skip
RATES = {1: "1e-3", 2: "1e-3", 3: "1e-2"}
FLOAT64: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-11}


def members(root: Path, *words: str) -> list[Run]:
    """Three members: two seeds, and a third with a learning rate of its own."""
    common = (*TINY, f"runs_root={root}", *words)
    return [Run.fitted(SHIPPED.settings((*common, f"seed={seed}", f"optimizer.lr={lr}"))) for seed, lr in RATES.items()]


def checkpoint(exp: Run) -> dict[str, Any]:
    return SafeCheckpointIO().load_checkpoint(exp.settings.folder / "checkpoints" / "last.ckpt")


def record(exp: Run) -> dict[str, Any]:
    return json.loads((exp.settings.folder / "record.json").read_text())


def curve(exp: Run) -> list[str]:
    return [row for row in (exp.settings.folder / "metrics.csv").read_text().splitlines() if "steps_per_s" not in row]


def numbers(exp: Run) -> dict[str, Any]:
    """What a run leaves that must be the same however it was computed."""
    state, found = checkpoint(exp), record(exp)
    kept = ("status", "metrics", "best_step", "orthogonality", "crossed", "steps", "diverged")
    return {
        "weights": {name: value.tolist() for name, value in state["state_dict"].items()},
        "optimizer": repr(state["optimizer_states"]),
        "loops": repr(state["loops"]),
        "random": [part.tolist() for part in state["callbacks"]["Saver"]["random"]],
        "record": {name: found[name] for name in kept},
        "rows": curve(exp),
    }


def requests(words: tuple[str, ...], common: tuple[str, ...] = (*TINY, "engine=reference")) -> list[Any]:
    """A first batch for each of three learners in float64."""
    found = []
    for seed in RATES:
        exp = Run.fitted(SHIPPED.settings((*common, *words, f"seed={seed}")))
        optimizer = build_optimizer(exp.settings, exp.model)
        learner = MemberLearner(exp.model.double(), exp.task, optimizer, Constant(), exp.duration)
        flat = torch.rand(4, exp.task.input_size), torch.randint(exp.task.output_size, (4,))
        batch = exp.task.batch("train", 0, 0) if exp.task.sequential else flat
        found.append((learner, tuple(part.double() if part.is_floating_point() else part for part in batch)))
    return found


def check_stacked(asked: list[Any]) -> None:
    together = Stacked(asked[0][0].model, STACKED)
    stacked, single = together.train(asked), [Stacked(r[0].model, STACKED).train([r])[0] for r in asked]
    assert together.forms[0] == "stacked"
    for (loss, gradients), (expected, wanted) in zip(stacked, single, strict=True):
        torch.testing.assert_close(loss, expected, **FLOAT64)
        assert len(gradients) == len(list(asked[0][0].model.parameters()))
        for g, one in zip(gradients, wanted, strict=True):
            torch.testing.assert_close(g, one, **FLOAT64)
    with torch.inference_mode():
        found = together.measure(asked)
        expected = [r[0].task.measure(r[0].model(r[1][0])[0], *r[1][1:]) for r in asked]
    for values, wanted in zip(found, expected, strict=True):
        torch.testing.assert_close(values, wanted, **FLOAT64)
