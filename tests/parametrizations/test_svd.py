"""Matrices of a band of singular values, square and rectangular, and the real Schur form."""

from typing import Any

import numpy as np
import pytest
import torch

import orthobench
from orthobench.errors import ConfigError
from orthobench.layers import NNRNN as Layer
from orthobench.models.build import build_optimizer
from orthobench.models.schedules import Constant
from orthobench.parametrizations.base import deviation
from orthobench.parametrizations.compact_wy import product
from orthobench.parametrizations.rectangular_svd import RectangularSVD
from orthobench.parametrizations.schur import Schur
from orthobench.parametrizations.svd import SVD
from orthobench.run.learner import Learner

pytestmark = pytest.mark.usefixtures("float64")


def spread(n: int, rng: np.random.Generator, **options) -> SVD:
    """An SVD whose spectrum is spread over the band."""
    p = SVD(n, rng, **options)
    p.s.data = torch.as_tensor(rng.normal(size=n))
    return p


@pytest.mark.parametrize(("m1", "m2"), [(1, 1), (3, 7), (12, 12), (0, 4)])
def test_against_the_dense_product_and_its_low_rank_form(m1: int, m2: int, rng: np.random.Generator) -> None:
    p, G = spread(12, rng, m1=m1, m2=m2, r=0.3), torch.as_tensor(rng.normal(size=(12, 12)))
    U, sigma, V = product(p.U()), torch.diag(p.sigma()), product(p.V())
    torch.testing.assert_close(p(), U @ sigma @ V.T, atol=1e-13, rtol=0)
    s, P, Q = p.low_rank()
    assert P.shape == Q.shape == (12, m1 + m2)
    low = torch.diag(s) - P @ Q.T
    torch.testing.assert_close(low, p(), atol=1e-12, rtol=0)
    found, expected = (torch.autograd.grad((W * G).sum(), list(p.parameters())) for W in (low, p()))
    torch.testing.assert_close(found, expected, atol=1e-12, rtol=0)


def test_default_count_is_a_quarter(rng: np.random.Generator) -> None:
    p = SVD(64, rng)
    assert (p.m1, p.m2) == (16, 16)
    assert SVD.limits(64) == {"m1": 64, "m2": 64}


def test_start_is_orthogonal_and_the_identity_on_a_subspace(rng: np.random.Generator) -> None:
    W = SVD(64, rng, m1=8, m2=8)().detach().numpy()
    np.testing.assert_allclose(W.T @ W, np.eye(64), atol=1e-13)
    assert (np.abs(np.linalg.eigvals(W) - 1) < 1e-8).sum() == 64 - 16


@pytest.mark.parametrize("sigma_star", [1.0, 0.5])
def test_identity_start(sigma_star: float, rng: np.random.Generator) -> None:
    p = SVD(10, rng, sigma_star=sigma_star, identity_start=True)
    torch.testing.assert_close(p(), sigma_star * torch.eye(10), atol=1e-14, rtol=0)
    assert p.U.theta is not p.V.theta


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda rng: SVD(10, rng, m1=2, m2=3, identity_start=True), "identity_start"),
        (lambda rng: RectangularSVD(4, 6, rng, identity_start=True), "4 x 6"),
        (lambda _: orthobench.build("model=nnrnn", "model.hidden_size=7"), "pairs of units: use 6 or 8"),
        (
            lambda _: orthobench.build(*WORDS, "model.recurrent_group=all", "model.upper_decay=0.5").model,
            r"use model\.recurrent_group=P",
        ),
    ],
)
def test_what_cannot_be_is_refused(make: Any, message: str, rng: np.random.Generator) -> None:
    with pytest.raises(ConfigError, match=message):
        make(rng)


@pytest.mark.parametrize(("r", "sigma_star"), [(0.01, 1.0), (0.3, 1.0), (0.1, 0.0)])
@pytest.mark.sampled(1)
def test_the_band_holds_whatever_the_steps(r: float, sigma_star: float, rng: np.random.Generator, training) -> None:
    p = SVD(16, rng, r=r, sigma_star=sigma_star)
    training(p, lr=1.0).run(100)
    assert p.contains(p(), 1e-12)
    assert p.s.abs().max() > 3  # some values have reached the edge


def test_membership_is_the_band(rng: np.random.Generator) -> None:
    p = SVD(5, rng, r=0.1)
    assert p.contains(1.1 * torch.eye(5), 1e-12)
    assert not p.contains(1.11 * torch.eye(5), 1e-3)
    assert not p.contains(0.89 * torch.eye(5), 1e-3)


def test_rate_of_the_spectrum(rng: np.random.Generator) -> None:
    p = SVD(5, rng, sigma_lr_scale=50)
    assert p.learning_rate_scales() == {"s": 50}
    assert dict(p.named_parameters()).keys() >= p.learning_rate_scales().keys()


@pytest.mark.slow
def test_float32_parameters(rng: np.random.Generator, training) -> None:
    p = SVD(32, rng).float()
    training(p).run(1000)
    assert p.contains(p(), 1e-6)  # rounding each entry once: 6e-8 sqrt(n)


SHAPES = [(3, 7), (7, 3), (5, 5), (1, 4), (4, 1)]


@pytest.mark.parametrize(("rows", "columns"), SHAPES)
def test_a_rectangle_against_the_dense_product(rows: int, columns: int, rng: np.random.Generator) -> None:
    p = RectangularSVD(rows, columns, rng, m1="max", m2="max", r=0.3)
    p.s.data = torch.as_tensor(rng.normal(size=min(rows, columns)))
    U, V = (product(side()) for side in (p.U, p.V))
    middle = torch.zeros(rows, columns)
    middle.diagonal().copy_(p.sigma().detach())
    torch.testing.assert_close(p(), U @ middle @ V.T, atol=1e-13, rtol=0)
    expected = p.sigma().sort(descending=True).values
    torch.testing.assert_close(torch.linalg.svdvals(p()), expected, atol=1e-13, rtol=0)
    assert p.contains(p(), 1e-12)
    assert not p.contains(2 * p(), 1e-3)


@pytest.mark.parametrize(("rows", "columns", "count"), [(3, 7, 6 + 18 + 3), (7, 3, 18 + 6 + 3), (4, 4, 10 + 10 + 4)])
def test_parameter_count_of_a_rectangle(rows: int, columns: int, count: int, rng: np.random.Generator) -> None:
    assert RectangularSVD(rows, columns, rng, m1="max", m2="max").parameter_count() == count
    assert not RectangularSVD(rows, columns, rng, sigma_star=0.0)().any(), "a residual branch starts at zero"


N = 8


def random_form() -> Schur:
    rng = np.random.default_rng(3)
    p = Schur(N, rng, upper_bound=1.0).double()
    with torch.no_grad():
        for own in p.parameters():
            own.copy_(torch.from_numpy(rng.normal(size=own.shape)))
    return p


def test_the_eigenvalues_are_those_of_the_blocks() -> None:
    p = random_form()
    expected = (p.gains * torch.exp(1j * p.angles)).detach()
    expected = torch.cat([expected, expected.conj()])
    found = torch.linalg.eigvals(p().detach())
    assert float((found[:, None] - expected).abs().min(dim=1).values.max()) < 1e-9
    assert float((found[:, None] - expected).abs().min(dim=0).values.max()) < 1e-9


def test_it_is_not_normal_where_the_upper_part_is_not_zero() -> None:
    p = random_form()
    W = p().detach()
    assert float((W @ W.T - W.T @ W).norm()) > 0.1
    with torch.no_grad():
        p.T.zero_()
    W = p().detach()
    torch.testing.assert_close(W @ W.T, W.T @ W, rtol=0, atol=1e-12)


@pytest.mark.parametrize("init", ["cayley", "henaff", "uniform"])
def test_it_starts_orthogonal(init: str) -> None:
    assert deviation(Schur(N, np.random.default_rng(1), init=init).double()()) < 1e-6  # drawn in float32


@pytest.mark.parametrize("n", [2, 4, 20])
def test_size(n: int) -> None:
    count = Schur(n, np.random.default_rng(1)).parameter_count()
    assert count == n * (n - 1) // 2 + n * (n - 2) // 2 + n


def test_the_penalty_on_gains() -> None:
    p = random_form()
    assert p.penalty() is None
    p.gain_penalty = 0.3
    gains = p.gains.detach().numpy()
    penalty = p.penalty()
    assert float(penalty.detach()) == pytest.approx(0.3 * ((gains - 1) ** 2).sum(), rel=1e-14)
    found = torch.autograd.grad(penalty, list(p.parameters()), allow_unused=True)
    np.testing.assert_allclose(found[2], 0.6 * (gains - 1), rtol=1e-14)
    assert [g is None for g in found] == [True, True, False, True]


def test_any_cell_can_have_it() -> None:
    exp = orthobench.build("model=gru", "model.recurrent=schur", "model.hidden_size=6", "T=9")
    assert [type(W).__name__ for W in exp.model.constrained()] == ["Schur"]


WORDS = ("model=nnrnn", "task=copying", "T=6", "model.hidden_size=8", "recipe=none")


def gains_of_two(network: Any) -> None:
    with torch.no_grad():
        for W in network.constrained():
            W.gains.add_(1.0)


def test_training_alone_has_the_penalty() -> None:
    exp = orthobench.build(*WORDS, "model.gain_penalty=0.5", "model.layers=2")
    gains_of_two(exp.model)
    batch = exp.task.batch("train", 0, 0)
    learner = Learner(exp.model, exp.task, build_optimizer(exp.settings, exp.model), Constant(), exp.duration)
    measured = float(learner.measured("val", batch, 0)["loss"].detach())
    assert float(learner.training_step(batch, 0).detach()) == pytest.approx(measured + 0.5 * 4 * 2, rel=1e-6)
    layer = Layer(3, 8, num_layers=2, gain_penalty=0.5)
    gains_of_two(layer)
    assert float(layer.penalty().detach()) == pytest.approx(0.5 * 4 * 2)
    assert Layer(3, 8, gain_penalty=0.0).penalty() is None


def test_without_a_penalty_run_ids_are_those_of_before_it() -> None:
    """Made by the version that knew no penalty."""
    words = ("model.gain_penalty=0", "model.recurrent_group=all", "model.upper_decay=0")
    exp = orthobench.build("model=nnrnn", "task=copying", "T=200", "model.hidden_size=8", *words)
    assert exp.run_id == "copying-nnrnn-11a14c4375"


def test_the_groups_of_the_authors_code() -> None:
    """P alone has the orthogonal rate, and the part above the blocks a decay that nothing else has."""
    exp = orthobench.build(*WORDS, "optimizer.lr=0.1", "optimizer.lr_recurrent=0.01", "model.upper_decay=0.5")
    optimizer, W = build_optimizer(exp.settings, exp.model), exp.model.cells[0].recurrent["h"]
    found = {id(p): (rate, decay) for p in exp.model.parameters() for _, rate, decay in [optimizer.settings()[id(p)]]}
    assert found[id(W.theta)] == (0.01, 0.0)
    assert found[id(W.T)] == (0.1, 0.5)
    assert {found[id(p)] for p in exp.model.parameters() if p is not W.theta and p is not W.T} == {(0.1, 0.0)}
    before = W.T.detach().clone().add_(1.0)
    with torch.no_grad():
        W.T.copy_(before)
    for p in exp.model.parameters():
        p.grad = torch.zeros_like(p)
    groups = [group for group in optimizer.param_groups if "decay" in group]
    assert [group["name"] for group in groups] == ["free, decay 0.5"]
    optimizer.step()
    assert (before > W.T).all()
