"""The whole sequence in one call of torch's own RNN, GRU or LSTM kernel (cuDNN on a GPU).

The matrices are passed as arguments: a parametrization registered on nn.RNN would silently stop training. cuDNN wants
them in one piece of memory, in this order; where they are not, it copies them at every call, and torch warns.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from orthobench.cells.base import Cell, State
from orthobench.cells.elman import Elman
from orthobench.cells.gru import GRU
from orthobench.cells.lstm import LSTM
from orthobench.scan.families import lookup

CELLS = {Elman: True, GRU: True, LSTM: True}


def supports(cell: Cell) -> bool:
    """Return True if torch has a kernel for this cell, which then also computes the projection."""
    return bool(lookup(cell, CELLS, asked=("matrices", "initial_state"))) and cell.torch_kernel() is not None


def run(cell: Cell, x: Tensor, state: State) -> tuple[Tensor, State]:
    """Run `cell` over x from `state`; see `reference.run`."""
    kernel = cell.torch_kernel()
    assert kernel is not None
    if not x.is_floating_point():
        x = F.one_hot(x.long().clamp(max=cell.input_size), cell.input_size + 1)[..., :-1].to(cell.U.dtype)
    b, late = cell.joint_bias(), cell._late_bias()
    bias = [] if b is None else [b, torch.zeros_like(b) if late is None else late]
    weights = [cell.U, torch.cat(cell.matrices()), *bias]
    if x.is_cuda:
        weights = in_one_piece(weights)
    initial = tuple(s.unsqueeze(0).contiguous() for s in state)
    kept = cell.training or torch.is_grad_enabled()  # cuDNN has no gradient of what it computed for an evaluation
    options = (weights, bool(bias), 1, 0.0, kept, False, True)
    torch.backends.cudnn.allow_tf32 = torch.get_float32_matmul_precision() != "highest"  # by default torch rounds here
    call = getattr(torch, kernel)
    with torch.autocast(x.device.type, enabled=False):  # it would round the recurrence too
        h_BTN, *final = call(x.to(cell.U.dtype), initial if kernel == "lstm" else initial[0], *options)
    return h_BTN, tuple(s.squeeze(0) for s in final)


def in_one_piece(weights: list[Tensor]) -> list[Tensor]:
    """The same weights as neighbouring parts of one new tensor, through which gradients flow."""
    parts = torch.cat([w.flatten() for w in weights]).split([w.numel() for w in weights])
    return [part.view_as(w) for part, w in zip(parts, weights, strict=True)]
