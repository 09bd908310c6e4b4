"""Every model at one hidden size beside the LSTM, or the MLP: forward and backward, recurrent matrices included."""

from collections.abc import Iterator

import torch

from orthobench.bench.timing import Bench, Row, Work
from orthobench.study.catalogue import SHIPPED

FIRST = {"recurrent": "lstm", "feed_forward": "mlp"}


def measure(bench: Bench) -> Iterator[Row]:
    """All rows of this file."""
    T, B, layers = (20, 16, 10) if bench.quick else (100, 50, 30)
    cases = {"recurrent": f"task=copying T={T}", "feed_forward": f"task=mnist_flat model.layers={layers}"}
    for network, case in cases.items():
        case = f"{case} model.hidden_size=128 task.batch_size={B}"
        yield from bench.compare("model", case, {name: work(bench, name, case) for name in models(network)})


def models(network: str) -> list[str]:
    """The models with this network; the one that the others are compared with comes first."""
    kinds = {
        name: SHIPPED.compose([f"model={name}"]).values["model"].get("network", "recurrent")
        for name in SHIPPED.options("model")
    }
    return sorted((name for name, kind in kinds.items() if kind == network), key=lambda name: name != FIRST[network])


def work(bench: Bench, name: str, case: str) -> Work:
    """A training step of one model without the optimizer's; random pixels replace data that a task would read."""
    from orthobench.run.run import Run

    exp = Run.fitted(SHIPPED.settings([f"model={name}", *case.split(), "recipe=none"]))
    model, task = exp.model.to(bench.device), exp.task
    x = task.batch("train", 0, 0)[0] if task.T else torch.randn(task.batch_size, task.input_size)
    x = x.to(bench.device)

    def run() -> None:
        model.zero_grad(set_to_none=True)
        model(x)[0].square().mean().backward()

    return run
