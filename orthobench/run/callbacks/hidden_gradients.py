"""Gradient of the loss on its way back: ||dL/dh_t||_F at chosen steps t (scoRNN, figure 5).

Measured on the first validation batch with the reference engine, before training and at every validation.
"""

from typing import Any

import torch
from lightning.pytorch import Trainer

from orthobench.run.callbacks.log import LogAtValidations
from orthobench.run.learner import Learner


class HiddenGradients(LogAtValidations):
    """Args: `subject`, the steps t, counted from 1; see `Log` for the others."""

    def record(self, trainer: Trainer, module: Learner) -> None:
        """Record hidden_gradient/<t> for every chosen t."""
        with torch.inference_mode(False), torch.enable_grad():
            batch = [part.to(module.device) for part in module.task.batch("val", 0, 0)]
            norms = hidden_gradients(module, batch, self.subject)
        self.write(trainer, {f"hidden_gradient/{t}": norm for t, norm in norms.items()})


def hidden_gradients(module: Learner, batch: list[torch.Tensor], times: list[int]) -> dict[int, float]:
    """||dL/dh_t||_F over a batch for every t, without dropout; a t beyond the sequence is left out."""
    x, target, *mask = batch
    taps: dict[int, Any] = dict.fromkeys(t for t in times if t <= x.shape[1])
    if not taps:
        return {}
    mode = module.model.training
    module.model.eval()
    y, _ = module.model(x, taps=taps)
    module.model.train(mode)
    gradients = torch.autograd.grad(module.task.loss(y, target, *mask), list(taps.values()), allow_unused=True)
    return {t: 0.0 if g is None else float(g.norm()) for t, g in zip(taps, gradients, strict=True)}
