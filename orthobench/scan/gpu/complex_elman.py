"""The Elman recurrence with complex states, in one kernel each way; cells/complex_elman.py has the equations.

With G = dL/dh_t, u = z / |z|, f = max(|z| + b, 0) / (|z| + e) and f' its derivative, one step of the backward pass is

    dz = f G + f' |z| u Re(G conj(u)),   db = |z| / (|z| + e) Re(G conj(u)) where |z| + b > 0,   G <- W^H dz + outside

Real and imaginary parts lie side by side in memory, and a matrix is two real ones in registers. z is saved.
"""

from typing import Any

import torch
from torch import Tensor

from orthobench.cells.base import State
from orthobench.cells.complex_elman import OFFSETS
from orthobench.cells.members import Members
from orthobench.parametrizations.derivatives import first_only
from orthobench.scan.gpu.members import Launch, outside, states_from


def run(launch: Launch, cell: Any, x: Tensor, state: State) -> tuple[Tensor, State]:
    """Run a `ComplexElman` cell over x from `state`; see `reference.run`."""
    (W,), (shift, epsilon) = cell.matrices(), OFFSETS[cell.modrelu]
    p = cell.project(x).to(W.dtype)
    h0 = state[0].to(W.dtype).expand(p.shape[1:])
    b = (cell.b["h"] + shift)[None]
    states, last, *_ = ComplexElmanKernels.apply(launch, p[None], W[None], b, h0[None], epsilon)
    return states.squeeze(0).transpose(0, 1), (last.squeeze(0),)


class ComplexElmanKernels(Members, torch.autograd.Function):
    """(launch, p_STBN, W_SNN, b_SN, h0_SBN, e) -> (states, h_T, H, Z), all complex but b; see elman.py."""

    @staticmethod
    def forward(launch: Launch, p: Tensor, W: Tensor, b: Tensor, h0: Tensor, epsilon: float) -> tuple[Tensor, ...]:
        S, T, B, N = p.shape
        H, Z = states_from(h0, p), p.new_empty(S, T, B, N)
        tensors = (real(p), parts(W.mT), b.contiguous(), real(H), real(Z))
        launch("complex_elman_forward", tensors, (S, T, B, N), 2, {"EPSILON": epsilon})
        return H[:, 1:], H[:, -1], H, Z

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.launch, _, W, b, _, ctx.epsilon = inputs
        _, _, H, Z = output
        ctx.mark_non_differentiable(H, Z)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(H, Z, W, b)

    @staticmethod
    @first_only("use engine=reference")
    def backward(ctx: Any, dH: Tensor | None, dlast: Tensor | None, *_: Any) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        H, Z, W, b = ctx.saved_tensors
        S, T, B, N = Z.shape
        dp, G, db = torch.empty_like(Z), H.new_empty(S, B, N), b.new_empty(S, B, N)
        dH, dlast, key = outside(dH, dlast, G)
        tensors = (
            None if dH is None else real(dH),
            real(dlast),
            parts(W),
            b.contiguous(),
            real(Z),
            real(dp),
            real(G),
            db,
        )
        ctx.launch("complex_elman_backward", tensors, (S, T, B, N), 2, {"EPSILON": ctx.epsilon, **key})
        dW = dp.flatten(1, 2).mT @ H[:, :-1].flatten(1, 2).conj() if ctx.needs_input_grad[2] else None
        return None, dp, dW, db.sum(1) if ctx.needs_input_grad[3] else None, G, None


def real(z: Tensor) -> Tensor:
    """A contiguous complex tensor as real numbers, real and imaginary parts side by side, in the same memory."""
    return torch.view_as_real(z.resolve_conj().contiguous())


def parts(W: Tensor) -> Tensor:
    """Matrices (S, N, N) as real and imaginary ones, (S, 2, N, N)."""
    W = W.resolve_conj()
    return torch.stack([W.real, W.imag], dim=1)
