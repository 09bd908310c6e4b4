"""A network that is read out at the steps that count alone gives the loss, gradients and metrics of all steps."""

import pytest
import torch

from orthobench.models.build import build_model, build_task
from orthobench.run.learner import Learner
from orthobench.run.training_step import TrainingStep, counted
from orthobench.study.catalogue import Catalogue

ASKED = ("task=cued_recall", "task=mqar", "task=noisy_recall", "task=selective_copying", "task=parity task.labels=last",
         "task=cycle task.labels=last")  # fmt: skip


@pytest.mark.parametrize("more", ["", "model.network=block", "checkpoint=20"])
@pytest.mark.parametrize("task", ASKED)
def test_counted_steps(task: str, more: str, monkeypatch: pytest.MonkeyPatch) -> None:
    words = f"model=gru recipe=none model.hidden_size=6 {task} task.batch_size=4 {more}".split()
    settings = Catalogue().settings(words)
    made = build_task(settings)
    model = build_model(settings, made).double()
    batch = made.batch("train", 0, 0)
    x, _, mask, steps = counted(model, made, batch)
    assert x.shape[1] > steps.shape[1] == made.counted
    assert mask.sum() == batch[2].sum()
    step, found = TrainingStep(model, made), []
    for spared in (2, 1000):
        monkeypatch.setattr("orthobench.run.training_step.SPARED", spared)
        loss, _ = step(batch, None)
        learner = Learner.__new__(Learner)
        torch.nn.Module.__init__(learner)
        learner.model, learner.task = model, made
        found.append(
            [loss, *torch.autograd.grad(loss, list(model.parameters())), *learner.measured("val", batch, 0).values()]
        )
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "words",
    ["task=cued_copying", "task=noisy_recall task.loss=all", "task=parity task.labels=every", "task=adding T=20"],
)
def test_a_loss_over_all_steps_computes_all(words: str) -> None:
    settings = Catalogue().settings(["model=gru", *words.split()])
    made = build_task(settings)
    batch = made.batch("train", 0, 0)
    assert counted(build_model(settings, made), made, batch) is batch
