"""The exponential of a real skew-symmetric matrix and its derivative, by matrix products alone.

    exp(A) = T(A / 2^s)^{2^s},   T the Taylor polynomial of degree 18, five products (Bader, Blanes & Casas, table 4)

s is the least integer with ||A / 2^s||_2 <= 1.09, where the truncation error of T is below rounding. Eigenvalues +- i w
come in pairs, hence ||A||_2 <= (||A^6||_F / sqrt 2)^{1/6}, a bound that is a few per cent too large; one by the 1-norm
would cost two more squarings. On a GPU s is not read, because that would wait: all `MOST` squarings are computed, and
those beyond s are dropped.

The backward pass goes through every product in turn. Only the part of dL/dA on skew matrices is needed, so that of a
square takes one product, not two: with C = P P, P skew and S = dL/dC + (dL/dC)^T, it is -(S P - (S P)^T) / 2.
Shapes: all matrices are (n, n). Use float64: rounding grows with every squaring.
Bader, Blanes & Casas (2019), "Computing the matrix exponential with an optimized Taylor polynomial approximation".
"""

import math
from functools import cache
from typing import Any

import torch
from torch import Tensor

from orthobench.parametrizations import base
from orthobench.parametrizations.derivatives import first_only
from orthobench.parametrizations.traced import maps_derivatives, traced

BOUND = 1.09
MOST = 12  # squarings on a GPU: enough up to a norm of 4,400, beyond which the result is NaN
DEGREES = (1, 2, 3, 6)
# Rows B_1 ... B_5 over the columns A, A^2, A^3, A^6:  T = B_2 + (B_3 + Q) Q,  Q = B_1 B_5 + B_4
MIXED = (
    (-1.00365581030144618291e-01, -8.02924648241156932449e-03, -8.92138498045729985177e-04, 0.0),
    (3.97849749499645077844e-01, 1.36783778460411720168e00, 4.98289622525382669416e-01, -6.37898194594723280150e-04),
    (1.68015813878906206114e00, 5.71779846478865511061e-02, -6.98210122488052056106e-03, 3.34975017086070470649e-05),
    (-6.76404519071381882256e-02, 6.75961301770459654925e-02, 2.95552570429315521194e-02, -1.39180257516060693404e-05),
    (0.0, -9.23364619367118555360e-02, -1.69364939002081722752e-02, -1.40086798182036094347e-05),
)
IDENTITY = {2: -1.09676396052962061844e01, 3: -9.04316832390810593223e-02}  # the coefficients of I in B_3 and B_4


def exponential(A: Tensor) -> Tensor:
    """exp(A) with the exact gradient on skew matrices, for a skew A (n, n)."""
    if traced(A) or maps_derivatives():
        return torch.linalg.matrix_exp(A)
    return SkewExponential.apply(A)[0]


class SkewExponential(torch.autograd.Function):
    """A -> exp(A), and the tensors that its backward pass needs. The gradient is the skew part of dL/dA."""

    @staticmethod
    def forward(A: Tensor) -> tuple[Tensor, ...]:
        powers = A.new_empty(4, *A.shape)
        first, second, third, sixth = powers
        first.copy_(A)
        torch.mm(first, first, out=second)
        torch.mm(second, first, out=third)
        torch.mm(third, third, out=sixth)
        s, (mixed, degrees) = _squarings(sixth), _constants(A.dtype, A.device)
        mixing = mixed * torch.exp2(-s * degrees)
        unread = base.reading_waits(A)
        if unread:
            mixing = mixing.where(s <= MOST, math.nan)
        B = (mixing @ powers.flatten(1)).view(-1, *A.shape)
        for i, share in IDENTITY.items():
            B[i].diagonal().add_(share)
        Q = torch.addmm(B[3], B[0], B[4])
        roots = [torch.addmm(B[1], B[2].add_(Q), Q)]
        for i in range(MOST if unread else int(s)):
            square = roots[-1] @ roots[-1]
            roots.append(torch.where(i < s, square, roots[-1]) if unread else square)
        return roots.pop(), powers, mixing, B, Q, s, *roots

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: tuple[Tensor, ...]) -> None:
        ctx.mark_non_differentiable(*output[1:])
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*inputs, *output[1:])

    @staticmethod
    @first_only("use model.recurrent=scaled_cayley")
    def backward(ctx: Any, G: Tensor | None, *_: None) -> Tensor | None:
        if G is None:
            return None
        _, powers, mixing, (B1, _, B3, _, B5), Q, s, *roots = ctx.saved_tensors  # Q has been added to B_3
        (A, second, third, _), unread = powers, base.reading_waits(powers)
        for i, root in reversed(list(enumerate(roots))):
            before = torch.addmm(G @ root.T, root.T, G)
            G = torch.where(i < s, before, G) if unread else before
        dB = G.new_empty(len(mixing), *G.shape)
        dB[1] = G
        torch.mm(G, Q.T, out=dB[2])
        torch.addmm(dB[2], B3.T, G, out=dB[3])
        torch.mm(dB[3], B5.T, out=dB[0])
        torch.mm(B1.T, dB[3], out=dB[4])
        dA, d_second, d_third, d_sixth = (mixing.T @ dB.flatten(1)).view_as(powers)
        d_third = _skew_part(d_third.addmm_(d_sixth + d_sixth.T, third, alpha=-1))
        d_second.addmm_(d_third, A, alpha=-1)
        return _skew_part(dA.addmm_(second, d_third).addmm_(d_second + d_second.T, A, alpha=-1))

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int], A: Tensor) -> tuple[Any, Any]:
        """Map one matrix after another, each with its own number of squarings: the same bits as without vmap."""
        found = [SkewExponential.apply(one)[0] for one in A.unbind(in_dims[0])]
        return (torch.stack(found),), (0,)


class LieAlgebraGradient(torch.autograd.Function):
    """(A, W) -> W, where A gets the gradient X = G W^T, which `skew` turns into S = X - X^T.

    S is the derivative along W -> exp(eps Z) W, hence equals the exact gradient at A = 0 only.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(A: Tensor, W: Tensor) -> Tensor:
        return W.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(output)

    @staticmethod
    @first_only("use model.recurrent=scaled_cayley")
    def backward(ctx: Any, G: Tensor) -> tuple[Tensor, None]:
        (W,) = ctx.saved_tensors
        return G @ W.T, None


def _squarings(sixth: Tensor) -> Tensor:
    """The number of squarings s from A^6; zero where A^6 is not finite, so that the result is not finite either."""
    norm = (torch.linalg.matrix_norm(sixth) / math.sqrt(2)) ** (1 / 6)
    return torch.frexp(norm.nan_to_num(0.0, 0.0) / BOUND).exponent.clamp(min=0)


@cache
def _constants(dtype: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor]:
    """`MIXED` as a tensor, and the degree of each of its columns."""
    return torch.tensor(MIXED, dtype=dtype, device=device), torch.tensor(DEGREES, dtype=dtype, device=device)


def _skew_part(M: Tensor) -> Tensor:
    return (M - M.T) / 2
