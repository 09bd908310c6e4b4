"""The plain and the scalar-gated recurrence in C where W is plane rotations, which are applied one by one.

    h_t = act(p_t + alpha W h_{t-1}) + beta h_{t-1},   W = R R_M ... R_2 R_1

R_i rotates two coordinates by an angle of its own, and R is a permutation. alpha is 1, or the first of the scalar gates
as in arguments.py. The backward pass is that of fused/elman.py; with y = R_i ... R_1 h and G = dL/dy, the rotation of a
and b by the angle t that acts last there has

    dt = G_b y_a - G_a y_b

and then both y and G are rotated back by t. So nothing is kept but the states, and W is never computed.
"""

from typing import Any, get_args

import numpy as np
import torch
from torch import Tensor

from orthobench.cells.activations import Activation
from orthobench.cells.base import Cell, State
from orthobench.cells.scalar_gated import ScalarGated
from orthobench.parametrizations.derivatives import first_only
from orthobench.parametrizations.hooks import heard
from orthobench.parametrizations.plane_rotations import PlaneRotations
from orthobench.scan.arguments import first_states, scaled_projection
from orthobench.scan.fused.elman import Gradients, first_gradient
from orthobench.scan.fused.pointwise import room_for_signs
from orthobench.scan.native.factored import APART
from orthobench.scan.native.library import call, lanes, readable, room
from orthobench.scan.native.projection import own_projection, project

ACTIVATIONS = get_args(Activation)


def suits(cell: Any) -> bool:
    """Return True if a cell's equations are the ones above, and nothing asks for W itself.

    The rotations are then at least as fast as a dense product, at every size and batch that was measured.
    """
    W, gated = cell.recurrent["h"], isinstance(cell, ScalarGated)
    if type(W) is not PlaneRotations or heard(W) or cell.recurrent_gradient_clip is not None:
        return False
    own = getattr(cell.matrices, "__func__", None) is (ScalarGated if gated else Cell).matrices
    return own and not (gated and cell.activation == "tanh")  # where alpha is not inside of act


def run(cell: Any, x: Tensor, state: State) -> tuple[Tensor, State]:
    """Run an `Elman` or `ScalarGated` cell that `suits` over x from `state`; see `reference.run`."""
    W, N, dtype = cell.recurrent["h"], cell.hidden_size, cell.U.dtype
    alpha, beta = (cell.alpha(), cell.beta()) if isinstance(cell, ScalarGated) else (W.theta.new_ones(()), None)
    p = own_projection(cell, x, dtype) if beta is None else scaled_projection(cell, x, alpha, project)
    p = p.to(dtype).contiguous()
    (h0,), b = first_states(state, p, N), alpha * cell.b["h"] if cell.activation == "modrelu" else None
    angles = W.theta
    if p.shape[-1] != N or angles.dtype != dtype or angles.numel() != W.k * W.n // 2:
        raise ValueError(
            f"projection of width {p.shape[-1]}, {dtype}, and {angles.numel()} angles, {angles.dtype}, do not fit {N} "
            f"units that are rotated {W.k} times."
        )
    with torch.autocast("cpu", enabled=False):
        values = torch.cat([alpha.reshape(1), W.theta.flatten()])
        h_TBN, last = RotatedElman.apply(p, values, b, h0, beta, plan(W), cell.activation, cell.negative_slope)
    return h_TBN.transpose(0, 1), (last,)


def plan(W: PlaneRotations) -> Tensor:
    """The rotations and the permutation as plane_rotations.h reads them."""
    pairs, order = W.in_place()
    i = np.concatenate([pairs.flatten(), order])
    return torch.from_numpy(np.concatenate([[len(pairs)], i % 2 * (W.n // 2 + APART) + i // 2]))


class RotatedElman(torch.autograd.Function):
    """(p_TBN, values, b, h_0, beta, plan, activation, slope) -> (h_TBN, h_T); a takes p's place in memory.

    `values` are alpha and the angles in the order in which they act.
    """

    @staticmethod
    def forward(
        ctx: Any,
        p_TBN: Tensor,
        values: Tensor,
        b: Tensor | None,
        h0: Tensor,
        beta: Tensor | None,
        plan: Tensor,
        activation: Activation,
        slope: float,
    ) -> tuple[Tensor, Tensor]:
        A = p_TBN.data
        H = A if beta is None else room(A)
        angles = values[1:].double()
        turns = torch.stack([angles.cos(), angles.sin()], dim=1).flatten().to(values.dtype)
        fixed = {"plan": plan, "factors": torch.cat([values[:1], turns])}
        settings = {"activation": ACTIVATIONS.index(activation), "slope": slope, "parameters": len(values)}
        saved = {"P": A, "H": None if beta is None else H, "h0": h0, "b": b, "beta": beta}
        saved["signs"] = room_for_signs(activation, A, any(ctx.needs_input_grad))
        call("rotated_elman_forward", A, settings, (), 2 * _state(A), 1, **saved, **fixed)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*saved.values(), *fixed.values())
        ctx.names, ctx.settings = (*saved, *fixed), settings
        return H, H[-1].clone()

    @staticmethod
    @first_only("use engine=reference")
    def backward(ctx: Any, dH: Tensor | None, dlast: Tensor | None) -> Gradients:  # type: ignore[override]
        saved = dict(zip(ctx.names, ctx.saved_tensors, strict=True))
        A, dH, K = saved["P"], readable(dH), ctx.settings["parameters"]
        dZ, G, dvalues = room(A), first_gradient(A, dH, dlast), A.new_empty(A.shape[1], K)
        db, dbeta = (None if saved[name] is None else torch.zeros_like(G) for name in ("b", "beta"))
        made = {"dH": dH, "dZ": dZ, "G": G, "db": db, "dbeta": dbeta, "dfactors": dvalues}
        call("rotated_elman_backward", A, ctx.settings, (), K * lanes(A.dtype) + 3 * _state(A), **saved, **made)
        sums = dvalues.sum(0), None if db is None else db.sum(0), G, None if dbeta is None else dbeta.sum()
        return dZ, *sums, None, None, None


def _state(A: Tensor) -> int:
    """Numbers of scratch that a block of rows takes, a state of which is in two parts."""
    return (A.shape[-1] + 2 * APART) * lanes(A.dtype)
