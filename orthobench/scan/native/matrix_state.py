"""Recurrences whose state is a matrix S (d, d), keys by values, for every head of every sequence, in C.

    S <- g_t S,   S <- S + beta_j k_j u_j^T for every write j,   o_t = S^T q_t

u_j = v_j, or under the delta rule u_j = v_j - S^T k_j with q and k at length 1. With G = dL/dS after a step, the
backward pass adds q do^T to G, and dq = S do. Then, for every write from the last to the first,

    dv = beta G^T k,   dbeta = k . G u,   dk = beta G u,   and under the delta rule   dk <- dk - S dv,   G <- G - k dv^T

and at last dg = <G, S>, G <- g G. States are not kept but written anew; u is kept.
"""

import ctypes
from typing import Any

import torch
from torch import Tensor

from orthobench.parametrizations.derivatives import first_only
from orthobench.scan.fused.elman import Gradients
from orthobench.scan.native.library import lanes, load, over_rows, pointer, readable

NUMBERS = ("T", "B", "H", "d", "writes", "delta", "X_row", "X_time")
POINTERS = ("X", "beta", "gate", "S0", "S", "O", "U", "dO", "dX", "dbeta", "dgate", "dS")


class MatrixState(ctypes.Structure):
    """The struct of the same name in matrix_state.c."""

    _fields_ = (*((name, ctypes.c_int64) for name in NUMBERS), *((name, pointer) for name in POINTERS))


class MatrixScan(torch.autograd.Function):
    """(x_BTM, beta (B, T, writes, H), gate (B, T, H), S_0 (B, H, d, d), delta) -> (o (B, T, H d), S_T).

    x has the query, the keys of all writes and their values side by side, so that M = (1 + 2 writes) H d; the gate may
    be null; `delta` says whether the delta rule holds.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, beta: Tensor, gate: Tensor | None, S0: Tensor, delta: bool
    ) -> tuple[Tensor, Tensor]:
        x, beta, S0 = _rows(x), beta.contiguous(), S0.contiguous()
        gate = None if gate is None else gate.contiguous()
        S, U = torch.empty_like(S0), S0.new_empty(*beta.shape, S0.shape[-1]) if delta else None
        O = S0.new_empty(*x.shape[:2], S0.shape[1] * S0.shape[2])
        _call("forward", x, beta, S0, delta, gate=gate, S=S, O=O, U=U)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x, beta, gate, S0, U)
        return O, S

    @staticmethod
    @first_only("use engine=reference")
    def backward(ctx: Any, dO: Tensor | None, dS: Tensor | None) -> Gradients:  # type: ignore[override]
        x, beta, gate, S0, U = ctx.saved_tensors
        B, T, H, d = *x.shape[:2], *S0.shape[1:3]
        dO = x.new_zeros(B, T, H * d) if dO is None else dO.contiguous()
        dS = torch.zeros_like(S0) if dS is None else dS.clone(memory_format=torch.contiguous_format)
        dx, dbeta = x.new_empty(x.shape), torch.empty_like(beta)
        dgate = None if gate is None else torch.empty_like(gate)
        _call("backward", x, beta, S0, U is not None, gate=gate, U=U, dO=dO, dS=dS, dX=dx, dbeta=dbeta, dgate=dgate)
        return dx, dbeta, dgate, dS, None


def _rows(x: Tensor) -> Tensor:
    found = readable(x)
    assert found is not None
    return found


def _call(name: str, x: Tensor, beta: Tensor, S0: Tensor, delta: bool, **tensors: Tensor | None) -> None:
    (B, T, writes, H), d = beta.shape, S0.shape[-1]
    given = {"X": x, "beta": beta, "S0": S0, **tensors}
    _check(given, x, (B, T, (1 + 2 * writes) * H * d), (B, H, d, d))
    state = MatrixState(T, B, H, d, writes, delta, *x.stride()[:2])
    for key, tensor in given.items():
        setattr(state, key, None if tensor is None else tensor.data_ptr())
    loop = getattr(load(x.dtype), f"matrix_state_{name}")
    loop.restype, loop.argtypes = None, (ctypes.POINTER(MatrixState), ctypes.c_int64, ctypes.c_int64, pointer)
    width = -(-d // lanes(x.dtype)) * lanes(x.dtype)
    states = 1 if name == "forward" else 3 + T * (writes + (tensors["gate"] is not None))
    over_rows(loop, state, B * H, x, width * (5 + d * states))


def _check(tensors: dict[str, Tensor | None], x: Tensor, shape: tuple[int, ...], state: tuple[int, ...]) -> None:
    """Refuse what C would misread.

    Raises:
        ValueError: a shape, dtype or device that does not fit the others.
    """
    S0 = tensors["S0"]
    if x.shape != shape or S0 is None or S0.shape != state:
        found = None if S0 is None else tuple(S0.shape)
        raise ValueError(f"inputs {tuple(x.shape)} and states {found} do not fit: {shape} and {state} are needed.")
    for name, tensor in tensors.items():
        if tensor is not None and (tensor.dtype != x.dtype or tensor.device != x.device):
            raise ValueError(f"{name} is {tensor.dtype} on {tensor.device}, the inputs {x.dtype} on {x.device}.")
