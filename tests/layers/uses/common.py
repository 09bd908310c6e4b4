"""Layers of every kind, and what the uses share."""

from typing import Any

import torch
from torch import Tensor, nn

from orthobench import layers
from orthobench.layers import Layer

NAMED = [name for name in layers.__all__ if name not in ("Layer", "Recurrent", "URNN", "frozen")]
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, {}) for name in NAMED},
    "UGRU, geodesic": ("UGRU", {"gradient": "geodesic"}),
    "URNN, restricted": ("URNN", {}),
    "URNN, full": ("URNN", {"kind": "full"}),
    "URNN, exp": ("URNN", {"kind": "exp"}),
    "Recurrent, gru and free": ("Recurrent", {"cell": "gru", "recurrent": "free"}),
    "Recurrent, lstm and householder": ("Recurrent", {"cell": "lstm", "recurrent": "householder"}),
}
B, T, I, N = 2, 5, 4, 8
CLOSE: dict[str, Any] = {"atol": 2e-5, "rtol": 1e-4}
EXACT: dict[str, Any] = {"atol": 1e-10, "rtol": 1e-8}


def make(kind: str, *sizes: int, **options: Any) -> Layer:
    """A layer with the same weights at every call."""
    name, own = KINDS[kind]
    torch.manual_seed(1)
    return getattr(layers, name)(*(sizes or (I, N)), batch_first=True, **own, **options)


class Net(nn.Module):
    """A model with a layer inside, as a user has it."""

    def __init__(self, layer: Layer) -> None:
        super().__init__()
        self.layer, self.readout = layer, nn.Linear(layer.output_size, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.readout(self.layer(x)[0])


def net(kind: str, **options: Any) -> Net:
    return Net(make(kind, **options))


def draw(*sizes: int, seed: int = 2, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*(sizes or (B, T, I)), generator=torch.Generator().manual_seed(seed), dtype=dtype)


def same(found: Any, wanted: Any, **tolerance: Any) -> None:
    torch.testing.assert_close(found, wanted, **(tolerance or CLOSE))


def train(model: nn.Module, steps: int = 3, rate: float = 0.05, seed: int = 3) -> None:
    optimizer = torch.optim.SGD(model.parameters(), rate)
    for step in range(steps):
        optimizer.zero_grad()
        y = model(draw(seed=seed + step))
        (y if isinstance(y, Tensor) else y[0]).square().mean().backward()
        optimizer.step()


def gradients(model: nn.Module, x: Tensor) -> dict[str, Tensor]:
    model.zero_grad()
    y = model(x)
    (y if isinstance(y, Tensor) else y[0]).square().sum().backward()
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def on_the_manifold(layer: Layer) -> None:
    for p, W in zip(layer.constrained(), layer.recurrent_weights(), strict=True):
        assert p.contains(W.detach(), 1e-3), torch.linalg.svdvals(W.detach())


class NotApplicable(Exception):
    """The layer has not what the use is about."""


class Surrogate(Exception):
    """The gradient is on purpose not the derivative of what is computed."""


class NotTheMean(Exception):
    """The recurrent matrix of the average is the last one."""
