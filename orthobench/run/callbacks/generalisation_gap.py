"""The generalisation gap: scores on training batches, without dropout, beside the validation's (SGORNN, section 3.2).

A gap is positive where training scores are the better ones: validation minus training loss, training minus validation
accuracy. With the test split among the validations, its gap is there too.
"""

import torch
from lightning.pytorch import Trainer

from orthobench.cells.base import State
from orthobench.run.callbacks.log import Log
from orthobench.run.learner import Learner


class GeneralisationGap(Log):
    """Args: `subject`, how many training batches are scored, the first of the first epoch; see `Log` for the others."""

    def on_validation_end(self, trainer: Trainer, module: Learner) -> None:  # type: ignore[override]
        scores = train_scores(module, self.subject)
        found = {f"train_eval/{name}": value for name, value in scores.items()}
        lower = {name for name in scores if module.task.metric_of(name).direction == "lower"}
        self.write(trainer, found | gaps(scores, module.results, lower))


@torch.no_grad()
def train_scores(module: Learner, batches: int) -> dict[str, float]:
    """The task's metrics over the first training batches, in evaluation mode.

    The first starts from the initial state, and so do the others but where the task carries it from batch to batch.
    """
    task, model = module.task, module.model
    carried: list[State] | None = None
    mode, sums, count = model.training, {}, 0.0
    model.eval()
    for index in range(min(batches, task.batches("train"))):
        x, target, *mask = (part.to(module.device) for part in task.batch("train", 0, index))
        size = task.weight(target, *mask)
        y, state = model(x, carried)
        carried = state if task.carries_state else None
        for name, mean in task.measure(y, target, *mask).items():
            sums[name] = sums.get(name, 0.0) + float(mean) * size
        count += size
    model.train(mode)
    return task.summarise({name: total / count for name, total in sums.items()})


def gaps(train: dict[str, float], results: dict[str, float], lower: set[str]) -> dict[str, float]:
    """`gap/<metric>` against the validation split and `gap_test/<metric>` against the test split, where scored.

    Args:
        train: scores on training batches, by metric.
        results: those of the other splits, by `<split>/<metric>`.
        lower: the metrics that are better when lower.
    """
    found = {}
    for split, prefix in (("val", "gap"), ("test", "gap_test")):
        for name, value in train.items():
            other = results.get(f"{split}/{name}")
            if other is not None:
                found[f"{prefix}/{name}"] = other - value if name in lower else value - other
    return found
