"""Answers of a trained model on the test split: the confusion of classes, and the sequences that it does worst."""

import heapq
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from orthobench.errors import ConfigError
from orthobench.run.load import Finished
from orthobench.tasks.base import Task
from orthobench.tasks.cross_entropy import cross_entropy

MOST = 2_000  # sequences of the test split that are looked at
WORST = 4


@dataclass(frozen=True)
class Answered:
    """Sequence with the model's answer.

    Attributes:
        number: its place in the test split, counted from 0.
        loss: cross-entropy in nats, or squared error, the mean over what is asked.
        x: the input (T, I), tokens (T,), or a vector (I,).
        target: classes or values, (T, ...) where every step is asked, else (...).
        answer: the same of the model.
        asked: which steps are asked (T,); None for all.
    """

    number: int
    loss: float
    x: Tensor
    target: Tensor
    answer: Tensor
    asked: Tensor | None = None


@dataclass
class Predictions:
    """Answers on the test split.

    Attributes:
        classes: names of the classes; empty for values.
        every_step: whether every step is answered, or the last one alone.
        confusion: counts (C, C), a row per target and a column per answer; None for values.
        worst: the sequences with the greatest loss, the worst one first.
        pairs: target and answer of values, as they come; empty for classes.
        count: sequences that were looked at.
    """

    classes: tuple[str, ...]
    every_step: bool
    confusion: Tensor | None = None
    worst: list[Answered] = field(default_factory=list)
    pairs: list[tuple[float, float]] = field(default_factory=list)
    count: int = 0


def predictions(run: Finished) -> Predictions:
    """Answers of a run's model on the first sequences of the test split, with the weights best by validation.

    Raises:
        ConfigError: the data have changed since, or the task's answers are neither classes nor values.
        DataError: the data are missing or damaged.
    """
    run.refuse_changed_data()
    task = run.task
    task.check()
    model: Any = run.model
    found, state, heap = _empty(run, task), None, list[tuple[float, int, Answered]]()
    with torch.no_grad():
        for index in range(task.batches("test")):
            x, target, *mask = task.batch("test", 0, index)
            y, state = model(x, state if task.carries_state else None)
            asked = mask[0].bool() if mask else None
            answer, losses = _answers(run.run_id, found, y, target)
            _count(found, target, answer, asked)
            for place, loss in enumerate(_means(losses, asked)):
                mine = None if asked is None else asked[place]
                one = Answered(found.count, loss, x[place], target[place], answer[place], mine)
                heapq.heappush(heap, (loss, -found.count, one))
                found.count += 1
                if len(heap) > WORST:
                    heapq.heappop(heap)
            if found.count >= MOST:
                break
    found.worst = [one for _, _, one in sorted(heap, key=lambda entry: entry[:2], reverse=True)]
    return found


def _empty(run: Finished, task: Task) -> Predictions:
    """Predictions of none, with the names of the classes."""
    if task.objective != "classify":
        return Predictions((), task.readout == "all")
    count = max(task.output_size, 2)
    codes = task.codes()
    known = codes.get("classes") or codes.get("vocabulary") or ()
    names = tuple(map(str, known)) if len(known) == count else tuple(map(str, range(count)))
    return Predictions(names, task.readout == "all", torch.zeros(count, count, dtype=torch.long))


def _answers(run_id: str, found: Predictions, y: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """The answers in the shape of the targets, and the loss of each."""
    if found.classes and y.shape[:-1] == target.shape:
        if y.shape[-1] == 1:  # one number for two classes
            logits = y.squeeze(-1)
            losses = F.binary_cross_entropy_with_logits(logits, target.to(y.dtype), reduction="none")
            return (logits > 0).long(), losses
        return y.argmax(-1), cross_entropy(y, target.long(), "none")
    if not found.classes and y.shape == target.shape:
        return y, (y - target).square()
    raise ConfigError(
        f"{run_id}: its answers {tuple(y.shape)} to targets {tuple(target.shape)} are not drawn: "
        "they must have the same shape, or one dimension more, that of the classes."
    )


def _means(losses: Tensor, asked: Tensor | None) -> list[float]:
    """The mean loss of each sequence over what is asked of it."""
    if asked is None:
        return losses.flatten(1).mean(1).tolist() if losses.dim() > 1 else losses.tolist()
    while asked.dim() < losses.dim():
        asked = asked.unsqueeze(-1)
    asked = asked.expand_as(losses)
    total = torch.where(asked, losses, torch.zeros_like(losses)).flatten(1).sum(1)
    return (total / asked.flatten(1).sum(1).clamp(min=1)).tolist()


def _count(found: Predictions, target: Tensor, answer: Tensor, asked: Tensor | None) -> None:
    """Add a batch to the confusion of classes, or to the pairs of values."""
    if asked is not None and asked.shape == target.shape[: asked.dim()]:
        target, answer = target[asked], answer[asked]
    if found.confusion is not None:
        C = len(found.confusion)
        places = target.flatten().long() * C + answer.flatten()
        found.confusion += torch.bincount(places, minlength=C * C).view(C, C)
    elif len(found.pairs) < MOST:
        pairs = zip(target.flatten().tolist(), answer.flatten().tolist(), strict=True)
        found.pairs += list(pairs)[: MOST - len(found.pairs)]
