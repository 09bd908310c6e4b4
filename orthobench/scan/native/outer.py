"""The recurrence of `cells/outer.py` in C, for every head of every sequence.

    u_t = (diag(g_t) S)^T r_t,   S <- diag(g_t) S + k_t v_t^T - p_t u_t^T,   o_t = S^T q_t

With G = dL/dS after a step, the backward pass adds q do^T to G, and dq = S do. Then

    dk = G v,   dv = G^T k,   dp = -G u,   du = -G^T p,   dr = diag(g) S_{t-1} du,   G <- G + r du^T
    dg = the sums over values of G * S_{t-1},   G <- diag(g) G

States are not kept but written anew. Where nothing is erased and all keys of a head decay alike, chunks of writes are
products of matrices: chunks.h, with the equations in deltaproduct.py. Orthogonal reads are in orthogonal.c.
"""

from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from orthobench.cells.outer import Writes
from orthobench.parametrizations.derivatives import first_only
from orthobench.scan.fused.elman import Gradients
from orthobench.scan.native.library import Struct, lanes, long, pointer, whole_vectors

OWN = ("log_g", "q", "k", "v", "r", "p")  # of which the gradients are returned, in this order
POINTERS = ("g", "q", "k", "r", "p", "v", "O", "dO", "dv", "S0", "S", "dS", "dlog_g", "dq", "dk", "dr", "dp")


class OuterState(Struct):
    """The struct of the same name in outer.c."""

    _fields_ = (*((name, long) for name in ("T", "B", "H", "d", "e")), *((name, pointer) for name in POINTERS))


class DecayedState(Struct):
    """The struct of the same name in decayed.h."""

    _fields_ = (
        *((name, long) for name in ("T", "B", "H", "d", "e")),
        *((name, pointer) for name in ("log_g", "q", "k", "v", "O", "S0", "S", "dS", "dO", "dlog_g", "dq", "dk", "dv")),
        ("wanted", pointer),
    )


def outer_scan(writes: Writes, S0: Tensor) -> tuple[Tensor, Tensor]:
    """See `fused.outer.outer_scan`."""
    log_g, q, k, v, r, p = writes.each(Tensor.contiguous)
    if r is None and p is None and log_g.shape[-1] == 1:
        return OuterScan.apply(_run_decayed, log_g[..., 0], q, k, v, S0.contiguous())
    return OuterScan.apply(_run, log_g.expand(q.shape).contiguous(), q, k, v, r, p, S0.contiguous())


class OuterScan(torch.autograd.Function):
    """(`run`, ln g, q, k (B, T, H, d_k), v (B, T, H, d_v), more as k or None, S_0) -> (o (B, T, H, d_v), S_T).

    `run` calls the loops. All tensors are contiguous.
    """

    @staticmethod
    def forward(ctx: Any, run: Any, *own: Any) -> tuple[Tensor, Tensor]:
        O, S = torch.empty_like(own[3]), torch.empty_like(own[-1])
        run("forward", *own, O=O, S=S)
        ctx.run = run
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*own)
        return O, S

    @staticmethod
    @first_only("use engine=reference")
    def backward(ctx: Any, dO: Tensor | None, dS: Tensor | None) -> Gradients:  # type: ignore[override]
        *own, S0 = ctx.saved_tensors
        dO, dS = _gradients(own[3], S0, dO, dS)
        found = {f"d{name}": None if x is None else torch.empty_like(x) for name, x in zip(OWN, own, strict=False)}
        ctx.run("backward", *own, S0, dO=dO, dS=dS, **found)
        return None, *found.values(), dS


def orthogonal_scan(
    x: Tensor, beta: Tensor, log_gate: Any, S0: Tensor, _: Any, z0: Any, wanted: Tensor | None = None
) -> tuple[Any, ...]:
    """See `fused.matrix_cells.orthogonal_scan`; for gates, one write a step and a sum of keys.

    The outputs are zero where `wanted` (B, T) is.
    """
    H, d, e = S0.shape[1:]
    q, k, v = (part.unflatten(-1, (H, -1)) for part in x.split([H * d, H * d, H * e], dim=-1))
    k = beta.transpose(-1, -2) * k
    own = (one.contiguous() for one in (log_gate, q, k, v, S0))
    o, S = OuterScan.apply(partial(_run_decayed, loops="orthogonal", wanted=wanted), *own)
    later = F.pad(log_gate[:, 1:], (0, 0, 0, 1)).flip(1).cumsum(1).flip(1)
    z = log_gate.sum(1).exp()[..., None] * z0 + (later.exp()[..., None] * k).sum(1)
    return o.flatten(-2), S, None, z


def _gradients(v: Tensor, S0: Tensor, dO: Tensor | None, dS: Tensor | None) -> tuple[Tensor, Tensor]:
    """dL/do, and dL/dS_T in memory that the loops may overwrite."""
    dO = torch.zeros_like(v) if dO is None else dO.contiguous()
    return dO, torch.zeros_like(S0) if dS is None else dS.clone(memory_format=torch.contiguous_format)


def _run_decayed(
    way: str, log_g: Tensor, q: Tensor, k: Tensor, v: Tensor, S0: Tensor, loops: str = "decayed", **tensors: Any
) -> None:
    (B, T, H, d), e = q.shape, v.shape[-1]
    _check(q, {"k": k}, v, S0)
    if log_g.shape != (B, T, H):
        raise ValueError(f"queries {tuple(q.shape)} and decays {tuple(log_g.shape)} do not fit each other.")
    state = DecayedState(T, B, H, d, e)
    size = state.scratch(loops, way, q.dtype)
    state.run(f"{loops}_{way}", B * H, q, size, log_g=log_g, q=q, k=k, v=v, S0=S0, **tensors)


def _check(q: Tensor, keys: dict[str, Tensor | None], v: Tensor, S0: Tensor) -> None:
    """Refuse inputs and states whose shapes do not fit, or that C would misread.

    Raises:
        ValueError: such ones.
    """
    (B, T, H, d), e = q.shape, v.shape[-1]
    odd = next((name for name, one in keys.items() if one is not None and one.shape != q.shape), None)
    if odd or v.shape != (B, T, H, e) or S0.shape != (B, H, d, e):
        shapes = ", ".join(f"{name} {tuple(one.shape)}" for name, one in (*keys.items(), ("v", v)) if one is not None)
        raise ValueError(f"queries {tuple(q.shape)}, {shapes} and states {tuple(S0.shape)} do not fit each other.")


def _run(loop: str, log_g: Any, q: Any, k: Any, v: Any, r: Any, p: Any, S0: Any, **tensors: Tensor | None) -> None:
    """Run a loop over all heads of all sequences.

    Raises:
        ValueError: a second key without what is erased; see `_check`, too.
    """
    (B, T, H, d), e = q.shape, v.shape[-1]
    keys = {"k": k, "r": r, "p": p}
    _check(q, {"log_g": log_g, **keys}, v, S0)
    if p is not None and r is None:
        raise ValueError("p is given and r is not: nothing is erased without both.")
    W, sums = whole_vectors(e, q.dtype), 5 * whole_vectors(d, q.dtype) * lanes(q.dtype)
    scratch = W * (4 + d) if loop == "forward" else W * (4 + d + T + 1 + (T + 1) * d) + sums
    OuterState(T, B, H, d, e).run(f"outer_{loop}", B * H, q, scratch, g=log_g.exp(), **keys, q=q, v=v, S0=S0, **tensors)
