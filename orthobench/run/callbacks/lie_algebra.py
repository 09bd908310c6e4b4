"""Check if the Lie-algebra gradient of a matrix exponential can be trusted.

`max_eigenphase` is the largest |w| over the eigenvalues i w of A. The direction that Plumbley's rule takes is a descent
direction for certain below pi / 2 only; `gradient_cosine` is the cosine between it and the exact gradient, the smallest
over layers and gates, of the gradient that the step used.
"""

from typing import Any

from lightning.pytorch import Trainer
from torch import Tensor

from orthobench.run.callbacks.log import Log
from orthobench.run.learner import Learner


class LieAlgebra(Log):
    """Args: `subject`, the parametrizations that are looked at; see `Log` for the others."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._gradients: dict[int, Tensor] = {}
        self._handles: list[Any] = []
        self._found: dict[str, float] = {}

    def on_train_batch_start(self, trainer: Trainer, module: Learner, batch: Any, index: int) -> None:  # type: ignore[override]
        if self.due(trainer.global_step + 1) and not self._handles:
            self.listen()
            module.step.replays = False  # a replay calls no hooks

    def on_before_optimizer_step(self, trainer: Trainer, module: Learner, optimizer: Any) -> None:  # type: ignore[override]
        if self._handles:
            self._found = self.measure()
            module.step.replays = True

    def on_train_batch_end(self, trainer: Trainer, module: Learner, *args: Any) -> None:  # type: ignore[override]
        if self._found:
            self.write(trainer, self._found)
            self._found = {}

    def listen(self) -> None:
        """Keep dL/dW of the next backward pass."""
        self._handles = [p.register_forward_hook(self._keep) for p in self.subject]

    def _keep(self, p: Any, arguments: Any, W: Tensor) -> None:
        if W.requires_grad:
            W.register_hook(lambda G: self._gradients.__setitem__(id(p), G.detach()))

    def measure(self) -> dict[str, float]:
        """Both values at the A of the backward pass that was listened to."""
        kept = [(p, self._gradients[id(p)]) for p in self.subject if id(p) in self._gradients]
        values = {"max_eigenphase": max(p.max_eigenphase() for p in self.subject)}
        if kept:
            values["gradient_cosine"] = min(p.gradient_cosine(G) for p, G in kept)
        for handle in self._handles:
            handle.remove()
        self._handles, self._gradients = [], {}
        return values
