"""PD-SSM in C; cells/pdssm.py has the equations.

The places that units go to are found for some steps at once, and C moves the units. With g = dL/dh_t, u = D_t h_{t-1}
and products of complex numbers as of pairs, dL/dP_ij = g_i . u_j is the gradient of softmax, so that C computes g
alone. By rows it is dL/dP_ij = (conj(D_i) g_i) . h_j.
"""

from typing import Any

import torch
from torch import Tensor

from orthobench.cells.base import State
from orthobench.parametrizations.derivatives import first_only
from orthobench.scan.fused.elman import Gradients
from orthobench.scan.native.library import Struct, long, pointer
from orthobench.scan.reference import projected

WINDOW = 64  # steps for which transitions are made at once: N^2 numbers each


class Moves(Struct):
    """The struct of the same name in pdssm.c."""

    _fields_ = (
        *((name, long) for name in ("T", "B", "N", "rows")),
        *((name, pointer) for name in ("plan", "D", "X", "H", "h0", "G", "dH", "dX", "dD")),
    )


def run(cell: Any, x: Tensor, state: State) -> tuple[Tensor, State]:
    """Run a `PDSSM` cell over x from `state`; see `reference.run`."""
    p_BTM, N, rows = projected(cell, x, ()).transpose(0, 1), cell.hidden_size, cell.selection == "rows"
    with torch.autocast(x.device.type, enabled=False):
        h, found = torch.view_as_real(state[0].expand(len(p_BTM), N).contiguous()), []
        for part in p_BTM.split(WINDOW, dim=1):
            shares, D, X = part.split([cell.sizes[0], 2 * N, 2 * N], dim=-1)
            D, X = (torch.stack(z.chunk(2, dim=-1), dim=-1) for z in (D, X))
            soft, chosen = cell.softened(shares.flatten(0, 1))
            soft = soft.unflatten(0, shares.shape[:2])
            H = MoveScan.apply(soft, chosen.reshape(D.shape[:-1]), D.contiguous(), X.contiguous(), h.contiguous(), rows)
            h, found = H[:, -1], [*found, H]
        H = torch.view_as_complex(torch.cat(found, dim=1))
        return H, (H[:, -1].clone(),)


class MoveScan(torch.autograd.Function):
    """(softmax (B, T, N, N), places (B, T, N), D, B x (B, T, N, 2), h_0 (B, N, 2), by rows) -> h (B, T, N, 2)."""

    @staticmethod
    def forward(ctx: Any, soft: Tensor, plan: Tensor, D: Tensor, X: Tensor, h0: Tensor, rows: bool) -> Tensor:
        H, (B, T, N) = torch.empty_like(X), plan.shape
        Moves(T, B, N, int(rows)).run("pdssm_forward", B, X, plan=plan.contiguous(), D=D, X=X, H=H, h0=h0)
        ctx.rows = rows
        ctx.save_for_backward(plan.contiguous(), D, h0, H)
        return H

    @staticmethod
    @first_only("use engine=reference")
    def backward(ctx: Any, dH: Tensor) -> Gradients:  # type: ignore[override]
        plan, D, h0, H = ctx.saved_tensors
        (B, T, N), dX, dD, G = plan.shape, torch.empty_like(D), torch.empty_like(D), torch.zeros_like(h0)
        given = {"plan": plan, "D": D, "H": H, "h0": h0, "dH": dH.contiguous()}
        Moves(T, B, N, int(ctx.rows)).run("pdssm_backward", B, D, 2 * N, G=G, dX=dX, dD=dD, **given)
        before, g, D = torch.cat([h0[:, None], H[:, :-1]], dim=1), dX, torch.view_as_complex(D)
        if ctx.rows:
            g = torch.view_as_real(D.conj() * torch.view_as_complex(g))
        else:
            before = torch.view_as_real(D * torch.view_as_complex(before))
        return g @ before.transpose(-1, -2), None, dD, dX, G, None
