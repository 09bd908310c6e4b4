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
from orthobench.parametrizations.compact_wy import product
from orthobench.parametrizations.householder import Householder
from orthobench.parametrizations.matrix_exp import MatrixExp
from orthobench.parametrizations.plane_rotations import PlaneRotations
from orthobench.parametrizations.scaled_cayley import ScaledCayley
from orthobench.registry import find, names

SIZES, QUICK_SIZES = (64, 128, 190, 512), (64, 190)


def measure(bench: Bench) -> Iterator[Row]:
    """All rows of this file."""
    for n in QUICK_SIZES if bench.quick else SIZES:
        yield from _every_map(bench, n)
        yield from _exponential(bench, n)
        yield from _cayley(bench, n)
        yield from _reflectors(bench, n)
        yield from _rotations(bench, n)


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
    gradient = torch.randn(n, n, device=bench.device)
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
    for m in (16, n) if n < 512 and not bench.quick else (16,):
        A = _make(Householder, n, bench, m=m).reflectors().detach().requires_grad_()
        eye = torch.eye(n, dtype=A.dtype, device=A.device)

        def sequential(A: Tensor = A, eye: Tensor = eye) -> Tensor:
            W = eye
            for a in A.unbind(1):
                W = W - torch.outer(W @ a, 2 / (a @ a) * a)
            return W

        def lapack(A: Tensor = A) -> Tensor:
            """Its reflectors are I - tau v v^T with v = 1 on the diagonal; m < n columns are padded."""
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


def _rotations(bench: Bench, n: int) -> list[Row]:
    ours = _make(PlaneRotations, n, bench, k=8)
    eye = torch.eye(n, dtype=torch.float64, device=bench.device)

    def dense() -> Tensor:
        """Every sublayer as an (n, n) matrix, multiplied."""
        theta = ours.theta.double()
        factors = []
        for permutation, angles in zip(ours.permutations, theta, strict=True):
            c, s = torch.diag(angles.cos()), torch.diag(angles.sin())
            rotation = torch.cat([torch.cat([c, -s], 1), torch.cat([s, c], 1)])
            factors.append(rotation @ eye[permutation])
        return reduce(torch.matmul, factors)

    works = {"ours": _both_ways(ours, n, bench), "dense sublayers": _both_ways(dense, n, bench, ours.theta)}
    return bench.compare("plane_rotations", f"n={n} k=8", works)
