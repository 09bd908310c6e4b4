"""Lyapunov exponents, norms and gradients against cells whose dynamics are known, and against autograd."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import orthobench
from orthobench.cells.elman import Elman
from orthobench.cells.gru import GRU
from orthobench.cells.lstm import LSTM
from orthobench.errors import ConfigError
from orthobench.run.dynamics import _longest, along, dynamics, in_float64, matrices, newton_sweeps
from orthobench.run.load import Finished
from tests.making import draw, random_cell
from tests.run.finished import SMALL, finished

KNOWN = np.array([[1.1, 0.7, 0.0], [0.0, 0.5, -0.4], [0.0, 0.4, 0.5]])  # eigenvalues 1.1, 0.5 +- 0.4 i


def linear(W: np.ndarray) -> Any:
    """h_t = W h_{t-1} + U x_t + b."""
    cell: Any = random_cell(Elman, hidden_size=len(W), activation="leaky_relu", negative_slope=1.0)
    with torch.no_grad():
        next(cell.recurrent["h"].parameters()).copy_(torch.from_numpy(W))
    return cell


@pytest.mark.parametrize("factor", [0.8, 1.0])
def test_the_exponent_of_a_linear_cell_is_the_logarithm_of_its_spectral_radius(factor: float) -> None:
    with torch.no_grad():
        _, exponents, _ = along(linear(factor * KNOWN), draw(4, 400, 3) * 1e-3)
    assert exponents.numpy() == pytest.approx(np.full(4, math.log(1.1 * factor)), abs=0.01)  # O(1 / T)


@pytest.mark.parametrize("cls", [Elman, GRU, LSTM])
def test_growth_is_that_of_autograds_jacobian(cls: type) -> None:
    cell, x = random_cell(cls), draw(2, 7, 3)
    W, projected, start = cell.matrices(), cell.project(x).detach(), cell.initial_state(2)
    generator = torch.Generator().manual_seed(0)
    tangent = tuple(torch.randn(s.shape, dtype=s.dtype, generator=generator) for s in start)
    length = sum(v.pow(2).sum(1) for v in tangent) ** 0.5

    def end(*state: torch.Tensor) -> tuple[torch.Tensor, ...]:
        for p_t in projected.unbind(0):
            _, state = cell.advance(p_t, state, W)
        return state

    _, pushed = torch.autograd.functional.jvp(end, start, tangent)
    expected = torch.log(sum(v.pow(2).sum(1) for v in pushed) ** 0.5 / length) / 7
    with torch.no_grad():
        _, exponents, _ = along(cell, x)
    torch.testing.assert_close(exponents, expected.detach(), rtol=1e-7, atol=1e-8)


def test_newton_needs_one_sweep_for_a_linear_cell() -> None:
    with torch.no_grad():
        assert newton_sweeps(linear(KNOWN), draw(2, 50, 3)) == 1


@pytest.mark.parametrize("cls", [Elman, GRU, LSTM])
def test_newton_needs_fewer_sweeps_than_steps(cls: type) -> None:
    cell, x = random_cell(cls), draw(2, 30, 3)
    with torch.no_grad():
        assert 1 < newton_sweeps(cell, x) < 30
        assert newton_sweeps(cell, x[:, :1]) == 1
        assert newton_sweeps(cell, x, 1e-12) >= newton_sweeps(cell, x, 1e-3)


def test_a_step_that_forgets_everything_has_no_finite_exponent() -> None:
    cell: Any = random_cell(Elman, activation="relu")
    with torch.no_grad():
        cell.b["h"].fill_(-100.0)
        norms, exponents, _ = along(cell, draw(2, 5, 3))
    assert torch.equal(exponents, torch.full((2,), -math.inf, dtype=torch.float64))
    assert not norms.any()


def test_eigenvalues_and_singular_values() -> None:
    found = matrices(linear(KNOWN))["h"]
    values = sorted(np.linalg.eigvals(KNOWN), key=abs, reverse=True)
    assert found["modulus"] == pytest.approx([abs(v) for v in values])
    assert sorted(found["phase"]) == pytest.approx(sorted(np.angle(values)))
    assert found["singular_values"] == pytest.approx(np.linalg.svd(KNOWN, compute_uv=False))
    assert found["constrained"] is False


@pytest.mark.parametrize("words", [("task=adding", "T=6"), ("task=copying", "T=3")])
def test_states_and_gradients_of_a_run(words: tuple[str, ...], tmp_path: Path) -> None:
    run = orthobench.load(finished(tmp_path, "model=rnn", *words)[0])
    found = dynamics(run, sequences=5)
    model: Any = in_float64(run.model)
    x, target = (part[:5] for part in run.task.batch("test", 0, 0))
    inputs = torch.nn.functional.one_hot(x, 10).double() if x.dim() == 2 else x.double()
    cell, h, states = model.cells[0], torch.zeros(5, 4, dtype=torch.float64), []
    for x_t in inputs.unbind(1):
        h = torch.tanh(x_t @ cell.U.T + h @ cell.recurrent["h"]().T + cell.b["h"])
        h.retain_grad()
        states.append(h)
    read = h if run.task.readout == "last" else torch.stack(states, 1)
    target = target.double() if target.is_floating_point() else target
    run.task.loss(read @ model.output_weight.T + model.output_bias, target).backward()
    gradients: list[Any] = [state.grad for state in states]
    assert found["hidden_gradient"] == pytest.approx([float(g.norm()) for g in gradients], rel=1e-9)
    norms = [float(state.detach().norm(dim=1).mean()) for state in states]
    assert found["layers"][0]["state_norm"] == pytest.approx(norms, rel=1e-9)
    assert (found["T"], found["sequences"]) == (len(states), 5)


@pytest.mark.parametrize(
    "words",
    [
        ("model=lstm", "model.layers=2"),
        ("model=eunn", "engine=reference"),
        ("model=goru",),
        ("model=urnn_full", "engine=reference"),
        ("model=sgornn",),
        ("model=ncgru", "model.embedding_size=3"),
    ],
)
@pytest.mark.sampled(3)
def test_every_kind_of_cell(words: tuple[str, ...], tmp_path: Path) -> None:
    run = orthobench.load(finished(tmp_path, "task=copying", "T=4", *words)[0])
    before = {name: value.clone() for name, value in run.model.state_dict().items()}
    found = dynamics(run)
    assert len(found["layers"]) == len(run.model.cells)
    assert all(math.isfinite(value) for layer in found["layers"] for value in layer["lyapunov"])
    assert len(found["hidden_gradient"]) == len(found["layers"][0]["state_norm"]) == 24
    kept = [m for layer in found["layers"] for m in layer["matrices"].values() if m["constrained"]]
    assert len(kept) == len(run.model.constrained())
    for matrix in kept:
        assert matrix["singular_values"] == pytest.approx([1.0] * 4, abs=1e-5)
    assert all(torch.equal(value, before[name]) for name, value in run.model.state_dict().items())


def test_a_feed_forward_model_is_refused(tmp_path: Path) -> None:
    settings = orthobench.build("model=mlp", "task=mnist_flat").settings
    with pytest.raises(ConfigError, match="model=mlp is feed-forward"):
        dynamics(Finished(tmp_path, settings, {}, {}, "best"))


def test_nothing_is_computed_over_padding(tmp_path: Path) -> None:
    lengths = np.array([4, 9, 6, 9] * 10)
    np.savez(tmp_path / "my.npz", x=np.random.default_rng(1).normal(size=(40, 9, 2)), y=lengths % 2, lengths=lengths)
    words = ("task=series", f"task.path={tmp_path / 'my.npz'}", "task.batch_size=4", f"runs_root={tmp_path}")
    exp = orthobench.build(*SMALL[:5], "model=rnn", *words)
    exp.run()
    run = orthobench.load(exp.settings.folder)
    found = dynamics(run, sequences=3)
    x, _, asked = run.task.batch("test", 0, 0)
    longest = asked[:, 8].nonzero()[:3, 0]
    assert (found["T"], found["sequences"]) == (9, len(longest))
    _, exponents, _ = along(in_float64(run.model).cells[0], x[longest].double())  # type: ignore[attr-defined]
    assert found["layers"][0]["lyapunov"] == pytest.approx(exponents.tolist(), rel=1e-9)
    assert found["hidden_gradient"][-1] > 0


def test_steps_after_the_last_that_is_asked_for_are_left_out() -> None:
    x, target = torch.arange(24).reshape(4, 6), torch.arange(24).reshape(4, 6)
    asked = torch.tensor([[0, 1, 0, 1, 0, 0], [1, 0, 0, 0, 0, 0], [0, 0, 0, 1, 0, 0], [0, 0, 1, 0, 0, 0]]).bool()
    for part, whole in zip(_longest((x, target, asked), 8), (x, target, asked), strict=True):
        assert torch.equal(part, whole[[0, 2], :4])
    assert _longest((x, target[:, 0], asked), 1)[1].tolist() == [0]
