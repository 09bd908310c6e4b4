"""Recurrences whose state is a matrix S (d, d), keys by values, for every head of every sequence, in C.

    S <- g_t S,   S <- S + beta_j k_j u_j^T for every write j,   o_t = S^T q_t

u_j = v_j, or under the delta rule u_j = v_j - S^T k_j with q and k at length 1. With G = dL/dS after a step, the
backward pass adds q do^T to G, and dq = S do. Then, for every write from the last to the first,

    dv = beta G^T k,   dbeta = k . G u,   dk = beta G u,   and under the delta rule   dk <- dk - S dv,   G <- G - k dv^T

and at last dg = <G, S>, G <- g G. States are not kept but written anew; u is kept.

The sum of keys is a vector that is written with the keys alone: z <- g_t z, z <- z + beta_j k_j, r_t = q_t . z.
"""

from typing import Any

import torch
from torch import Tensor

from orthobench.parametrizations.derivatives import first_only
from orthobench.scan.fused.elman import Gradients
from orthobench.scan.native.library import Struct, long, pointer, whole_vectors, with_rows

NUMBERS = ("T", "B", "H", "d", "writes", "delta", "X_row", "X_time")
POINTERS = ("X", "beta", "gate", "S0", "S", "O", "U", "dO", "dX", "dbeta", "dgate", "dS", "z0", "z", "r", "dz", "dr")


class MatrixState(Struct):
    """The struct of the same name in matrix_state.c."""

    apart = frozenset(("X",))
    _fields_ = (*((name, long) for name in NUMBERS), *((name, pointer) for name in POINTERS))


def matrix_scan(
    x: Tensor, beta: Tensor, log_gate: Tensor | None, S0: Tensor, delta: bool, z0: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
    """See `fused.matrix_state.matrix_scan`."""
    return MatrixScan.apply(x, beta, None if log_gate is None else log_gate.exp(), S0, delta, z0)


class MatrixScan(torch.autograd.Function):
    """(x_BTM, beta (B, T, writes, H), gate (B, T, H), S_0, delta, z_0) -> (o (B, T, H d), S_T, r (B, T, H), z_T).

    x has the query, the keys of all writes and their values side by side, so that M = (1 + 2 writes) H d; S is
    (B, H, d, d); the gate may be null; `delta` says whether the delta rule holds. z is (B, H, d), or null, and then r.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, beta: Tensor, gate: Tensor | None, S0: Tensor, delta: bool, z0: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
        x, beta, S0 = with_rows(x), beta.contiguous(), S0.contiguous()
        gate, z0 = (None if given is None else given.contiguous() for given in (gate, z0))
        S, U = torch.empty_like(S0), S0.new_empty(*beta.shape, S0.shape[-1]) if delta else None
        O = S0.new_empty(*x.shape[:2], S0.shape[1] * S0.shape[2])
        r, z = (None, None) if z0 is None else (S0.new_empty(*x.shape[:2], S0.shape[1]), torch.empty_like(z0))
        _run("forward", x, beta, S0, delta, gate=gate, S=S, O=O, U=U, z0=z0, z=z, r=r)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x, beta, gate, S0, U, z0)
        return O, S, r, z

    @staticmethod
    @first_only("use engine=reference")
    def backward(  # type: ignore[override]
        ctx: Any, dO: Tensor | None, dS: Tensor | None, dr: Tensor | None, dz: Tensor | None
    ) -> Gradients:
        x, beta, gate, S0, U, z0 = ctx.saved_tensors
        B, T, H, d = *x.shape[:2], *S0.shape[1:3]
        dO = x.new_zeros(B, T, H * d) if dO is None else dO.contiguous()
        dS = torch.zeros_like(S0) if dS is None else dS.clone(memory_format=torch.contiguous_format)
        dx, dbeta = x.new_empty(x.shape), torch.empty_like(beta)
        dgate = None if gate is None else torch.empty_like(gate)
        if z0 is not None:
            dr = x.new_zeros(B, T, H) if dr is None else dr.contiguous()
            dz = torch.zeros_like(z0) if dz is None else dz.clone(memory_format=torch.contiguous_format)
        given = {"gate": gate, "U": U, "z0": z0, "dO": dO, "dr": dr}
        _run("backward", x, beta, S0, U is not None, **given, dX=dx, dbeta=dbeta, dgate=dgate, dS=dS, dz=dz)
        return dx, dbeta, dgate, dS, None, dz


def _run(loop: str, x: Tensor, beta: Tensor, S0: Tensor, delta: bool, **tensors: Tensor | None) -> None:
    """Run a loop over all heads of all sequences.

    Raises:
        ValueError: inputs and states whose shapes do not fit, or that C would misread.
    """
    (B, T, writes, H), d = beta.shape, S0.shape[-1]
    needed, state = (B, T, (1 + 2 * writes) * H * d), (B, H, d, d)
    gate, z0 = tensors["gate"], tensors["z0"]
    if z0 is not None and z0.shape != (B, H, d):
        raise ValueError(f"a sum of keys {tuple(z0.shape)} does not fit: {(B, H, d)} is needed.")
    if gate is not None and gate.shape != (B, T, H):
        raise ValueError(f"a gate {tuple(gate.shape)} does not fit: {(B, T, H)} is needed.")
    if x.shape != needed or S0.shape != state:
        shapes = f"inputs {tuple(x.shape)} and states {tuple(S0.shape)}"
        raise ValueError(f"{shapes} do not fit: {needed} and {state} are needed.")
    width = whole_vectors(d, x.dtype)
    states = 1 if loop == "forward" else 3 + T * writes
    given = {"X": x.transpose(0, 1), "beta": beta, "S0": S0, **tensors}
    scan = MatrixState(T, B, H, d, writes, delta)
    scan.run(f"matrix_state_{loop}", B * H, x, width * (12 + T * writes + d * states), **given)
