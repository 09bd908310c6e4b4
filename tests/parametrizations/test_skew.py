"""Free, skew and antisymmetric matrices, and how far one is from a unitary one; gradients of several reverses."""

import copy
from typing import Any

import numpy as np
import pytest
import torch

import orthobench
from orthobench.parametrizations.accumulated import accumulated
from orthobench.parametrizations.antisymmetric import Antisymmetric
from orthobench.parametrizations.base import deviation
from orthobench.parametrizations.free import Free
from orthobench.parametrizations.skew import block_diagonal, sample_cayley_angles, skew, upper_indices
from orthobench.parametrizations.skew_symmetric import SkewSymmetric


def test_a_skew_matrix_has_its_upper_triangle_row_by_row() -> None:
    A = skew(torch.tensor([1.0, 2.0, 3.0]), upper_indices(3), 3)
    assert A.tolist() == [[0, 1, 2], [-1, 0, 3], [-2, -3, 0]]
    assert skew(torch.zeros(0), upper_indices(1), 1).tolist() == [[0]]


@pytest.mark.parametrize(("n", "zero_rows"), [(4, 0), (5, 1)])
def test_blocks(n: int, zero_rows: int) -> None:
    flat = torch.as_tensor(block_diagonal(np.array([0.3, 0.7]), n))
    A = skew(flat, upper_indices(n), n)
    assert A[0, 1] == 0.3
    assert A[2, 3] == 0.7
    assert int((A == 0).all(dim=1).sum()) == zero_rows


def test_angles_of_the_released_seed() -> None:
    angles = sample_cayley_angles(np.random.RandomState(5544), 190)
    np.testing.assert_allclose(angles[:4], [0.13259759, 1.52380802, 0.24997443, 1.24312871], atol=5e-9)
    assert angles.sum() == pytest.approx(70.72553484, abs=5e-9)  # eight decimals are stated


N = 9


@pytest.mark.parametrize("beta", [0.0, 0.3, 0.75, 1.0])
def test_the_two_parts(beta: float) -> None:
    p = SkewSymmetric(N, np.random.default_rng(1), beta=beta, gamma=0.2).double()
    W, M = p().detach() + 0.2 * torch.eye(N), p.M.detach()
    torch.testing.assert_close((W - W.T) / 2, beta * (M - M.T))
    torch.testing.assert_close((W + W.T) / 2, (1 - beta) * (M + M.T))
    assert p.parameter_count() == N**2


def test_the_start_of_the_free_matrix() -> None:
    M = SkewSymmetric(200, np.random.default_rng(1), sigma=3.0).M.detach()
    assert float(M.std()) == pytest.approx(3 / 200, rel=0.02)


def test_antisymmetric_eigenvalues_lie_on_a_line() -> None:
    p = Antisymmetric(N, np.random.default_rng(1), gamma=0.25).double()
    values = torch.linalg.eigvals(p().detach())
    torch.testing.assert_close(values.real, torch.full((N,), -0.25).double(), rtol=0, atol=1e-12)
    assert p.parameter_count() == N * (N - 1) // 2
    assert p.contains(p(), 1e-12)
    assert not p.contains(p() + 0.01, 1e-12)


def test_every_entry_is_free(rng: np.random.Generator) -> None:
    p = Free(7, rng)
    assert p.parameter_count() == 49
    assert not p.constrained
    assert p.contains(100 * torch.ones(7, 7), 0.0)


@pytest.mark.parametrize(("fan_out", "bound"), [(None, np.sqrt(6 / 100)), (150, np.sqrt(6 / 200))])
def test_glorot_bound(rng: np.random.Generator, fan_out: int | None, bound: float) -> None:
    largest = float(Free(50, rng, fan_out=fan_out).weight.detach().abs().max())
    assert 0.97 * bound < largest <= bound  # 2,500 draws come that near


def test_deviation_is_the_frobenius_norm() -> None:
    re, im = np.random.default_rng(0).normal(size=(2, 5, 5))
    assert float(deviation(torch.as_tensor(np.linalg.qr(re + 1j * im)[0]))) < 1e-14  # rounding of 25 products
    assert float(deviation(2 * torch.eye(4))) == pytest.approx(6.0)  # 2^2 - 1 = 3, times sqrt(4)


TINY = ("task=adding", "T=8", "recipe=none", "model.hidden_size=6", "task.batch_size=8", "optimizer=sgd")
CASES = [
    ("model=urnn_full", "model.rms_gradient=true"),
    ("model=rnn", "model.recurrent_gradient_clip=1e-3"),
    ("model=gru", "model.recurrent_gradient_clip=1e-3"),
    ("model=scornn", "model.recurrent_gradient_clip=1e-3"),
]
every_case = pytest.mark.parametrize("words", CASES, ids=" ".join)


def gradients(exp: Any, model: Any, parts: int, several: bool) -> list[torch.Tensor]:
    """Of two steps' worth of reverses, each in so many parts; the second step's."""
    x, target, *_ = (t.double() if t.is_floating_point() else t for t in exp.task.sample(8, 0))
    for hook in accumulated(model):
        hook.several = several
    for _ in range(2):
        model.zero_grad()
        for a, b in zip(x.chunk(parts), target.chunk(parts), strict=True):
            (exp.task.loss(model(a)[0], b) / parts).backward()
        for hook in accumulated(model):
            hook.clear()
    return [p.grad for p in model.parameters()]


@every_case
def test_parts_of_a_batch_are_the_batch(words: tuple[str, ...]) -> None:
    exp = orthobench.build(*words, *TINY)
    model = exp.model.double()
    whole, parts, apart = (
        gradients(exp, copy.deepcopy(model), n, several) for n, several in ((1, False), (4, True), (4, False))
    )
    for a, b in zip(whole, parts, strict=True):
        torch.testing.assert_close(a, b)
    assert any(not torch.allclose(a, b, rtol=1e-3) for a, b in zip(whole, apart, strict=True))


def test_a_run_clips_the_gradient_of_its_step(tmp_path: Any) -> None:
    words = ("model=rnn", *TINY, "optimizer.lr=0.5", "trainer.max_steps=2", "trainer.accumulate_grad_batches=2")
    clipped, plain = (
        orthobench.build(*words, f"runs_root={tmp_path}", *more)
        for more in (("model.recurrent_gradient_clip=1e-3",), ())
    )
    model = copy.deepcopy(plain.model)
    clipped.run()
    for step in range(2):
        model.zero_grad()
        for i in range(2):
            x, target, *_ = plain.task.batch("train", 0, 2 * step + i)
            (plain.task.loss(model(x)[0], target) / 2).backward()
        for name, p in model.named_parameters():
            assert p.grad is not None
            g = p.grad.clamp(-1e-3, 1e-3) if "recurrent" in name else p.grad
            p.data.sub_(0.5 * g)
    for p, expected in zip(clipped.model.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(p, expected)
