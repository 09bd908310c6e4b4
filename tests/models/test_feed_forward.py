"""Deep networks without time, layer by layer."""

from typing import Any

import numpy as np
import pytest
import torch

import orthobench
from orthobench.errors import ConfigError
from orthobench.models.feed_forward import FeedForward
from orthobench.parametrizations.base import Parametrization
from orthobench.parametrizations.free import Free
from orthobench.run.learner import Learner
from tests.making import draw, randomise
from tests.run.test_matrix import step

SMALL = ("task=mnist_flat", "recipe=none", "model.hidden_size=20", "model.layers=5")


def network(layers: int = 4, residual: bool = False, **options: Any) -> FeedForward:
    rng = np.random.default_rng(1)

    def make_matrix(rows: int, columns: int) -> Parametrization:
        assert rows == columns
        return Free(rows, rng)

    return randomise(
        FeedForward(6, 3, make_matrix, rng, hidden_size=4, layers=layers, residual=residual, **options).double()
    )


def act(z: np.ndarray) -> np.ndarray:
    return np.where(z > 0, z, 0.1 * z)


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("layers", [1, 2, 3, 4])
def test_layers_in_numpy(layers: int, residual: bool) -> None:
    model, x = network(layers, residual), draw(5, 6)
    W, b = [p().detach().numpy() for p in model.matrices], model.b.detach().numpy()
    h = act(x.numpy() @ model.W_in.detach().numpy().T + model.b_in.detach().numpy())
    k = 0
    while k < layers:
        z = act(h @ W[k].T + b[k])
        if not residual:
            h, k = z, k + 1
        elif k + 1 < layers:
            h, k = h + z @ W[k + 1].T + b[k + 1], k + 2
        else:
            h, k = h + z, k + 1
    y, state = model(x)
    expected = h @ model.W_out.detach().numpy().T + model.b_out.detach().numpy()
    np.testing.assert_allclose(y.detach(), expected, atol=1e-13)
    assert state == []


@pytest.mark.parametrize("residual", [False, True])
def test_every_parameter_is_trained(residual: bool) -> None:
    model = network(residual=residual)
    model(draw(5, 6))[0].square().sum().backward()
    assert all(p.grad is not None and p.grad.any() for p in model.parameters())


def test_taps_are_layers() -> None:
    model, x, taps = network(), draw(5, 6), {2: None, 4: None, 9: None}
    y, _ = model(x, taps=taps)
    assert set(taps) == {2, 4}
    torch.testing.assert_close(taps[4] @ model.W_out.T + model.b_out, y)


@pytest.mark.parametrize("name", ["mlp", "resnet"])
def test_dense_layers_start_by_he(name: str) -> None:
    model = orthobench.build(f"model={name}", "task=mnist_flat").model
    for weight, columns in ((model.W_in, 784), (model.matrices[0](), 128), (model.W_out, 128)):
        assert float(weight.detach().std()) == pytest.approx((2 / columns) ** 0.5, rel=0.1)
    assert model.recurrent_weights() == []


@pytest.mark.parametrize(("name", "middle", "r"), [("spectral_mlp", 1.0, 0.01), ("spectral_resnet", 0.0, 0.1)])
def test_spectral_layers_have_their_singular_values_in_the_band(name: str, middle: float, r: float) -> None:
    model = orthobench.build(f"model={name}", *SMALL).model
    weights = model.recurrent_weights()
    assert [tuple(W.shape) for W in weights] == [(20, 20)] * 5
    for W in weights:
        values = torch.linalg.svdvals(W.detach())
        assert float(values.max()) <= middle + r + 1e-6
        assert float(values.min()) >= max(middle - r, 0) - 1e-6


def test_constrained_ends_are_rectangular() -> None:
    model = orthobench.build("model=spectral_mlp", "model.ends=constrained", *SMALL).model
    assert [tuple(W.shape) for W in model.recurrent_weights()] == [(784, 20), (20, 10), *[(20, 20)] * 5]
    assert all(torch.linalg.svdvals(W).sub(1).abs().max() < 0.011 for W in model.recurrent_weights())
    assert not hasattr(model, "W_in")
    with pytest.raises(ConfigError, match=r"model\.ends=constrained needs matrices that are not square"):
        _ = orthobench.build("model=mlp", "model.recurrent=householder", "model.ends=constrained", *SMALL).model


@pytest.mark.parametrize("layers", [1, 100])
@pytest.mark.parametrize("name", ["mlp", "resnet", "spectral_mlp", "spectral_resnet"])
@pytest.mark.sampled(3)
def test_a_signal_passes_any_depth(name: str, layers: int) -> None:
    """At the start, in both directions; a plain dense stack may lose most of it."""
    model: Any = orthobench.build(f"model={name}", "task=mnist_flat", "recipe=none", f"model.layers={layers}").model
    y, _ = model(torch.rand(4, 784, generator=torch.Generator().manual_seed(1)))
    y.square().sum().backward()
    assert y.isfinite().all()
    assert model.b_in.grad.isfinite().all()
    assert model.b_in.grad.norm() > (1e-12 if name == "mlp" else 1e-6)


@pytest.mark.parametrize("recurrent", ["householder", "scaled_cayley", "matrix_exp", "givens"])
def test_other_maps(recurrent: str) -> None:
    exp = orthobench.build("model=mlp", f"model.recurrent={recurrent}", *SMALL)
    assert len(exp.model.recurrent_weights()) == 5
    assert exp.model(torch.rand(2, 784))[0].shape == (2, 10)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["task=adding"], "model=mlp is a feed-forward model, and task=adding has sequences"),
        (["model=gru"], "model=gru reads sequences, and task=mnist_flat has none"),
        (["T=28"], "T=28 does not apply to task=mnist_flat, so leave it out: an image is read at once"),
        (["model.cell=gru"], r"model\.cell does not apply to model="),
        (["diagnostics.jacobian=1"], r"diagnostics\.jacobian=1 does not apply: .* no hidden state"),
        (["model.network=recurent"], r"model\.network=recurent is not known: did you mean 'recurrent'"),
    ],
)
def test_sequences_and_vectors_are_told_apart(words: list[str], told: str) -> None:
    given = {word.split("=")[0]: word for word in ("model=mlp", "task=mnist_flat", *words)}
    with pytest.raises(ConfigError, match=told):
        orthobench.build(*given.values())


def test_a_budget_of_parameters() -> None:
    exp = orthobench.build("model=spectral_mlp", "task=mnist_flat", "params=100000")
    assert abs(exp.parameters["total"] - 100000) < 2000


@pytest.mark.data
@pytest.mark.parametrize("name", ["mlp", "resnet", "spectral_mlp", "spectral_resnet"])
def test_one_training_step_on_the_images(name: str) -> None:
    exp = orthobench.build(f"model={name}", *SMALL)
    assert isinstance(step(exp), Learner)
    x, target = exp.task.batch("val", 0, 0)
    assert x.shape[1:] == (784,)
    assert 0 <= float(x.min()) <= float(x.max()) <= 1
    assert target.shape == x.shape[:1]
