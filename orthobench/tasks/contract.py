"""The contract of tasks from outside the package: what breaks it is told before a run, in one sentence.

One batch of each split, of an `ArrayTask` all rows, says whether types, shapes and values are right; a task whose
sequences are drawn must draw the same ones for the same seed and others for another.
"""

from contextlib import AbstractContextManager
from math import isfinite
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch
from torch import Tensor

from orthobench.common.registry import in_module, is_ours
from orthobench.errors import ConfigError, DataError, OrthobenchError, in_one_sentence
from orthobench.tasks.arrays import ArrayTask
from orthobench.tasks.base import NEEDED, SPLITS, Batch, Task
from orthobench.tasks.drawn.denoise import Denoise
from orthobench.tasks.drawn.varied import Varied
from orthobench.tasks.metric import Metric
from orthobench.tasks.real.language import Language
from orthobench.tasks.synthetic import Drawn

LOSSES, MEASURES = (Task.loss, Varied.loss, Language.loss), (Task.measure, Varied.measure)  # of labels 0..O-1
NOT_CALLED = (
    "prepare_data", "train_dataloader", "val_dataloader", "test_dataloader", "teardown", "on_before_batch_transfer",
    "transfer_batch_to_device", "on_after_batch_transfer", "state_dict", "load_state_dict", "on_exception",
)  # fmt: skip
CHANCES = 16  # seeds that are tried before two draws count as the same: few bits may agree by chance


def check_task(cls: type[Task], **settings: Any) -> Task:
    """Check a class of tasks with its data, as a run does before it begins; in a test of pytest's or anywhere else.

    Args:
        cls: the class.
        **settings: settings of the task, and `data_root` where it reads data.

    Returns:
        The task, which keeps the contract of `Task`.

    Raises:
        ConfigError: it cannot be made, or breaks the contract.
        DataError: so do the data that it reads, or they cannot be read.
    """
    with _told(in_module(cls), "making it"):
        made = cls(**settings)
    tried_task(made)
    return made


def tried_task(task: Task) -> None:
    """Look at a task of a class from outside the package, and at its data.

    Raises:
        ConfigError: it breaks the contract of `Task`.
        DataError: so do the data that it reads, or they cannot be read.
    """
    where = in_module(type(task))
    task.refuse_incomplete()
    _refuse_loaders(where, type(task))
    with _told(where, "reading its data"):
        task.check()
    with _told(where, "looking up its sizes and its baseline"):
        _check_sizes(where, task)
        _check_baseline(where, task)
    if isinstance(task, Drawn):
        with _told(where, "`generate` for two sequences"):
            _check_arrays(where, task.generate(np.random.default_rng(0), 2))
    for split in SPLITS:
        with _told(where, f"making a batch of {split}"):
            if task.batches(split) < 1:
                raise ConfigError(f"{where}: `batches` says {task.batches(split)} for {split}, and one is needed.")
            batch = task.batch(split, 0, 0)
            _check_batch(f"{where}, {split}", task, batch)
            stored = task._data if isinstance(task, ArrayTask) and _shows_rows(type(task)) else None
            if stored is not None:
                _check_batch(f"{where}, {split}", task, stored[split])
        with _told(where, f"`loss` and `measure` of a batch of {split}"):
            _check_scores(where, task, batch)
    if isinstance(task, Drawn):
        with _told(where, "drawing batches of several seeds"):
            _check_draws(where, task)
        if isinstance(task._given.get("T"), int):
            _check_length(where, task, task._given["T"])


def unnamed(task: Task) -> list[str]:
    """A sentence where a task from outside the package has data in no file that is known; else none."""
    if is_ours(type(task)) or isinstance(task, Drawn) or task.files_read():
        return []
    return [
        f"{in_module(type(task))} was not seen to open a file, and its `files` names none: a change of its data will "
        "not be noticed. Let `files` return the files that its numbers depend on."
    ]


def _refuse_loaders(where: str, cls: type) -> None:
    """Refuse what Lightning would call if a task were a data module of its own, as nothing calls it here."""
    for name in NOT_CALLED:
        if not getattr(cls, name, len).__module__.startswith(("builtins", "lightning.")):
            raise ConfigError(
                f"{where} has `{name}`, as a LightningDataModule may, and a run does not call it: read the data in "
                "`check`, and make the batches in `batch`."
            )


def _shows_rows(cls: type[ArrayTask]) -> bool:
    """Return True if batches have the rows as they are stored."""
    return cls.present is ArrayTask.present and cls.batch is ArrayTask.batch


def _told(where: str, doing: str) -> AbstractContextManager[None]:
    """Turn whatever a task of the user's raises into one sentence, but what says that memory is short."""
    return in_one_sentence(where, doing, (OrthobenchError, MemoryError, torch.OutOfMemoryError), of_files=DataError)


def _check_sizes(where: str, task: Task) -> None:
    for name in ("input_size", "output_size", "T"):
        value: Any = getattr(task, name)
        if name == "T" and value is None:
            continue
        if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
            raise ConfigError(f"{where}: {name} is {value!r}, and must be a whole number from 1: {NEEDED[name]}.")


def _check_baseline(where: str, task: Task) -> None:
    """Look at the trivial predictor's scores: those of metrics, or of variants such as `loss_zero` of `loss`."""
    if not isinstance(task.baseline, dict):
        raise ConfigError(f"{where}: baseline is {task.baseline!r}, and must be {NEEDED['baseline']}.")
    known = {name: task.metric_of(name) for name in task.metrics}
    for name, value in task.baseline.items():
        metric = _metric(str(name), known)
        if metric is None:
            allowed = ", ".join(known)
            raise ConfigError(f"{where}: baseline has {name!r}, which is no metric of the task: use {allowed}.")
        if not isinstance(value, Real) or not isfinite(value) or not metric.allows(float(value)):
            bounds = " to ".join("any" if bound is None else f"{bound:g}" for bound in metric.bounds)
            raise ConfigError(f"{where}: baseline has {name}={value!r}, and must have a number within {bounds}.")


def _metric(name: str, known: dict[str, Metric]) -> Metric | None:
    return next((metric for own, metric in known.items() if name == own or name.startswith(f"{own}_")), None)


def _check_arrays(where: str, arrays: Any) -> None:
    """Look at the form of what `generate` returns."""
    if not isinstance(arrays, tuple) or not all(isinstance(array, np.ndarray) for array in arrays):
        found = [type(one).__name__ for one in arrays] if isinstance(arrays, tuple | list) else type(arrays).__name__
        raise ConfigError(f"{where}: `generate` returns {found}, and must return a tuple of NumPy arrays (x, target).")


def _check_batch(at: str, task: Task, batch: Any) -> None:
    """Look at the types, shapes and values of one batch, or of all rows of a split."""
    wrong = ConfigError if isinstance(task, Drawn) else DataError
    if not isinstance(batch, tuple | list) or len(batch) < 2 or not all(isinstance(part, Tensor) for part in batch):
        found = [type(part).__name__ for part in batch] if isinstance(batch, tuple | list) else type(batch).__name__
        raise ConfigError(f"{at}: a batch is {found}, and must be a tuple of tensors (x, target) or (x, target, mask).")
    counts = [len(part) if part.dim() else 0 for part in batch]
    if len(set(counts)) > 1 or not counts[0]:
        raise wrong(f"{at}: x, target and what follows have {counts} rows, and must have the same number, at least 1.")
    for name, part in zip(("x", "target", *["mask"] * (len(batch) - 2)), batch, strict=True):
        if part.is_complex():
            raise wrong(f"{at}: {name} is in {part.dtype}, and must be in real numbers.")
        if part.is_floating_point() and not bool(torch.isfinite(part).all()):
            raise wrong(f"{at}: {name} has values that are not finite.")
    x, target, *rest = batch
    _check_inputs(at, task, x, wrong)
    _check_targets(at, task, x, target, rest[0] if rest else None, wrong)


def _check_inputs(at: str, task: Task, x: Tensor, wrong: type[OrthobenchError]) -> None:
    shape, I = tuple(x.shape), int(task.input_size)
    if not x.is_floating_point():
        if x.dtype == torch.bool or x.dim() != 2 or not task.sequential or not x.numel():
            needs = "tokens (B, T) in int64" if task.sequential else f"vectors (B, {I}) in float32"
            raise wrong(f"{at}: x is {shape} in {x.dtype}; {needs}{_or_vectors(task)} are needed.")
        low, high = int(x.min()), int(x.max())
        if low < 0 or (high >= I and not isinstance(task, Denoise)):  # whose marker is the zero vector
            token = low if low < 0 else high
            raise wrong(f"{at}: x has the token {token}; input_size={I} allows those from 0 to {I - 1}.")
        return
    if task.tokens_in:
        raise wrong(f"{at}: tokens_in is true and x is in {x.dtype}; tokens (B, T) in int64 are needed.")
    if x.dtype != torch.float32:
        raise wrong(f"{at}: x is in {x.dtype}; float32 is needed, so use x.astype(np.float32) or x.float().")
    if x.dim() != (3 if task.sequential else 2) or x.shape[-1] != I or not x.numel():
        needs = f"(B, T, {I})" if task.sequential else f"(B, {I})"
        raise wrong(f"{at}: x is {shape}; {needs} is needed with input_size={I}.")


def _or_vectors(task: Task) -> str:
    return f", or vectors (B, T, {task.input_size}) in float32," if task.sequential and not task.tokens_in else ""


def _check_targets(
    at: str, task: Task, x: Tensor, target: Tensor, mask: Tensor | None, wrong: type[OrthobenchError]
) -> None:
    """Look at targets where the package's own losses or scores read them; a task that has its own knows its targets."""
    cls, O = type(task), int(task.output_size)
    generic = cls.loss in LOSSES or (task.objective == "classify" and cls.measure in MEASURES)
    if not generic:
        return
    if cls.loss is Task.loss:
        steps = tuple(x.shape[:2]) if task.readout == "all" else (len(x),)
        task._refuse_mismatch(torch.empty(*steps, O, device="meta"), target, mask)
    if task.objective == "regress":
        if target.dtype == torch.bool:
            raise wrong(f"{at}: targets are in {target.dtype}; numbers in float32 are needed to be predicted.")
        return
    if target.dtype not in (torch.int64, torch.uint8):
        raise wrong(f"{at}: labels are in {target.dtype}; int64 is needed, so use y.astype(np.int64) or y.long().")
    asked = target if mask is None or mask.shape != target.shape else target[mask != 0]
    low, high = (int(asked.min()), int(asked.max())) if asked.numel() else (0, 0)
    if low < 0 or high >= O:
        label = low if low < 0 else high
        masks = "; what is not to count needs a mask, and a `loss` and a `measure` that follow it" if low < 0 else ""
        raise wrong(f"{at}: there is the label {label}; output_size={O} allows those from 0 to {O - 1}{masks}.")


def _check_scores(where: str, task: Task, batch: Batch) -> None:
    """Look at what `loss` and `measure` return for random answers to a batch."""
    x, given = batch[0], [part.clone() for part in batch[1:3]]
    steps = x.shape[:2] if task.readout == "all" and task.sequential else x.shape[:1]
    y = 1.0 * torch.randn(*steps, int(task.output_size), generator=torch.Generator().manual_seed(1)).requires_grad_()
    loss: Any = task.loss(y, *given)
    if not isinstance(loss, Tensor) or loss.dim() or not loss.requires_grad:
        found = f"a tensor {tuple(loss.shape)}" if isinstance(loss, Tensor) and loss.dim() else "no function of y"
        raise ConfigError(
            f"{where}: `loss` returns {found}: return one number as a tensor, such as a mean, which follows from y "
            "without .item(), .detach() or NumPy."
        )
    with torch.no_grad():
        values: Any = task.measure(y.detach(), *given)
    wrong = [str(n) for n, one in values.items() if not isinstance(one, Tensor) or one.numel() != 1]
    if wrong:
        raise ConfigError(f"{where}: `measure` has {wrong[0]!r} that is no tensor of one number: return one.")
    if not all(map(torch.equal, given, batch[1:3])):
        raise ConfigError(
            f"{where}: `loss` or `measure` changes the targets that it is given, which are used again: change a copy."
        )


def _check_draws(where: str, task: Drawn) -> None:
    """See that batches are a function of seed and split."""

    def drawn(k: int, split: Any = "train") -> Batch:
        return type(task)(**task._given | {"seed": task.seed ^ k}).batch(split, 0, 0)

    own = task.batch("train", 0, 0)
    if not (_same(own, task.batch("train", 0, 0)) and _same(own, drawn(0))):
        raise ConfigError(
            f"{where}: the same seed gives another batch the second time: draw from the `rng` of `generate` alone."
        )
    if all(_same(own, drawn(k)) for k in range(1, CHANCES)):
        raise ConfigError(f"{where}: another seed gives the same batch: draw from the `rng` of `generate`.")
    for a, b in (("train", "val"), ("train", "test"), ("val", "test")):
        if all(_same(drawn(k, a), drawn(k, b)) for k in range(CHANCES)):
            raise ConfigError(f"{where}: {a} and {b} have the same sequences: draw from the `rng` of `generate`.")


def _check_length(where: str, task: Drawn, T: int) -> None:
    """See that T makes a difference; another that the task refuses says nothing."""
    try:
        longer = type(task)(**task._given | {"T": 2 * T}).batch("train", 0, 0)
    except Exception:  # a stranger's class may refuse it in any way
        return
    own = task.batch("train", 0, 0)
    if all(one.shape == other.shape for one, other in zip(own, longer, strict=True)) and _same(own, longer):
        raise ConfigError(
            f"{where}: T={T} and T={2 * T} give the same batch: `generate` must draw by self.T, or results are "
            "recorded of a length that they are not of."
        )


def _same(a: Batch, b: Batch) -> bool:
    """Return True if two batches are the same, as far as the shorter one goes."""
    count = min(len(a[0]), len(b[0]))
    return all(torch.equal(one[:count], other[:count]) for one, other in zip(a, b, strict=True))
