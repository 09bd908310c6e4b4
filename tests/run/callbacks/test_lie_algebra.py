import math
from pathlib import Path

import numpy as np
import pytest
import torch

from orthobench.parametrizations.matrix_exp import MatrixExp
from orthobench.run.callbacks.lie_algebra import LieAlgebra
from tests.making import draw
from tests.run.callbacks.watching import common, finished, steps


def test_the_gradient_of_the_pass_that_was_listened_to(tmp_path: Path) -> None:
    p = MatrixExp(6, np.random.default_rng(1), init="henaff").double()
    callback, G = LieAlgebra(*common(tmp_path), [p]), draw(6, 6)
    callback.listen()
    (p() * G).sum().backward()
    found = callback.measure()
    assert found["gradient_cosine"] == pytest.approx(p.gradient_cosine(G), rel=1e-12)
    assert found["max_eigenphase"] == pytest.approx(p.max_eigenphase(), rel=1e-12)


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


def test_it_stops_listening(tmp_path: Path) -> None:
    p = MatrixExp(6, np.random.default_rng(1))
    callback = LieAlgebra(*common(tmp_path), [p])
    callback.listen()
    p().sum().backward()
    callback.measure()
    p().sum().backward()
    assert not callback._gradients
    assert set(callback.measure()) == {"max_eigenphase"}


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
