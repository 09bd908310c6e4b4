"""Recurrences whose state is a matrix S (d_k, d_v), keys by values, C writes at once, in Triton kernels.

    S <- diag(g_t) S,   S <- S + k_t (v_t - S^T r_t)^T,   o_t = S^T q_t

where the erasure reads the decayed S. In a chunk of C writes that begins with S_0, let F_t be the product of the gates
up to t, E_ti that behind i up to t, and rows of F q be F_t * q_t. Then

    X = (I + L)^-1 (V - (F r) S_0),   O = (F q) S_0 + A X,   S_C = F_C S_0 + (E_C k)^T X

with A_ti = q_t . E_ti k_i on and below the diagonal, and L_ti = r_t . E_ti k_i below it; X = V where nothing is erased.
With G = dL/dS_C the backward pass goes over the chunks from last to first,

    dX = A^T dO + (E_C k) G,   dV = (I + L)^-T dX,   dL/dS_0 = F_C G + (F q)^T dO - (F r)^T dV,

and from the states and the gradients at their ends all chunks compute the rest at once:

    dA = dO X^T,   dL = -dV X^T,   d(F q) = dO S_0^T,   d(F r) = -dV S_0^T,   d(E_C k) = X G^T.

The logarithm of a gate gets what each pair of a write before it and a read behind it gives. The sum of q * dq - k * dk
behind it, which is the same, would lose digits.
Other recurrences are this one. The delta rule has r = beta k and beta v. Several writes a step have gates of one
between them, and are read at the last. A step that erases with other keys than it writes is two writes. A sum of keys
is one more value, which is one.
Yang, Wang, Zhang, Shen & Kim (2024), "Parallelizing Linear Transformers with the Delta Rule over Sequence Length",
section 3; Yang, Kautz & Hatamizadeh (2025), "Gated Delta Networks", section 3.3; Kimi Team (2025), "Kimi Linear",
section 3.
"""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false

from typing import Any

import torch
import triton
from torch import Tensor

from orthobench.cells.heads import unit
from orthobench.cells.members import Members
from orthobench.cells.outer import Writes
from orthobench.parametrizations.derivatives import first_only
from orthobench.scan.gpu.members import contiguous
from orthobench.scan.triton import chunk_gradients, chunks

PRECISION = "ieee"  # products of float32 by fused multiply-adds; `tf32x3` is three products of halves by tensor cores
OVER_TIME = ("forward", "backward")  # kernels that go from chunk to chunk
VALUES = 16  # of a program that goes over time; with more of them, registers spill
KERNELS = {
    "prepare": chunks.matrix_prepare,
    "forward": chunks.matrix_forward,
    "backward": chunks.matrix_backward,
    "gradients": chunk_gradients.matrix_gradients,
}
SMALL = 32  # keys of a head; with more of them, chunks are shorter and products are shared out among more threads
WRITES = {True: 16, False: 32}  # of a chunk: with many keys, or a gate for each of them, and else


def outer_scan(writes: Writes, S0: Tensor) -> tuple[Tensor, Tensor]:
    """See `fused.outer.outer_scan`."""
    log_g, q, k, v, r, p = writes
    if r is None or p is None:
        return scan(log_g, q, k, v, r, S0)
    log_g, q, k, v, r = (  # the erasure with its own keys, then the write
        torch.stack(pair, 2).flatten(1, 2)
        for pair in (
            (log_g, torch.zeros_like(log_g)),
            (torch.zeros_like(q), q),
            (p, k),
            (torch.zeros_like(v), v),
            (r, torch.zeros_like(r)),
        )
    )
    o, S = scan(log_g, q, k, v, r, S0)
    return o[:, 1::2], S


def matrix_scan(
    x: Tensor, beta: Tensor, log_gate: Tensor | None, S0: Tensor, delta: bool, z0: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
    """See `fused.matrix_state.matrix_scan`."""
    (T, writes, H), (d, e) = beta.shape[1:], S0.shape[-2:]
    q, k, v = x.split([H * d, writes * H * d, writes * H * e], dim=-1)
    q, k, v = q.unflatten(-1, (H, d)), k.unflatten(-1, (writes, H, d)), v.unflatten(-1, (writes, H, e))
    log_g = beta.new_zeros(beta.shape[0], T, H) if log_gate is None else log_gate
    if delta:
        q, k = unit(q), unit(k)
    strength, r = beta[..., None], None
    k, v, r = (k, strength * v, (strength * k).flatten(1, 2)) if delta else (strength * k, v, None)
    k, v = k.flatten(1, 2), v.flatten(1, 2)
    if writes > 1:
        none = q.new_zeros(*q.shape[:2], writes - 1, *q.shape[2:])
        q = torch.cat([none, q[:, :, None]], 2).flatten(1, 2)
        log_g = torch.cat([log_g[:, :, None], none[..., 0]], 2).flatten(1, 2)
    if z0 is not None:
        v, S0 = torch.cat([v, torch.ones_like(v[..., :1])], -1), torch.cat([S0, z0[..., None]], -1)
    o, S = scan(log_g[..., None], q, k, v, r, S0)
    o = o[:, writes - 1 :: writes]
    if z0 is None:
        return o.flatten(-2), S, None, None
    return o[..., :e].flatten(-2), S[..., :e], o[..., e], S[..., e]


def scan(log_g: Tensor, q: Tensor, k: Tensor, v: Tensor, r: Tensor | None, S0: Tensor) -> tuple[Tensor, Tensor]:
    """All outputs o (B, T, H, d_v) and the last S (B, H, d_k, d_v).

    Args:
        log_g: ln g, (B, T, H, d_k), or (B, T, H, 1) where all keys have one.
        q: (B, T, H, d_k).
        k: of the same shape.
        v: (B, T, H, d_v).
        r: of the shape of q; None where nothing is erased.
        S0: (B, H, d_k, d_v).
    """
    S0 = S0.expand(q.shape[0], *S0.shape[1:])
    O, S, *_ = MatrixKernels.apply(log_g, q, k, v, r, S0, torch.is_grad_enabled())
    return O, S


class MatrixKernels(Members, torch.autograd.Function):
    """(ln g, q, k, v, r, S_0, training) -> (o, S_T, X, A, inverses, states); the last four are None without training.

    All have the batch as first axis, to which members are added.
    """

    @staticmethod
    def forward(
        log_g: Tensor, q: Tensor, k: Tensor, v: Tensor, r: Tensor | None, S0: Tensor, training: bool
    ) -> tuple[Tensor | None, ...]:
        log_g, q, k, v, S0 = (x.contiguous() for x in (log_g, q, k, v, S0))
        r = contiguous(r)
        sizes = layout(log_g, q, v, r)
        (B, _, H, _), chunk, count = q.shape, sizes["C"], sizes["CHUNKS"]
        A, O = q.new_empty(B, H, count, chunk, chunk), torch.empty_like(v)
        inverses, X = (None, None) if r is None else (torch.empty_like(A), torch.empty_like(v) if training else None)
        S = S0.new_empty(B, H, count * training + 1, *S0.shape[2:])
        launch("prepare", q, sizes, log_g, q, k, r, A, inverses)
        launch("forward", q, {**sizes, "KEPT": training}, log_g, q, k, r, v, A, inverses, S0, X, O, S)
        kept = (X, A, inverses, S) if training else (None,) * 4
        return O, S[:, :, -1].clone() if training else S[:, :, -1], *kept

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor | None, ...]) -> None:
        log_g, q, k, v, r, _, _ = inputs
        ctx.mark_non_differentiable(*(x for x in output[2:] if x is not None))
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(log_g, q, k, v, r, *output[2:])

    @staticmethod
    @first_only("use engine=reference")
    def backward(ctx: Any, dO: Tensor | None, dS: Tensor | None, *_: Any) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        log_g, q, k, v = (x.contiguous() for x in ctx.saved_tensors[:4])
        r = contiguous(ctx.saved_tensors[4])
        X, A, inverses, S = ctx.saved_tensors[5:]
        sizes = layout(log_g, q, v, r)
        dO = torch.zeros_like(v) if dO is None else dO.contiguous()
        G, dV = torch.empty_like(S), torch.empty_like(v)
        G[:, :, -1] = 0 if dS is None else dS
        launch("backward", q, sizes, log_g, q, k, r, A, inverses, dO, dV, G)
        dg, dq, dk, dr = (None if x is None else torch.empty_like(x) for x in (log_g, q, k, r))
        launch("gradients", q, sizes, log_g, q, k, r, v if X is None else X, dO, dV, S, G, dg, dq, dk, dr)
        return dg, dq, dk, dV, dr, G[:, :, 0], None


def layout(log_g: Tensor, q: Tensor, v: Tensor, r: Tensor | None) -> dict[str, Any]:
    """The sizes and constants of all kernels, for queries (B, W, H, d_k) and values (B, W, H, d_v)."""
    W, H, d = q.shape[1:]
    constants = shape(d, v.shape[-1], log_g.shape[-1] > 1, r is not None)
    return {"W": W, "H": H, "CHUNKS": triton.cdiv(W, constants["C"]), **constants}


def shape(d: int, e: int, channels: bool, erase: bool) -> dict[str, Any]:
    """The constants of kernels for keys of d and values of e numbers.

    A key of one number has one gate, whatever it is called.
    """
    tiles = {"D": max(16, triton.next_power_of_2(d)), "V": VALUES}
    own = {
        "d": d,
        "e": e,
        "CHANNELS": channels,
        "ERASE": erase,
        "C": WRITES[channels or d > SMALL],
        "PRECISION": PRECISION,
    }
    return {**own, **tiles, "num_stages": 1}


def warps(name: str, d: int) -> int:
    """Threads of a kernel, by 32: those with which no register is spilled, as `tests/scan/test_compiled.py` reads."""
    return 8 if name in OVER_TIME and d > SMALL else 4


def launch(name: str, q: Tensor, sizes: dict[str, Any], *tensors: Tensor | None) -> None:
    """Start one of the kernels `prepare`, `forward`, `backward` and `gradients` over all heads of all sequences."""
    kernel = KERNELS[name]
    blocks = triton.cdiv(sizes["e"], sizes["V"]) if name in OVER_TIME else sizes["CHUNKS"]
    options = {key: value for key, value in sizes.items() if key in kernel.arg_names or key == "num_stages"}
    options["num_warps"] = warps(name, sizes["d"])
    with torch.cuda.device_of(q):
        kernel[blocks, q.shape[0] * q.shape[2]](*tensors, **options)
