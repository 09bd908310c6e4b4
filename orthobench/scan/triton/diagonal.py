"""Diagonal linear recurrences, h_t = a_t * h_{t-1} + b_t, real or complex: a thread for every unit of every sequence.

A program goes over time for a block of units. What some steps read is loaded while the steps before them are computed,
so that a step waits for no memory; neighbouring threads read neighbouring numbers. With G_t = dL/dh_t the backward
pass is db_t = G_t, da_t = conj(h_{t-1}) G_t, and G_{t-1} is conj(a_t) G_t plus the gradient that comes from outside.
"""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false, reportGeneralTypeIssues=false, reportOptionalMemberAccess=false, reportUnboundVariable=false, reportAssignmentType=false

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from orthobench.cells.members import Members
from orthobench.parametrizations.derivatives import first_only

BLOCK = 32  # units of a program, which is one warp: many small programs keep more of the GPU busy than few large ones
STEPS = {"forward": 24, "backward": 16}  # loaded at once, of real numbers; half as many of complex ones


def diagonal_scan(a: Tensor, b: Tensor, h0: Tensor) -> Tensor:
    """All states of h_t = a_t * h_{t-1} + b_t, (T, B, N).

    Args:
        a: (N,), (T, B, N), or what broadcasts to it; real where b is real.
        b: (T, B, N).
        h0: (B, N), or what broadcasts to it.
    """
    a = a[(None,) * (3 - a.dim())]
    a = a.expand(*a.shape[:2], b.shape[-1]).to(b.dtype)
    return DiagonalKernels.apply(a[None], b[None], h0.to(b.dtype).expand(b.shape[1:])[None])[0][0]


class DiagonalKernels(Members, torch.autograd.Function):
    """(a_STBN, b_STBN, h0_SBN) -> (h_STBN,); the axes of time and of sequences may have the size 1 in a."""

    @staticmethod
    def forward(a: Tensor, b: Tensor, h0: Tensor) -> tuple[Tensor]:
        a, b, h0 = _with_rows(a), _with_rows(b), _with_rows(h0).contiguous()
        H = b.new_empty(b.shape)
        _launch(diagonal_forward, a, b, (h0, H), "forward")
        return (H,)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor]) -> None:
        a, _, h0 = inputs
        ctx.save_for_backward(a, h0, *output)

    @staticmethod
    @first_only("use engine=reference")
    def backward(ctx: Any, dH: Tensor) -> tuple[Tensor, ...]:  # type: ignore[override]
        a, h0, H = ctx.saved_tensors
        a, h0 = _with_rows(a), _with_rows(h0).contiguous()
        db, dh0 = torch.empty_like(H), torch.empty_like(h0)
        da = H.new_empty(a.shape[0], a.shape[1], *H.shape[2:])
        _launch(diagonal_backward, a, _with_rows(dH), (h0, H, da, db, dh0), "backward")
        return da.sum_to_size(a.shape), db, dh0


def _with_rows(x: Tensor) -> Tensor:
    """The tensor as it is where the numbers of a row are neighbours, or a copy."""
    x = x.resolve_conj().resolve_neg()
    return x if x.stride(-1) == 1 or x.shape[-1] == 1 else x.contiguous()


def _launch(kernel: Any, a: Tensor, x: Tensor, others: tuple[Tensor, ...], way: str) -> None:
    """Start a kernel over all units of all sequences of all members; `others` are contiguous."""
    S, T, B, N = x.shape
    tensors, strides = [], []
    for one in (a, x):
        parts = 1 + one.is_complex()
        sizes = zip(one.shape[:3], one.stride()[:3], strict=True)
        strides += [0 if size == 1 else parts * stride for size, stride in sizes]
        tensors.append(_real(one))
    constants = {**layout(way, x.is_complex()), "N": N, "STEADY": a.shape[1] == 1}
    with torch.cuda.device_of(x):
        kernel[triton.cdiv(B * N, BLOCK), S](*tensors, *map(_real, others), T, B * N, *strides, **constants)


def _real(x: Tensor) -> Tensor:
    return torch.view_as_real(x) if x.is_complex() else x


def layout(way: str, complex: bool) -> dict[str, Any]:
    """The constants of a kernel, `forward` or `backward`, but for N and STEADY."""
    return {"COMPLEX": complex, "BLOCK": BLOCK, "STEPS": STEPS[way] >> complex, "num_warps": 1, "num_stages": 1}


NOT_SPECIALISED = ["T", "width", "a_member", "a_time", "a_row", "x_member", "x_time", "x_row"]


@triton.jit
def read(X, t, T, stride, inside, COMPLEX: tl.constexpr, STEPS: tl.constexpr, STEADY: tl.constexpr):
    """Both parts of the numbers at X of the steps t to t + STEPS - 1, zeros from T on; the second may be the first."""
    re, im = (), ()
    for i in tl.static_range(STEPS):
        if STEADY and i > 0:
            re, im = re + (re[0],), im + (im[0],)
        else:
            there = inside if STEADY else inside & (t + i >= 0) & (t + i < T)
            x = tl.load(X + i * stride, mask=there, other=0.0)
            y = x
            if COMPLEX:
                y = tl.load(X + i * stride + 1, mask=there, other=0.0)
            re, im = re + (x,), im + (y,)
    return re, im


@triton.jit
def write(X, re, im, there, COMPLEX: tl.constexpr):
    """Write both parts of numbers to X, of real ones the first."""
    tl.store(X, re, mask=there)
    if COMPLEX:
        tl.store(X + 1, im, mask=there)


@triton.jit
def place(A, X, width, a_member, a_row, x_member, x_row, N: tl.constexpr, COMPLEX: tl.constexpr, BLOCK: tl.constexpr):
    """A and X at the units of a program, its member, its columns, those that exist, and the numbers of a step."""
    PARTS: tl.constexpr = 2 if COMPLEX else 1
    member, column = tl.program_id(1).to(tl.int64), tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row, unit = (column // N).to(tl.int64), column % N * PARTS
    A += member * a_member + row * a_row + unit
    X += member * x_member + row * x_row + unit
    return A, X, member, column * PARTS, column < width, width.to(tl.int64) * PARTS


@triton.jit
def conjugate_product(a_re, a_im, u, v, COMPLEX: tl.constexpr):
    """Both parts of conj(a) (u + iv); of real numbers the second is v."""
    re, im = a_re * u, v
    if COMPLEX:
        re, im = re + a_im * v, a_re * v - a_im * u
    return re, im


@triton.jit
def steps_back(
    dA,
    dB,
    u,
    v,
    sums,
    a,
    x,
    h,
    h0,
    t,
    T,
    step,
    inside,
    COMPLEX: tl.constexpr,
    STEADY: tl.constexpr,
    STEPS: tl.constexpr,
):
    """dL/dh before the steps t to t + STEPS - 1 by that behind them; writes db and da, or adds da to `sums`."""
    sum_re, sum_im = sums
    for i in tl.static_range(STEPS - 1, -1, -1):
        there = inside & (t + i < T)
        p, q = tl.where(t + i == 0, h0[0][0], h[0][i]), tl.where(t + i == 0, h0[1][0], h[1][i])
        u += x[0][i]
        if COMPLEX:
            v += x[1][i]
        f, g = conjugate_product(p, q, u, v, COMPLEX)
        write(dB + i * step, u, v, there, COMPLEX)
        if not STEADY:
            write(dA + i * step, f, g, there, COMPLEX)
        else:
            sum_re += f
            if COMPLEX:
                sum_im += g
        u, v = conjugate_product(a[0][i], a[1][i], u, v, COMPLEX)
    return u, v, (sum_re, sum_im)


@triton.jit(do_not_specialize=NOT_SPECIALISED)
def diagonal_forward(
    A,
    X,
    H0,
    H,
    T,
    width,
    a_member,
    a_time,
    a_row,
    x_member,
    x_time,
    x_row,
    N: tl.constexpr,
    COMPLEX: tl.constexpr,
    STEADY: tl.constexpr,
    BLOCK: tl.constexpr,
    STEPS: tl.constexpr,
):
    """h_t for all t."""
    A, X, member, own, inside, step = place(A, X, width, a_member, a_row, x_member, x_row, N, COMPLEX, BLOCK)
    H += member * T * step + own
    H0 += member * step + own
    h_re, h_im = read(H0, 0, 1, 0, inside, COMPLEX, 1, True)
    u, v = h_re[0], h_im[0]
    a_re, a_im = read(A, 0, T, a_time, inside, COMPLEX, STEPS, STEADY)
    x_re, x_im = read(X, 0, T, x_time, inside, COMPLEX, STEPS, False)
    for t in range(0, T, STEPS):
        A += STEPS * a_time
        X += STEPS * x_time
        if not STEADY:
            b_re, b_im = read(A, t + STEPS, T, a_time, inside, COMPLEX, STEPS, False)
        next_re, next_im = read(X, t + STEPS, T, x_time, inside, COMPLEX, STEPS, False)
        for i in tl.static_range(STEPS):
            there = inside & (t + i < T)
            if COMPLEX:
                w = a_re[i] * u - a_im[i] * v + x_re[i]
                v = a_re[i] * v + a_im[i] * u + x_im[i]
                u = w
            else:
                u = a_re[i] * u + x_re[i]
            write(H + i * step, u, v, there, COMPLEX)
        H += STEPS * step
        x_re, x_im = next_re, next_im
        if not STEADY:
            a_re, a_im = b_re, b_im


@triton.jit(do_not_specialize=NOT_SPECIALISED)
def diagonal_backward(
    A,
    X,
    H0,
    H,
    dA,
    dB,
    dH0,
    T,
    width,
    a_member,
    a_time,
    a_row,
    x_member,
    x_time,
    x_row,
    N: tl.constexpr,
    COMPLEX: tl.constexpr,
    STEADY: tl.constexpr,
    BLOCK: tl.constexpr,
    STEPS: tl.constexpr,
):
    """da_t and db_t for all t from last to first, and dL/dh_0; X is the gradient from outside. A steady a has one sum.

    The last steps in memory, which may be beyond T, come first: what they read is zero, and so is what they hand on.
    """
    A, X, member, own, inside, step = place(A, X, width, a_member, a_row, x_member, x_row, N, COMPLEX, BLOCK)
    t = (T - 1) // STEPS * STEPS
    own, first = member * step + own, t.to(tl.int64)
    A += 0 if STEADY else first * a_time
    X += first * x_time
    dB += member * (T - 1) * step + own + first * step
    H += member * (T - 1) * step + own + (first - 1) * step
    dA += own if STEADY else member * (T - 1) * step + own + first * step
    h0 = read(H0 + own, 0, 1, 0, inside, COMPLEX, 1, True)
    a = read(A, t, T, a_time, inside, COMPLEX, STEPS, STEADY)
    x = read(X, t, T, x_time, inside, COMPLEX, STEPS, False)
    h = read(H, t - 1, T, step, inside, COMPLEX, STEPS, False)
    u, v = h0[0][0] * 0, h0[0][0] * 0
    sums = (u, v)
    while t >= 0:
        A -= STEPS * a_time
        X -= STEPS * x_time
        H -= STEPS * step
        if not STEADY:
            next_a = read(A, t - STEPS, T, a_time, inside, COMPLEX, STEPS, False)
        next_x = read(X, t - STEPS, T, x_time, inside, COMPLEX, STEPS, False)
        next_h = read(H, t - STEPS - 1, T, step, inside, COMPLEX, STEPS, False)
        u, v, sums = steps_back(dA, dB, u, v, sums, a, x, h, h0, t, T, step, inside, COMPLEX, STEADY, STEPS)
        dB -= STEPS * step
        if not STEADY:
            dA -= STEPS * step
            a = next_a
        x, h = next_x, next_h
        t -= STEPS
    write(dH0 + own, u, v, inside, COMPLEX)
    if STEADY:
        write(dA, sums[0], sums[1], inside, COMPLEX)
