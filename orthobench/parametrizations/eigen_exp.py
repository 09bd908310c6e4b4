"""The exponential of a real skew matrix and its derivative, from one eigendecomposition of a Hermitian matrix.

    i A = V diag(w) V^H,   exp(A) = Re V diag(e^{-i w}) V^H

With G = dL/d exp(A) the gradient with respect to A is the Frechet derivative of exp at A^T applied to G,

    M = Re V [(V^H G V) * Phi] V^H,   Phi_jk = (e^{i w_j} - e^{i w_k}) / (i w_j - i w_k)
                                             = e^{i (w_j + w_k) / 2} sinc((w_j - w_k) / 2),

where the second form of Phi loses no digit at equal eigenvalues. (Autograd through `eigh` gives NaN there.)
Shapes: A, V and G are (n, n), w is (n,). Use float64: complex64 loses orthogonality at about 1e-6.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def spectrum(A: Tensor) -> tuple[Tensor, Tensor]:
    """w, ascending, and V with i A = V diag(w) V^H; the eigenvalues of A are -i w."""
    w, V = torch.linalg.eigh(1j * A)
    return w, V


def frechet_adjoint(w: Tensor, V: Tensor, G: Tensor) -> Tensor:
    """M, the gradient of <G, exp(A)> with respect to A taken as n^2 free numbers."""
    half = torch.polar(torch.ones_like(w), w / 2)
    sinc = torch.sinc((w[:, None] - w) / (2 * torch.pi))
    inner = V.mH @ G.to(V.dtype) @ V
    return (V @ (inner * torch.outer(half, half) * sinc) @ V.mH).real


class SkewExponential(torch.autograd.Function):
    """A -> exp(A) with the exact gradient."""

    @staticmethod
    def forward(ctx: Any, A: Tensor) -> Tensor:
        w, V = spectrum(A)
        ctx.save_for_backward(w, V)
        return ((V * torch.polar(torch.ones_like(w), -w)) @ V.mH).real

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, G: Tensor) -> Tensor:
        w, V = ctx.saved_tensors
        return frechet_adjoint(w, V, G)


class LieAlgebraGradient(torch.autograd.Function):
    """(A, W) -> W, with X = G W^T sent to A as its gradient; antisymmetrised, S = X - X^T.

    S is the derivative along W -> exp(eps Z) W, hence equals the exact gradient at A = 0 only.
    """

    @staticmethod
    def forward(ctx: Any, A: Tensor, W: Tensor) -> Tensor:
        ctx.save_for_backward(W)
        return W.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, G: Tensor) -> tuple[Tensor, None]:
        (W,) = ctx.saved_tensors
        return G @ W.T, None
