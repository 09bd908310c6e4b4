"""The complex cell against NumPy, its two modReLUs, and the two ways in which it applies W."""

import math
from typing import Any

import numpy as np
import pytest
import torch

import orthobench
from orthobench.cells.complex_elman import ComplexElman
from orthobench.cells.pairs import parts
from orthobench.errors import ConfigError
from orthobench.parametrizations.givens import Givens
from orthobench.parametrizations.scaled_cayley import ScaledCayley
from orthobench.parametrizations.stiefel import Stiefel
from orthobench.parametrizations.unitary_product import UnitaryProduct
from orthobench.scan import choose, recurrence
from tests.making import draw, random_cell, tokens, untouched_cell

MAPS = [UnitaryProduct, Stiefel, Givens, ScaledCayley]


def cell(recurrent: type = UnitaryProduct, **options: Any) -> ComplexElman:
    """A cell of four units with random parameters, and a base point where it has one."""
    found = random_cell(ComplexElman, recurrent=recurrent, **options)
    assert isinstance(found, ComplexElman)
    return found


def rectified(z: np.ndarray, b: np.ndarray, modrelu: str) -> np.ndarray:
    if modrelu == "urnn":
        return z * np.maximum(np.abs(z) + b, 0) / (np.abs(z) + 1e-5)
    norm = np.abs(z) + 0.01
    return z / norm * np.maximum(norm + b, 0)


@pytest.mark.parametrize("modrelu", ["urnn", "eunn"])
@pytest.mark.parametrize("recurrent", MAPS)
def test_steps_in_numpy(recurrent: type, modrelu: str) -> None:
    found, x = cell(recurrent, modrelu=modrelu), draw(2, 5, 3)
    (W,) = (w.detach().numpy() for w in found.matrices())
    V = found.U.detach().numpy()[:4] + 1j * found.U.detach().numpy()[4:]
    h0, b = found.h0.detach().numpy(), found.b["h"].detach().numpy()
    h, expected = np.tile(h0[0] + 1j * h0[1], (2, 1)), []
    for x_t in x.numpy().transpose(1, 0, 2):
        h = rectified(x_t @ V.T + h @ W.T, b, modrelu)
        expected.append(h)
    hidden, (last,) = recurrence(found, x)
    assert hidden.dtype == torch.complex128
    np.testing.assert_allclose(hidden.detach().numpy(), np.stack(expected, axis=1), atol=1e-13)
    assert torch.equal(last, hidden[:, -1])


@pytest.mark.parametrize("recurrent", [UnitaryProduct, Givens])
def test_factor_by_factor_gives_the_same_states_and_gradients(recurrent: type) -> None:
    x, found = draw(2, 5, 3), []
    for stepwise in (False, True):
        one = cell(recurrent)
        one.recurrent["h"].stepwise = stepwise
        hidden, _ = recurrence(one, x)
        one.features(hidden).square().sum().backward()
        found.append((hidden.detach(), [p.grad for p in one.parameters()]))
    torch.testing.assert_close(*found, rtol=1e-11, atol=1e-12)


def test_gradients_are_those_of_finite_differences() -> None:
    one, x = cell(Stiefel), draw(2, 3, 3)
    names = [name for name, _ in one.named_parameters()]

    def features(*values: torch.Tensor) -> torch.Tensor:
        with torch.nn.utils.stateless._reparametrize_module(one, dict(zip(names, values, strict=True))):
            return one.features(recurrence(one, x)[0])

    assert torch.autograd.gradcheck(features, tuple(p.detach().clone().requires_grad_() for p in one.parameters()))


def test_a_zero_state_stays_zero_and_has_finite_gradients() -> None:
    one = cell(trainable_h0=False)
    hidden, _ = recurrence(one, torch.zeros(2, 3, 3).double())
    assert not hidden.any()
    one.features(hidden).sum().backward()
    assert all(p.grad.isfinite().all() for p in one.parameters() if p.grad is not None)


@pytest.mark.parametrize(("features", "width"), [("both", 8), ("real", 4)])
def test_features(features: str, width: int) -> None:
    one, h = cell(features=features), torch.complex(draw(2, 4), draw(2, 4, seed=3))
    seen = one.features(h)
    assert seen.shape == (2, width) == (2, one.feature_size)
    assert torch.equal(seen[:, :4], h.real)
    assert features == "real" or torch.equal(seen[:, 4:], h.imag)


def test_tokens_are_one_hot_vectors() -> None:
    one, x = cell(), tokens(2, 5)
    vectors = torch.nn.functional.one_hot(x, 3).double()
    torch.testing.assert_close(one.project(x), one.project(vectors), rtol=0, atol=1e-14)


def test_initial_values() -> None:
    one = untouched_cell(ComplexElman, input_size=20, hidden_size=2000)
    for values, bound in ((one.h0, math.sqrt(3 / 4000)), (one.b["h"], 0.01), (one.U, math.sqrt(6 / 4020))):
        assert values is not None
        assert 0.99 * bound < values.abs().max() <= bound
    assert one.U.shape == (4000, 20)
    assert one.h0 is not None
    assert one.h0.shape == (2, 2000)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["model=urnn_restricted", "model.hidden_size=512"], True),
        (["model=urnn_restricted", "model.hidden_size=64"], False),
        (["model=urnn_full", "model.hidden_size=512", "model.unitary_init=identity"], False),
        (["model=eunn", "model.hidden_size=1024", "model.capacity=2"], True),
    ],
)
def test_the_engines_reason_says_how_the_matrix_is_applied(words: list[str], said: bool) -> None:
    ((name, why),) = orthobench.build("task=copying", "recipe=none", *words).model.engines()
    assert name in ("native", "reference")  # the second without a C compiler
    assert ("factor by factor" in why) is said


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("model", ["urnn_restricted", "urnn_full", "eunn"])
def test_stacked_layers_and_carried_states(model: str, layers: int) -> None:
    words = ["task=copying", "recipe=none", "model.hidden_size=8", f"model.layers={layers}", "T=10"]
    exp = orthobench.build(f"model={model}", *words)
    x, _ = exp.task.sample(3, 1)
    whole, end = exp.model(x)
    first, carried = exp.model(x[:, :7])
    second, last = exp.model(x[:, 7:], carried)
    torch.testing.assert_close(torch.cat([first, second], dim=1), whole)
    torch.testing.assert_close(last, end)


def test_settings_that_do_not_apply_are_refused() -> None:
    words = ["model=urnn_restricted", "task=copying"]
    with pytest.raises(ConfigError, match="engine=fused cannot run ComplexElman"):
        choose(cell(), "fused")
    with pytest.raises(ConfigError, match=r"diagnostics\.jacobian=2 does not apply: .* complex hidden state"):
        orthobench.build(*words, "diagnostics.jacobian=2")
    with pytest.raises(ConfigError, match=r"model\.double_bias does not apply to model="):
        orthobench.build(*words, "model.double_bias=true")
    tied = ["model.hidden_size=8", "model.embedding_size=8", "model.tied=true"]
    with pytest.raises(ConfigError, match=r"model\.tied=true does not apply to 16 features of 8 units"):
        _ = orthobench.build("model=urnn_restricted", "task=recall", "recipe=none", "T=5", *tied).model


def test_precision_follows_the_parameters() -> None:
    model = orthobench.build("model=urnn_full", "recipe=none", "model.hidden_size=8", "T=5").model
    assert model.recurrent_weights()[0].dtype == torch.complex64
    assert model.double().recurrent_weights()[0].dtype == torch.complex128


@pytest.mark.parametrize("imaginary", [True, False])
@pytest.mark.parametrize("steps_first", [True, False])
def test_the_parts_of_a_state_and_their_gradients_are_torch_s_own(imaginary: bool, steps_first: bool) -> None:
    h = torch.randn(3, 4, 5, dtype=torch.complex128)
    h = (h.transpose(0, 1).contiguous().transpose(0, 1) if steps_first else h).requires_grad_()
    own = own_parts(h, imaginary)
    found, weights = parts(h, imaginary), torch.randn_like(own)
    assert torch.equal(found, own)
    assert found.transpose(0, 1).is_contiguous() == steps_first
    (gradient,) = torch.autograd.grad((found * weights).sum(), h)
    torch.testing.assert_close(gradient, torch.autograd.grad((own * weights).sum(), h)[0], rtol=0, atol=0)
    assert torch.autograd.gradcheck(lambda h: parts(h, imaginary), h)
    assert torch.autograd.gradgradcheck(lambda h: parts(h, imaginary).square(), h)
    jacobians = [
        torch.func.jacrev(lambda x, shown=shown: shown(torch.complex(x, x.square()), imaginary))(h.detach().real)
        for shown in (parts, own_parts)
    ]
    torch.testing.assert_close(*jacobians, rtol=0, atol=0)


def own_parts(h: torch.Tensor, imaginary: bool) -> torch.Tensor:
    return torch.cat([h.real, h.imag], dim=-1) if imaginary else h.real
