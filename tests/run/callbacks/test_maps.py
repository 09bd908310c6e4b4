"""What is watched of recurrent matrices: orthogonality, singular values, the Neumann norm and the Lie algebra."""

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor

from orthobench.parametrizations.base import Parametrization, deviation
from orthobench.parametrizations.free import Free
from orthobench.parametrizations.matrix_exp import MatrixExp
from orthobench.parametrizations.neumann_cayley import NeumannCayley
from orthobench.parametrizations.skew import skew
from orthobench.parametrizations.svd import SVD
from orthobench.recording.curve import Curve
from orthobench.run.callbacks.lie_algebra import LieAlgebra
from orthobench.run.callbacks.neumann import NeumannNorm
from orthobench.run.callbacks.orthogonality import Orthogonality
from orthobench.run.callbacks.singular_values import SingularValues, margin
from orthobench.tasks.duration import Duration
from tests.making import draw
from tests.run.callbacks.watching import common, finished, steps, trainer


@pytest.mark.parametrize(
    ("values", "expected"), [([1.0, 1.0], 0.0), ([1.25, 1.0], 0.25), ([1.1, 0.5], 0.5), ([-3.0, 1.0], 2.0)]
)
def test_margin_of_a_diagonal_matrix(values: list[float], expected: float) -> None:
    assert margin(torch.diag(torch.tensor(values))) == pytest.approx(expected, abs=1e-7)  # 1.1 in float32


def test_the_worst_singular_value_counts(tmp_path: Path) -> None:
    maps = [SVD(6, np.random.default_rng(seed), r=0.1) for seed in range(3)]
    torch.nn.init.constant_(maps[1].s, 2.0)
    found = SingularValues(*common(tmp_path), maps).measure()
    expected = maps[1].sigma()[0].item() - 1
    assert found == {"singular_value_margin": pytest.approx(expected, abs=1e-6)}  # W is cast to float32


@pytest.mark.parametrize(
    ("model", "asked", "looks"),
    [("spectral_rnn", "false", [0, 2, 4, 6]), ("rnn", "false", []), ("rnn", "true", [0, 2, 4, 6])],
)
def test_a_run_records_it_for_a_band_or_when_asked(model: str, asked: str, looks: list[int]) -> None:
    _, curve = finished(f"model={model}", f"diagnostics.singular_values={asked}")
    assert steps(curve, "singular_value_margin") == looks
    assert model == "rnn" or all(value <= 0.01 for _, value in curve.of("singular_value_margin"))


def test_the_neumann_norm_is_the_two_norm_of_the_inverse_times_the_step(tmp_path: Path) -> None:
    maps = [NeumannCayley(6, np.random.default_rng(seed)) for seed in range(2)]
    expected = []
    for scale, p in zip([0.01, 0.02], maps, strict=True):
        inverse = torch.linalg.inv(torch.eye(6) + p.skew().detach())
        delta = torch.full_like(p.theta, scale)
        expected.append(torch.linalg.matrix_norm(inverse @ skew(delta, p.indices, 6), 2).item())
        with torch.no_grad():
            p.theta -= delta
        p.after_step()
    found = NeumannNorm(*common(tmp_path), maps).measure()
    assert found == {"neumann_norm": pytest.approx(max(expected), rel=1e-4)}  # float32


@pytest.mark.parametrize("gates", ["[c]", "[c,r]"])
def test_a_run_stays_where_the_series_converges(gates: str) -> None:
    _, curve = finished("model=ncgru", f"model.orthogonal={gates}")
    assert steps(curve, "neumann_norm") == [2, 4, 6]
    assert all(0 < value < 1 for _, value in curve.of("neumann_norm"))


def test_the_gradient_of_the_pass_that_was_listened_to(tmp_path: Path) -> None:
    p = MatrixExp(6, np.random.default_rng(1), init="henaff").double()
    callback, G = LieAlgebra(*common(tmp_path), [p]), draw(6, 6)
    callback.listen()
    (p() * G).sum().backward()
    found = callback.measure()
    assert found["gradient_cosine"] == pytest.approx(p.gradient_cosine(G), rel=1e-12)
    assert found["max_eigenphase"] == pytest.approx(p.max_eigenphase(), rel=1e-12)
    p().sum().backward()
    assert not callback._gradients, "it listens to another pass"
    assert set(callback.measure()) == {"max_eigenphase"}


@pytest.mark.parametrize("gradient", ["exact", "lie_algebra", "geodesic"])
def test_both_gradients_agree_at_the_identity(tmp_path: Path, gradient: str) -> None:
    p = MatrixExp(6, np.random.default_rng(1), gradient=gradient, init="zeros").double()
    callback = LieAlgebra(*common(tmp_path), [p])
    callback.listen()
    (p() * draw(6, 6)).sum().backward()
    assert callback.measure() == {"max_eigenphase": pytest.approx(0), "gradient_cosine": pytest.approx(1)}


def test_the_worst_layer_counts(tmp_path: Path) -> None:
    maps = [MatrixExp(6, np.random.default_rng(1), init=init).double() for init in ("zeros", "henaff")]
    callback, G = LieAlgebra(*common(tmp_path), maps), draw(6, 6)
    callback.listen()
    sum((p() * G).sum() for p in maps).backward()
    assert callback.measure()["gradient_cosine"] == pytest.approx(maps[1].gradient_cosine(G))


@pytest.mark.parametrize("model", ["urnn_exp", "ugru"])
def test_a_run_records_both(model: str) -> None:
    exp, curve = finished(f"model={model}")
    assert steps(curve, "gradient_cosine") == steps(curve, "max_eigenphase") == [2, 4, 6]
    assert all(value < math.pi / 2 for _, value in curve.of("max_eigenphase"))
    assert all(0 < value <= 1 + 1e-12 for _, value in curve.of("gradient_cosine"))
    assert not any(p._forward_hooks for p in exp.model.constrained())


def test_watching_changes_no_number(tmp_path: Path) -> None:
    """The weights after six steps are the same with a look at every step and with none."""
    ends = []
    for every in (1, 100):
        exp, _ = finished("model=urnn_exp", f"trainer.log_every_n_steps={every}", f"runs_root={tmp_path / str(every)}")
        ends.append(torch.cat([p.detach().flatten() for p in exp.model.parameters()]))
    assert torch.equal(*ends)


EYE = torch.eye(3, dtype=torch.float64)


@pytest.fixture
def watcher(tmp_path: Path) -> Orthogonality:
    """Measures every 10 steps into a curve of its own."""
    curve = Curve(tmp_path / "metrics.csv")
    curve.cut(0)
    return Orthogonality(curve, Duration(20, 1, 100, 20), 10)


class Doubled(Free):
    """Twice an orthogonal matrix."""

    constrained: ClassVar[bool] = True

    def contains(self, W: Tensor, tolerance: float) -> bool:
        return float(deviation(W / 2)) <= tolerance


class Plain(Doubled):
    contains = Parametrization.contains


def module(*weights: Tensor, cls: type = Plain) -> Any:
    maps = [cls(3, np.random.default_rng(1)) for _ in weights]
    return SimpleNamespace(model=SimpleNamespace(recurrent_weights=lambda: list(weights), constrained=lambda: maps))


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ([EYE], 0.0),
        ([2 * EYE], 3 * math.sqrt(3)),
        ([EYE.flip(0)], 0.0),
        ([torch.diag(torch.tensor([1.0, 2.0, 3.0]).double())], math.sqrt(9 + 64)),
        ([1j * EYE], 0.0),  # unitary
        ([EYE, 2 * EYE, EYE], 3 * math.sqrt(3)),  # the worst of the layers
    ],
)
def test_is_the_frobenius_norm_of_the_deviation(watcher: Orthogonality, weights: list[Tensor], expected: float) -> None:
    watcher.record(trainer(), module(*weights))
    assert watcher.last == pytest.approx(expected, rel=1e-14)


def test_every_measurement_is_in_the_curve_and_the_largest_and_the_latest_are_kept(watcher: Orthogonality) -> None:
    for step, scale in [(0, 1.0), (10, 2.0), (20, 1.0)]:
        watcher.record(trainer(step), module(scale * EYE))
    assert watcher.curve.of("orthogonality") == [[0, 0.0], [10, pytest.approx(3 * math.sqrt(3))], [20, 0.0]]
    assert (watcher.max, watcher.last) == (pytest.approx(3 * math.sqrt(3)), 0.0)


def test_the_first_step_beyond_the_tolerance_is_kept(watcher: Orthogonality) -> None:
    for step, scale in [(0, 1.0), (10, 1.001), (20, 1.01), (30, 2.0)]:
        assert watcher.lost is None or step > 20
        watcher.record(trainer(step), module(EYE, scale * EYE))
    assert watcher.lost == 20


@pytest.mark.parametrize(("scale", "lost"), [(2.0, None), (1.0, 10), (math.nan, 10)])
def test_a_matrix_is_held_against_its_own_set(watcher: Orthogonality, scale: float, lost: int | None) -> None:
    watcher.record(trainer(0), module(2 * EYE, cls=Doubled))
    watcher.record(trainer(10), module(scale * EYE, cls=Doubled))
    assert watcher.lost == lost


def test_there_is_nothing_without_a_constraint(watcher: Orthogonality) -> None:
    watcher.record(trainer(), module())
    assert (watcher.max, watcher.last, watcher.curve.rows()) == (None, None, [])


@pytest.mark.parametrize(("step", "rows"), [(1, 0), (9, 0), (10, 1), (15, 0), (20, 1)])
def test_measures_at_the_start_and_at_the_steps_that_are_due(watcher: Orthogonality, step: int, rows: int) -> None:
    watcher.on_train_start(trainer(), module(EYE))
    watcher.on_train_batch_end(trainer(step), module(EYE), None, None, 0)
    assert watcher.curve.of("orthogonality") == [[0, 0.0], [step, 0.0]][: 1 + rows]


def test_a_resumed_run_remembers_the_largest(watcher: Orthogonality) -> None:
    watcher.record(trainer(), module(2 * EYE))
    resumed = Orthogonality(watcher.curve, watcher.duration, watcher.every)
    resumed.load_state_dict(watcher.state_dict())
    resumed.record(trainer(1), module(EYE))
    assert (resumed.max, resumed.last) == (watcher.max, 0.0)
