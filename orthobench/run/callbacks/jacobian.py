"""Influence of the first hidden state on the last: ||dh_T / dh_1||_F with its bounds (Chu, figures 8 to
12).

The Jacobian is multiplied up step by step, exactly, for a few sequences of the first validation batch: about N times
the cost of running them. The bounds are sqrt(N) times the cell's `step_gain` to the power T - 1, where it knows one.
Measured in the last layer, before training and at every validation.
"""

import math

import torch
from lightning.pytorch import Trainer
from torch import Tensor

from orthobench.cells.base import Cell, Matrices, State
from orthobench.models.base import Network
from orthobench.run.callbacks.log import LogAtValidations
from orthobench.run.learner import Learner


class Jacobian(LogAtValidations):
    """Args: `subject`, how many sequences; see `Log` for the others."""

    def record(self, trainer: Trainer, module: Learner) -> None:
        """Record the norm's mean, smallest and largest over the sequences, and the bounds on it."""
        with torch.inference_mode(False), torch.no_grad():
            x = module.task.batch("val", 0, 0)[0][: self.subject].to(module.device)
            values = summary(module.model, x)  # type: ignore[arg-type]  # only recurrent models get this callback
        self.write(trainer, values)


def summary(model: Network, x: Tensor) -> dict[str, float]:
    """The values that are recorded, for inputs (B, T, I) or tokens (B, T)."""
    cell = model.cells[-1]
    assert isinstance(cell, Cell)
    norms = torch.linalg.matrix_norm(chained_jacobian(cell, model.layer_inputs(x)[-1]))
    values = {"jacobian": float(norms.mean()), "jacobian/min": float(norms.min()), "jacobian/max": float(norms.max())}
    limits = bounds(cell, x.shape[1])
    return values | ({} if limits is None else {"jacobian/lower": limits[0], "jacobian/upper": limits[1]})


def chained_jacobian(cell: Cell, x: Tensor) -> Tensor:
    """dh_T / dh_1, shape (B, N, N), with the other states (an LSTM's c) at step 1 held fixed.

    States of other shapes count as vectors.

    Args:
        cell: the cell.
        x: inputs (B, T, I), or tokens (B, T).
    """
    W, (first, *others) = tuple(w.detach() for w in cell.matrices()), cell.project(x).detach().unbind(0)
    _, state = cell.advance(first, cell.initial_state(len(x)), W)
    state = tuple(s.detach() for s in state)
    B, N = len(x), state[0][0].numel()
    eye = torch.eye(N, dtype=state[0].dtype, device=state[0].device).expand(B, N, N)
    chain = [eye, *(eye.new_zeros(B, s[0].numel(), N) for s in state[1:])]
    for p_t in others:
        state, blocks = _step_jacobian(cell, p_t, state, W)
        M = torch.cat(chain, dim=1)
        chain = [torch.cat(row, dim=2) @ M for row in blocks]
    return chain[0]


def _step_jacobian(cell: Cell, p_t: Tensor, state: State, W: Matrices) -> tuple[State, list[list[Tensor]]]:
    """The state after one step, and the blocks d s_k / d s_l of states, (B, N_k, N_l): copy i gives row i."""
    B, sizes = len(state[0]), [s[0].numel() for s in state]
    N = max(sizes)
    copies = [s.repeat(N, *(1 for _ in s.shape[1:])).requires_grad_() for s in state]
    with torch.enable_grad():
        _, after = cell.advance(p_t.repeat(N, 1), tuple(copies), W)
        rows = [
            torch.autograd.grad(
                s.reshape(N, B, -1).diagonal(dim1=0, dim2=2).sum(), copies, retain_graph=True, materialize_grads=True
            )
            for s in after
        ]
    blocks = [[g.reshape(N, B, -1)[:size].transpose(0, 1) for g in row] for size, row in zip(sizes, rows, strict=True)]
    return tuple(s.detach()[:B] for s in after), blocks


def bounds(cell: Cell, T: int) -> tuple[float, float] | None:
    """The smallest and the largest that ||dh_T / dh_1||_F can be; None where the cell knows none or it is no number."""
    gain = cell.step_gain(cell.matrices())
    if gain is None or (gain[1] > 1 and (T - 1) * math.log(gain[1]) > 700):
        return None
    low, high = (math.sqrt(cell.hidden_size) * factor ** (T - 1) for factor in gain)
    return low, high
