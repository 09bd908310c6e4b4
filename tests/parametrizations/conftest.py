"""Fixtures of the parametrizations' tests: seeded generators, float64, and a stand-in for training."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import Tensor

from orthobench.parametrizations.base import Parametrization, deviation


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20)


@pytest.fixture
def float64() -> Iterator[None]:
    """Modules made in the test have float64 parameters and buffers."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


class Training:
    """Adam on L = <G_t, W>: a persistent gradient plus noise of the same size, as in the specs' drift simulation."""

    def __init__(self, parametrization: Parametrization, lr: float = 1e-3, seed: int = 1) -> None:
        self.parametrization = parametrization
        self.optimizer = torch.optim.Adam(parametrization.parameters(), lr=lr)
        self.generator = torch.Generator().manual_seed(seed)
        self.persistent = self._draw()

    def _draw(self) -> Tensor:
        W = self.parametrization()
        return torch.randn(W.shape, generator=self.generator, dtype=torch.promote_types(W.dtype, torch.float64))

    def step(self) -> None:
        """One step of the optimizer and the hook after it."""
        W = self.parametrization()
        self.optimizer.zero_grad()
        (W.conj() * (self.persistent + self._draw()).to(W.dtype)).sum().real.backward()
        self.optimizer.step()
        self.parametrization.after_step()

    def run(self, steps: int) -> float:
        """The largest ||W^T W - I||_F, evaluated in float64 after every step."""
        worst = 0.0
        for _ in range(steps):
            self.step()
            W = self.parametrization().detach()
            worst = max(worst, float(deviation(W.to(torch.promote_types(W.dtype, torch.float64)))))
        return worst


@pytest.fixture
def training() -> type[Training]:
    return Training
