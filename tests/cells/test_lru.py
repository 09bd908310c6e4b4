"""The starts of the LRU and the rotation, what a rotation keeps, and the published scan of minGRU."""

import numpy as np
import pytest
import torch

import orthobench
from orthobench.cells.lru import LRU
from orthobench.cells.mingru import MinGRU, drive
from orthobench.cells.minlstm import MinLSTM
from orthobench.cells.rotation import Rotation
from orthobench.errors import ConfigError
from orthobench.models.build import build_optimizer
from orthobench.scan import recurrence
from tests.making import draw, random_cell, untouched_cell


def test_a_rotation_shows_real_and_imaginary_parts_in_turn() -> None:
    h = torch.complex(draw(2, 4), draw(2, 4, seed=3))
    assert torch.equal(random_cell(Rotation).features(h), torch.stack([h.real, h.imag], -1).flatten(1))


def test_a_unitary_rotation_keeps_the_modulus() -> None:
    cell, h0 = random_cell(Rotation, unitary=True), torch.complex(draw(2, 4), draw(2, 4, seed=3))
    with torch.no_grad():
        cell.U[:8] = 0
    h, _ = recurrence(cell, draw(2, 500, 3), (h0,))
    torch.testing.assert_close(h.detach().abs(), h0.abs()[:, None].expand(-1, 500, -1), rtol=1e-12, atol=0)


def test_a_rotation_by_pi_computes_parity() -> None:
    cell = random_cell(Rotation, input_size=2, hidden_size=1, unitary=True)
    with torch.no_grad():
        cell.U.zero_()
        cell.b["phi"].zero_()
        cell.U[2, 1] = torch.pi
    bits = torch.from_numpy(np.random.default_rng(1).integers(0, 2, size=(3, 200)))
    h, _ = recurrence(cell, bits, (torch.ones(3, 1, dtype=torch.complex128),))
    assert torch.equal(h[..., 0].real < 0, bits.cumsum(1) % 2 == 1)


def test_the_lrus_start() -> None:
    cell = untouched_cell(LRU, input_size=5, hidden_size=4000, r_min=0.9, r_max=0.999, max_phase=0.3)
    factor = torch.complex(*cell.matrices()).detach()
    assert 0.9 <= factor.abs().min() < 0.901
    assert 0.998 < factor.abs().max() <= 0.999
    assert 0 < factor.angle().min() < 0.29 < factor.angle().max() < 0.3
    middle = (0.9**2 + 0.999**2) / 2
    assert (factor.abs().square() < middle).double().mean() == pytest.approx(0.5, abs=0.03)  # four standard errors
    np.testing.assert_allclose(cell.g.exp().detach() ** 2, 1 - factor.abs() ** 2, atol=1e-6)  # drawn in float32
    assert cell.U.detach().std() == pytest.approx(10**-0.5, rel=0.02)
    assert cell.C.detach().std() == pytest.approx(4000**-0.5, rel=0.02)


def test_the_rotations_start() -> None:
    cell = untouched_cell(Rotation, hidden_size=4000)
    factor, _ = cell.coefficients(cell.project(torch.zeros(1, 1, 3).double()), ())
    modulus, phase = factor.detach().abs(), factor.detach().angle()
    assert 0.9 <= modulus.min() < 0.901
    assert 0.998 < modulus.max() <= 0.99901
    assert phase.min() < -3.1
    assert phase.max() > 3.1


def test_the_states_of_white_noise_have_unit_size() -> None:
    """The purpose of exp(g) = sqrt(1 - |lambda|^2)."""
    cell = untouched_cell(LRU, hidden_size=400, r_min=0.5, r_max=0.9)
    _, (last,) = recurrence(cell, draw(50, 100, 3))
    assert last.detach().abs().square().mean() == pytest.approx(1.0, rel=0.1)


def test_some_parameters_learn_slower_and_have_no_weight_decay() -> None:
    exp = orthobench.build(
        "model=lru", "model.features=output", "T=9", "optimizer.lr=0.1", "optimizer.weight_decay=0.5"
    )
    groups = build_optimizer(exp.settings, exp.model).param_groups
    assert [(group["name"], group["lr"], group["constrained"]) for group in groups] == [
        ("free", 0.1, False),
        ("free x 0.25", 0.025, True),
    ]
    cell = exp.model.cells[0]
    assert {id(p) for p in groups[1]["params"]} == {id(p) for p in (cell.nu, cell.theta, cell.g, cell.U)}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("model=lru", "model.r_min=0.9", "model.r_max=0.8"), "do not fit"),
        (("model=lru", "model.r_max=1.5"), "do not fit"),
        (("model=rotation", "model.r_max=1.0"), "do not fit"),
        (("model=mingru", "model.recurrent=scaled_cayley"), "MinGRU has no recurrent matrix"),
    ],
)
def test_a_start_outside_the_circle_and_a_map_without_a_matrix_are_refused(words: tuple[str, ...], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        assert orthobench.build(*words).model


def test_the_published_scan_in_logarithms_gives_the_same() -> None:
    """h = exp(cumsum(ln a) + logcumsumexp(ln b - cumsum(ln a))), which is why the paper's candidate is positive."""
    cell, x = random_cell(MinGRU), draw(2, 9, 3)
    a, b = (t.detach() for t in cell.coefficients(cell.project(x), ()))
    total = a.log().cumsum(0)
    expected = (total + torch.logcumsumexp(b.log() - total, dim=0)).exp()
    torch.testing.assert_close(recurrence(cell, x)[0].detach().transpose(0, 1), expected, rtol=1e-12, atol=1e-12)


def test_the_candidate_is_continuous_and_positive() -> None:
    v = torch.tensor([-800.0, -1e-9, 0.0, 1e-9, 3.0], dtype=torch.float64)
    found = drive("positive", v)
    assert (found >= 0).all()
    torch.testing.assert_close(found[1:4], torch.full((3,), 0.5).double(), atol=1e-8, rtol=0)
    assert found[4] == 3.5


@pytest.mark.parametrize("size", [-2000.0, 2000.0])
def test_gates_that_vanish_both_leave_finite_numbers(size: float) -> None:
    cell = random_cell(MinLSTM).float()
    with torch.no_grad():
        cell.b["f"].fill_(size)
        cell.b["i"].fill_(size)
    h, _ = recurrence(cell, draw(2, 5, 3).float())
    h.sum().backward()
    assert torch.isfinite(h).all()
    assert torch.isfinite(cell.U.grad).all()
