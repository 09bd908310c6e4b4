"""The real Schur form: its spectrum, its count, its gradient, and the orthogonal matrices that it starts from."""

import numpy as np
import pytest
import torch

import orthobench
from orthobench.errors import ConfigError
from orthobench.layers import NNRNN as Layer
from orthobench.models.build import build_optimizer
from orthobench.models.schedules import Constant
from orthobench.parametrizations.base import deviation
from orthobench.parametrizations.schur import Schur
from orthobench.run.learner import Learner

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


def test_gradient() -> None:
    p = random_form()
    own = dict(p.named_parameters())

    def form(*values: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(p, dict(zip(own, values, strict=True)), ())

    assert torch.autograd.gradcheck(form, tuple(own.values()))


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


def test_an_odd_size_is_refused() -> None:
    with pytest.raises(ConfigError, match="pairs of units: use 6 or 8"):
        orthobench.build("model=nnrnn", "model.hidden_size=7")


WORDS = ("model=nnrnn", "task=copying", "T=6", "model.hidden_size=8", "recipe=none")


def test_training_alone_has_the_penalty() -> None:
    exp = orthobench.build(*WORDS, "model.gain_penalty=0.5", "model.layers=2")
    with torch.no_grad():
        for W in exp.model.constrained():
            W.gains.add_(1.0)
    batch = exp.task.batch("train", 0, 0)
    learner = Learner(exp.model, exp.task, build_optimizer(exp.settings, exp.model), Constant(), exp.duration)
    measured = float(learner.measured("val", batch, 0)["loss"].detach())
    assert float(learner.training_step(batch, 0).detach()) == pytest.approx(measured + 0.5 * 4 * 2, rel=1e-6)


def test_a_layer_gives_its_penalty() -> None:
    layer = Layer(3, 8, num_layers=2, gain_penalty=0.5)
    with torch.no_grad():
        for W in layer.constrained():
            W.gains.add_(1.0)
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


def test_a_decay_without_a_group_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"use model\.recurrent_group=P"):
        assert orthobench.build(*WORDS, "model.recurrent_group=all", "model.upper_decay=0.5").model
