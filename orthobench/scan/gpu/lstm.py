"""Long short-term memory in one kernel each way; native/lstm.py has the equations, elman.py says what S is.

Gates, projections and matrices are in the order i, f, g, o.
"""

from typing import Any

import torch
from torch import Tensor

from orthobench.cells.base import State
from orthobench.cells.members import Members
from orthobench.cells.projection import outer
from orthobench.parametrizations.derivatives import first_only
from orthobench.scan.gpu.members import Launch, outside, states_from


def run(launch: Launch, cell: Any, x: Tensor, state: State) -> tuple[Tensor, State]:
    """Run an `LSTM` cell over x from `state`; see `reference.run`."""
    (W,) = cell.matrices()
    p = cell.project(x).to(W.dtype)
    h0, c0 = (s.to(W.dtype).expand(p.shape[1], cell.hidden_size)[None] for s in state)
    states, h, c, *_ = LSTMKernels.apply(launch, p[None], W[None], h0, c0, torch.is_grad_enabled())
    return states.squeeze(0).transpose(0, 1), (h.squeeze(0), c.squeeze(0))


class LSTMKernels(Members, torch.autograd.Function):
    """(launch, p_STBM, W_SMN, h0_SBN, c0_SBN, training) -> (states, h_T, c_T, H, gates, C), M = 4 N.

    elman.py says what states and H are. C (S, T, B, N) the memory cells from c_0 to c_{T-1}. Gates and C are
    None where there is no backward pass, unless `training`.
    """

    @staticmethod
    def forward(
        launch: Launch, p: Tensor, W: Tensor, h0: Tensor, c0: Tensor, training: bool
    ) -> tuple[Tensor | None, ...]:
        S, T, B, N = *p.shape[:3], W.shape[-1]
        H, last = states_from(h0, p), c0.clone(memory_format=torch.contiguous_format)
        gates, C = (p.new_empty(S, T, B, M) if training else None for M in (4 * N, N))
        tensors = (p.contiguous(), W.unflatten(1, (4, N)).mT.contiguous(), H, last, gates, C)
        launch("lstm_forward", tensors, (S, T, B, N), 4, {"KEPT": training})
        return H[:, 1:], H[:, -1], last, H, gates, C

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor | None, ...]) -> None:
        ctx.launch, (_, _, last, *kept) = inputs[0], output
        H, gates, C = kept
        ctx.mark_non_differentiable(*(x for x in kept if x is not None))
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(H, last, gates, C, inputs[2])

    @staticmethod
    @first_only("use engine=reference")
    def backward(  # type: ignore[override]
        ctx: Any, dH: Tensor | None, dlast: Tensor | None, dmemory: Tensor | None, *_: Any
    ) -> tuple[Tensor | None, ...]:
        H, last, gates, C, W = ctx.saved_tensors
        dp, G, dc = torch.empty_like(gates), torch.empty_like(last), torch.empty_like(last)
        dH, dlast, key = outside(dH, dlast, G)
        dmemory = torch.zeros_like(G) if dmemory is None else dmemory.contiguous()
        tensors = (dH, dlast, dmemory, W.contiguous(), last, gates, C, dp, G, dc)
        ctx.launch("lstm_backward", tensors, C.shape, 4, key)
        dW = outer(dp, H[:, :-1]) if ctx.needs_input_grad[2] else None
        return None, dp, dW, G, dc, None
