"""Parametrizations: every one against a matrix product of its size, and the usual alternatives against ours.

One call is the map forward and backward.
"""

from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any

import numpy as np
import torch
from torch import Tensor

from orthobench.bench.timing import Bench, Row, Work
from orthobench.common.registry import find, names
from orthobench.parametrizations.compact_wy import product
from orthobench.parametrizations.householder import Householder
from orthobench.parametrizations.matrix_exp import MatrixExp
from orthobench.parametrizations.plane_rotations import PlaneRotations
from orthobench.parametrizations.scaled_cayley import ScaledCayley
from orthobench.parametrizations.svd import SVD

SIZES, QUICK_SIZES = (64, 128, 190, 256, 512), (128,)


def measure(bench: Bench) -> Iterator[Row]:
    """All rows of this file."""
    for n in QUICK_SIZES if bench.quick else SIZES:
        yield from _every_map(bench, n)
        yield from _exponential(bench, n)
        yield from _cayley(bench, n)
        yield from _reflectors(bench, n)
        yield from _svd(bench, n)
        yield from _rotations(bench, n)
    n, B, T = 128, 50, 100
    yield from bench.compare("vprnn", f"n={n} B={B} T={T}", {**vprnn(bench, n, B, T)})


def _every_map(bench: Bench, n: int) -> list[Row]:
    W, out = torch.randn(n, n, device=bench.device), torch.empty(n, n, device=bench.device)
    works: dict[str, Work] = {"matrix product": lambda: torch.mm(W, W, out=out)}
    for name in names("parametrization"):
        cls: Any = find("parametrization", name, "parametrization")
        if cls.valid_size(n) is None:
            works[name] = _both_ways(_make(cls, n, bench), n, bench)
    return bench.compare("map", f"n={n}", works)


def _make(cls: Any, n: int, bench: Bench, **options: object) -> Any:
    return cls(n=n, rng=np.random.default_rng(0), **options).to(bench.device)


def _both_ways(module: Callable[[], Tensor], n: int, bench: Bench, *leaves: Tensor) -> Work:
    gradient = torch.randn(n, n, device=bench.device) / n  # a large one costs torch.matrix_exp more squarings
    parameters = leaves or tuple(module.parameters()) if isinstance(module, torch.nn.Module) else leaves

    def run() -> None:
        W = module()
        torch.autograd.grad(W, parameters, gradient.to(W.dtype), allow_unused=True) if W.requires_grad else None

    return run


def _exponential(bench: Bench, n: int) -> list[Row]:
    ours, naive = _make(MatrixExp, n, bench), _make(MatrixExp, n, bench)
    theta = naive.theta
    works = {
        "ours": _both_ways(ours, n, bench),
        "torch.matrix_exp": _both_ways(lambda: torch.matrix_exp(naive.skew()), n, bench, theta),
    }
    return bench.compare("matrix_exp", f"n={n}", works)


def _cayley(bench: Bench, n: int) -> list[Row]:
    ours = _make(ScaledCayley, n, bench)
    eye = torch.eye(n, dtype=torch.float64, device=bench.device)

    def inverted() -> Tensor:
        A = ours.skew().double()
        return torch.linalg.inv(eye + A) @ (eye - A) * ours.signs

    works = {"ours": _both_ways(ours, n, bench), "by an inverse": _both_ways(inverted, n, bench, ours.theta)}
    return bench.compare("scaled_cayley", f"n={n}", works)


def _reflectors(bench: Bench, n: int) -> Iterator[Row]:
    for m in (16, 32) if n == 512 or bench.quick else (16, 32, n):
        A = _make(Householder, n, bench, m=m).reflectors().detach().requires_grad_()
        eye = torch.eye(n, dtype=A.dtype, device=A.device)

        def sequential(A: Tensor = A, eye: Tensor = eye) -> Tensor:
            W = eye
            for a in A.unbind(1):
                W = W - torch.outer(W @ a, 2 / (a @ a) * a)
            return W

        def lapack(A: Tensor = A) -> Tensor:
            """LAPACK's reflectors are I - tau v v^T with v = 1 on the diagonal; m < n columns are padded."""
            v = A / A.diagonal()
            tau = 2 / v.square().sum(0)
            pad = n - A.shape[1]
            return torch.linalg.householder_product(
                torch.nn.functional.pad(v, (0, pad)), torch.nn.functional.pad(tau, (0, pad))
            )

        works = {
            "compact WY": _both_ways(lambda A=A: product(A), n, bench, A),
            "one after another": _both_ways(sequential, n, bench, A),
            "torch.linalg.householder_product": _both_ways(lapack, n, bench, A),
        }
        yield from bench.compare("householder", f"n={n} m={m}", works)


def _svd(bench: Bench, n: int) -> list[Row]:
    ours = _make(SVD, n, bench, m1=32, m2=32)

    def sequential() -> Tensor:
        W = torch.diag(ours.sigma())
        for a in reversed(ours.U().unbind(1)):
            W = W - torch.outer(a, 2 / (a @ a) * (a @ W))
        for a in reversed(ours.V().unbind(1)):
            W = W - torch.outer(W @ a, 2 / (a @ a) * a)
        return W.to(ours.s.dtype)

    works = {"ours": _both_ways(ours, n, bench)}
    works["one after another"] = _both_ways(sequential, n, bench, *ours.parameters())
    return bench.compare("svd", f"n={n} m1=m2=32", works)


def _rotations(bench: Bench, n: int) -> list[Row]:
    ours = _make(PlaneRotations, n, bench, k=8)
    eye = torch.eye(n, dtype=torch.float64, device=bench.device)

    def dense() -> Tensor:
        """The product of all sublayers as (n, n) matrices."""
        theta = ours.theta.double()
        factors = []
        for permutation, angles in zip(ours.permutations, theta, strict=True):
            c, s = torch.diag(angles.cos()), torch.diag(angles.sin())
            rotation = torch.cat([torch.cat([c, -s], 1), torch.cat([s, c], 1)])
            factors.append(rotation @ eye[permutation])
        return reduce(torch.matmul, factors)

    works = {"ours": _both_ways(ours, n, bench), "dense sublayers": _both_ways(dense, n, bench, ours.theta)}
    return bench.compare("plane_rotations", f"n={n} k=8", works)


def vprnn(bench: Bench, n: int, B: int, T: int) -> dict[str, Callable[[], Tensor]]:
    """VPRNN's recurrence with one matrix for all steps, and with its sublayers applied at every step."""
    ours = _make(PlaneRotations, n, bench)
    inputs, gradient = torch.randn(T, B, n, device=bench.device), torch.randn(B, n, device=bench.device)

    def run(multiply: Callable[[Tensor], Tensor]) -> Tensor:
        h = torch.zeros_like(gradient)
        for x in inputs.unbind(0):
            h = torch.relu(x + multiply(h))
        return torch.autograd.grad(h, ours.theta, gradient)[0]

    def once() -> Tensor:
        W = ours()
        return run(lambda h: h @ W.T)

    def sublayers() -> Tensor:
        layers = list(zip(ours.permutations, ours.theta.cos(), ours.theta.sin(), strict=True))

        def multiply(h: Tensor) -> Tensor:
            for p, c, s in layers:
                a, b = h[:, p].chunk(2, dim=1)
                h = torch.cat([a * c - b * s, b * c + a * s], dim=1)
            return h

        return run(multiply)

    return {"matrix once": once, "sublayers at every step": sublayers}
