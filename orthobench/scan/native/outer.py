"""The recurrence of `cells/outer.py` in C, for every head of every sequence.

    u_t = (diag(g_t) S)^T r_t,   S <- diag(g_t) S + k_t v_t^T - p_t u_t^T,   o_t = S^T q_t

With G = dL/dS after a step, the backward pass adds q do^T to G, and dq = S do. Then

    dk = G v,   dv = G^T k,   dp = -G u,   du = -G^T p,   dr = diag(g) S_{t-1} du,   G <- G + r du^T
    dg = the sums over values of G * S_{t-1},   G <- diag(g) G

States are not kept but written anew.
"""

from typing import Any

import torch
from torch import Tensor

from orthobench.cells.outer import Writes
from orthobench.parametrizations.derivatives import first_only
from orthobench.scan.fused.elman import Gradients
from orthobench.scan.native.library import Struct, lanes, long, pointer, whole_vectors

POINTERS = ("g", "q", "k", "r", "p", "v", "O", "dO", "dv", "S0", "S", "dS", "dg", "dq", "dk", "dr", "dp")


class OuterState(Struct):
    """The struct of the same name in outer.c."""

    _fields_ = (*((name, long) for name in ("T", "B", "H", "d", "e")), *((name, pointer) for name in POINTERS))


def outer_scan(writes: Writes, S0: Tensor) -> tuple[Tensor, Tensor]:
    """See `fused.outer.outer_scan`."""
    log_g, q, k, v, r, p = writes.each(Tensor.contiguous)
    return OuterScan.apply(log_g.exp().expand(q.shape).contiguous(), q, k, v, r, p, S0.contiguous())


class OuterScan(torch.autograd.Function):
    """(g, q, k (B, T, H, d_k), v (B, T, H, d_v), r, p as k or null, S_0) -> (o (B, T, H, d_v), S_T).

    All are contiguous.
    """

    @staticmethod
    def forward(ctx: Any, *own: Any) -> tuple[Tensor, Tensor]:
        O, S = torch.empty_like(own[3]), torch.empty_like(own[6])
        _run("forward", *own, O=O, S=S)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*own)
        return O, S

    @staticmethod
    @first_only("use engine=reference")
    def backward(ctx: Any, dO: Tensor | None, dS: Tensor | None) -> Gradients:  # type: ignore[override]
        own = ctx.saved_tensors
        v, S0 = own[3], own[6]
        dO = torch.zeros_like(v) if dO is None else dO.contiguous()
        dS = torch.zeros_like(S0) if dS is None else dS.clone(memory_format=torch.contiguous_format)
        dg, dq, dk, dv, dr, dp = (None if one is None else torch.empty_like(one) for one in own[:6])
        _run("backward", *own, dO=dO, dS=dS, dg=dg, dq=dq, dk=dk, dv=dv, dr=dr, dp=dp)
        return dg, dq, dk, dv, dr, dp, dS


def _run(loop: str, g: Any, q: Any, k: Any, v: Any, r: Any, p: Any, S0: Any, **tensors: Tensor | None) -> None:
    """Run a loop over all heads of all sequences.

    Raises:
        ValueError: inputs and states whose shapes do not fit, or that C would misread.
    """
    (B, T, H, d), e = q.shape, v.shape[-1]
    keys = {"g": g, "k": k, "r": r, "p": p}
    odd = next((name for name, one in keys.items() if one is not None and one.shape != q.shape), None)
    if odd or v.shape != (B, T, H, e) or S0.shape != (B, H, d, e) or (p is not None and r is None):
        shapes = ", ".join(f"{name} {tuple(one.shape)}" for name, one in (*keys.items(), ("v", v)) if one is not None)
        raise ValueError(f"queries {tuple(q.shape)}, {shapes} and states {tuple(S0.shape)} do not fit each other.")
    W, sums = whole_vectors(e, q.dtype), 5 * whole_vectors(d, q.dtype) * lanes(q.dtype)
    scratch = W * (4 + d) if loop == "forward" else W * (4 + d + T + 1 + (T + 1) * d) + sums
    OuterState(T, B, H, d, e).run(f"outer_{loop}", B * H, q, scratch, **keys, q=q, v=v, S0=S0, **tensors)
