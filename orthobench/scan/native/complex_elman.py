"""Complex states in C; cells/complex_elman.py has the equations.

Only the states are kept, in place of the projection where that is computed first: |z| is the positive root of
r (r + b) = |h| (r + e), and z has the phase of h. With G = dL/dh_t and u = h / |h|, one step of the backward pass is

    dz = f G + f' |z| u Re(G conj(u)),   db = |z| / (|z| + e) Re(G conj(u)),   G <- W^H dz + what comes from outside
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from orthobench.cells.base import Cell, State
from orthobench.cells.complex_elman import OFFSETS, ComplexElman
from orthobench.parametrizations.derivatives import first_only
from orthobench.scan.fused.elman import Gradients, first_gradient
from orthobench.scan.native.checks import check
from orthobench.scan.native.factored import FactoredScan, PackedFactors, factors
from orthobench.scan.native.library import call, lanes, pack, readable, room, weight_gradient
from orthobench.scan.native.projection import multiplied, project


def run(cell: Any, x: Tensor, state: State) -> tuple[Tensor, State]:
    """Run a `ComplexElman` cell over x from `state`; see `reference.run`."""
    N, dtype, (shift, epsilon) = cell.hidden_size, cell.U.dtype.to_complex(), OFFSETS[cell.modrelu]
    h0, b, W = state[0].to(dtype).expand(len(x), N), cell.b["h"] + shift, _matrix(cell)
    if isinstance(W, PackedFactors):
        given, V = _inputs(cell, x)
        if given is None:
            given, V = own_complex_projection(cell, x, dtype), None
            check(given, h0[:N], h0[:N].shape, N)
        h_TBN, last = FactoredScan.apply(given, V, W.values, b, h0, epsilon, W)
    else:
        p = own_complex_projection(cell, x, dtype)
        check(p, W, (N, N), N)
        h_TBN, last = ComplexElmanScan.apply(p, W, b, h0, epsilon)
    return h_TBN.transpose(0, 1), (last,)


def _matrix(cell: Any) -> Tensor | PackedFactors:
    """W (N, N), or its factors where they are faster in C, which is not always where they are faster in Python."""
    if type(cell).matrices is not ComplexElman.matrices:
        return cell.matrices()[0]
    with torch.autocast("cpu", enabled=False):
        found = factors(cell.recurrent["h"], cell.U.dtype)
        return cell.recurrent["h"]().to(cell.U.dtype.to_complex()) if found is None else found


def own_complex_projection(cell: Any, x: Tensor, dtype: torch.dtype) -> Tensor:
    """The cell's projection, complex (T, B, N), in memory of its own.

    The rows of V are ordered so that its product with x has real and imaginary parts side by side.
    """
    if not _usual(cell):
        return cell.project(x).to(dtype).clone(memory_format=torch.contiguous_format)
    return torch.view_as_complex(project(x, _side_by_side(cell.U), None).unflatten(-1, (-1, 2)))


def _inputs(cell: Any, x: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """The inputs and their matrix V where `FactoredScan` projects them; None where the projection is another."""
    I, units = cell.U.shape[1], -(-len(x) // lanes(cell.U.dtype))
    if not _usual(cell) or units * (I + 1) > x.shape[0] * x.shape[1]:  # dU in units, beside dL/dz of all steps
        return None, None
    if multiplied(x, cell.U):
        return x.transpose(0, 1), _side_by_side(cell.U)
    if x.is_floating_point() or x.min() < 0:
        return None, None
    return x.T.long().clamp(max=I), F.pad(_side_by_side(cell.U), (0, 1))  # a token beyond V is a column of zeros


def _usual(cell: Cell) -> bool:
    """Return True if the projection is a product with V, and nothing else."""
    return type(cell).project is ComplexElman.project and type(cell).joint_bias is Cell.joint_bias


def _side_by_side(U: Tensor) -> Tensor:
    """The matrix V (2N, I) with the real and the imaginary part of each unit in turn."""
    return U.unflatten(0, (2, -1)).transpose(0, 1).flatten(0, 1)


def real_form(W: Tensor) -> Tensor:
    """The real matrix (2K, 2J) that does to rows with real and imaginary parts side by side what W (K, J) does."""
    return torch.view_as_real(torch.stack([W, 1j * W], dim=1)).flatten(2).flatten(0, 1)


def parts(z: Tensor) -> Tensor:
    """A complex tensor (..., N) as a real one (..., 2N) in the same memory."""
    return torch.view_as_real(z).flatten(-2)


class ComplexElmanScan(torch.autograd.Function):
    """(p_TBN, W, b, h_0, epsilon) -> (h_TBN, h_T); h takes p's place in memory."""

    @staticmethod
    def forward(ctx: Any, p_TBN: Tensor, W: Tensor, b: Tensor, h0: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
        H, h0, b = p_TBN.data, h0.resolve_conj().contiguous(), b.contiguous()
        call("complex_elman_forward", H, {"slope": epsilon}, (pack(real_form(W.T)),), P=H, h0=h0, b=b)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(H, h0, W, b)
        ctx.epsilon = epsilon
        return H, H[-1].clone()

    @staticmethod
    @first_only("use engine=reference")
    def backward(ctx: Any, dH: Tensor | None, dlast: Tensor | None) -> Gradients:  # type: ignore[override]
        H, h0, W, b = ctx.saved_tensors
        dH, dZ, G = readable(dH), room(H), first_gradient(H, dH, dlast)
        db = torch.zeros_like(G.real, memory_format=torch.contiguous_format)
        weights = (pack(real_form(W.conj())),)
        call("complex_elman_backward", H, {"slope": ctx.epsilon}, weights, P=H, b=b, dH=dH, dZ=dZ, G=G, db=db)
        outer = weight_gradient(parts(dZ), parts(H), parts(h0)).unflatten(0, (-1, 2)).unflatten(2, (-1, 2))
        dW = torch.complex(outer[:, 0, :, 0] + outer[:, 1, :, 1], outer[:, 1, :, 0] - outer[:, 0, :, 1])
        return dZ, dW, db.sum(0), G, None
