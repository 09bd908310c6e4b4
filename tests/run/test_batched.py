"""An evaluation computes several batches at once, as memory allows, and each is measured by itself."""

from typing import Any

import pytest
import torch
from torch import Tensor

from orthobench.models.build import build_model, build_optimizer, build_schedule, build_task
from orthobench.run import memory
from orthobench.run.learner import Learner
from orthobench.study.catalogue import Catalogue
from orthobench.tasks.duration import duration

WORDS = ("recipe=none", "model.hidden_size=8", "task.val_size=50", "task.eval_batch_size=10", "trainer.max_steps=1")


def evaluated(monkeypatch: pytest.MonkeyPatch, at_once: int, *words: str) -> tuple[dict[str, float], list[int]]:
    """The metrics of the validation split, and how many sequences each call of the network had."""
    monkeypatch.setattr(memory, "AT_ONCE", at_once)
    settings = Catalogue().settings([*WORDS, *words])
    task = build_task(settings)
    model = build_model(settings, task).double().eval()
    sizes: list[int] = []
    model.register_forward_pre_hook(lambda module, given: sizes.append(len(given[0])))
    given = duration(settings.trainer, task.batches("train"))
    learner = Learner(model, task, build_optimizer(settings, model), build_schedule(settings), given)
    learner.on_validation_epoch_start()
    with torch.inference_mode():
        for index in range(task.batches("val")):
            batch: Any = tuple(map(_double, task.batch("val", 0, index)))
            learner.validation_step(batch, index)
        learner.on_validation_epoch_end()
    return learner.results, sizes


def _double(part: Tensor) -> Tensor:
    return part.double() if part.is_floating_point() else part


@pytest.mark.parametrize("task", ["task=copying T=20", "task=adding T=20", "task=parity", "task=denoise T=30"])
def test_the_numbers_are_those_of_the_batches(task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("model=scornn", *task.split())
    alone, each = evaluated(monkeypatch, 1, *words)
    together, all_ = evaluated(monkeypatch, memory.GIB, *words)
    assert together == pytest.approx(alone, rel=1e-12)
    assert set(each) == {10}
    assert sum(all_) == sum(each) == 50
    assert len(all_) < len(each)


def test_as_many_as_memory_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("model=scornn", "task=copying", "T=20")
    settings = Catalogue().settings([*WORDS, *words])
    task = build_task(settings)
    model, x = build_model(settings, task), task.batch("val", 0, 0)[0]
    monkeypatch.setattr(memory, "AT_ONCE", memory.GIB // 4)
    each = memory.AT_ONCE / memory.rows_at_once(model, task, x)
    _, sizes = evaluated(monkeypatch, int(25 * each), *words)
    assert sizes == [20, 20, 10]
    longer = Catalogue().settings([*WORDS, "model=scornn", "task=copying", "T=80"])
    x = build_task(longer).batch("val", 0, 0)[0]
    assert memory.rows_at_once(model, task, x) < 25 / 2
