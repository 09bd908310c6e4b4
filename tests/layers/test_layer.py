"""Layers against `recurrence`, against training with explicit `after_step`, and as torch expects of a module."""

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.parallel import replicate

import orthobench
from orthobench import layers
from orthobench.cells.gru import GRU
from orthobench.errors import ConfigError
from orthobench.layers import NCGRU, URNN, Layer, Recurrent, ScoRNN, SpectralRNN
from orthobench.parametrizations import base
from orthobench.parametrizations.householder import Householder

pytestmark = pytest.mark.sampled(7)

NAMED = [name for name in layers.__all__ if name not in ("Layer", "Recurrent", "URNN", "frozen")]
KINDS: dict[str, dict[str, Any]] = {
    **{name: {} for name in NAMED},
    "URNN restricted": {},
    "URNN full": {"kind": "full"},
    "URNN full rms": {"kind": "full", "rms_gradient": True},
    "URNN exp": {"kind": "exp"},
    "Recurrent lstm": {"cell": "lstm", "recurrent": "householder"},
    "UGRU geodesic": {"gradient": "geodesic"},
    "Recurrent geodesic": {"recurrent": "matrix_exp", "gradient": "geodesic"},
}


def make(kind: str, *sizes: int, **kwargs: Any) -> Layer:
    torch.manual_seed(1)
    return getattr(layers, kind.split()[0])(*(sizes or (3, 8)), **KINDS[kind], **kwargs)


def tuples(state: Any) -> tuple[torch.Tensor, ...]:
    return (state,) if isinstance(state, torch.Tensor) else tuple(state)


def train(layer: Layer, steps: int = 3, told: bool = False, seed: int = 2) -> list[torch.Tensor]:
    """Outputs of a few steps of SGD; `told` calls `after_step` as the learner does."""
    optimizer, found = torch.optim.SGD(layer.parameter_groups(0.05, 0.1)), []
    x = torch.randn(4, 2, 3, generator=torch.Generator().manual_seed(seed))
    for _ in range(steps):
        y, _ = layer(x)
        found.append(y.detach())
        optimizer.zero_grad()
        y.square().mean().backward()
        optimizer.step()
        if told:
            layer.after_step()
    return [*found, layer(x)[0].detach()]


@pytest.mark.parametrize("kind", KINDS)
def test_shapes_are_those_of_torch(kind: str) -> None:
    layer, gru = make(kind, num_layers=2), nn.GRU(3, 8, 2)
    F = layer.output_size
    for x in (torch.randn(5, 4, 3), torch.randn(5, 3)):
        output, h_n = layer(x)
        expected, h = gru(x)
        assert output.shape == (*expected.shape[:-1], F)
        assert all(s.shape[: h.dim() - 1] == h.shape[:-1] for s in tuples(h_n))
        again, _ = layer(x, h_n)
        assert not torch.equal(again, output)
    first, _ = make(kind, num_layers=2, batch_first=True)(torch.randn(4, 5, 3))
    assert first.shape == (4, 5, F)


@pytest.mark.parametrize("kind", KINDS)
def test_layouts_agree_and_a_state_carries_on(kind: str) -> None:
    layer, x = make(kind, num_layers=2).double(), torch.randn(6, 4, 3, dtype=torch.float64)
    whole, h_n = layer(x)
    half, state = layer(x[:3])
    rest, end = layer(x[3:], state)
    torch.testing.assert_close(torch.cat([half, rest]), whole)
    torch.testing.assert_close(end, h_n)
    alone, h_alone = layer(x[:, 1])
    torch.testing.assert_close(alone, whole[:, 1])
    torch.testing.assert_close(tuples(h_alone)[0], tuples(h_n)[0][:, 1])
    first = make(kind, num_layers=2, batch_first=True).double()
    torch.testing.assert_close(first(x.transpose(0, 1))[0], whole.transpose(0, 1))


@pytest.mark.parametrize("model", ["scornn", "ncgru", "sgornn", "spectral_rnn", "urnn_full", "ugru", "goru"])
def test_the_weights_of_a_run_fit(model: str) -> None:
    exp = orthobench.build(f"model={model}", "task=adding", "T=9", "model.hidden_size=8", "recipe=none", "logger=none")
    cls, options = (URNN, {"kind": "full"}) if model == "urnn_full" else (_named(model), {})
    layer = cls(exp.task.input_size, 8, batch_first=True, **options)
    own = exp.model.state_dict()
    layer.load_state_dict({key: value for key, value in own.items() if key.startswith("cells.")})
    x, _ = exp.task.sample(3, seed=1)
    h, _ = orthobench.recurrence(exp.model.cells[0], x)
    assert torch.equal(layer(x)[0], exp.model.cells[0].features(h))


def _named(model: str) -> Any:
    return next(getattr(layers, name) for name in NAMED if getattr(layers, name).model == model)


@pytest.mark.parametrize("kind", KINDS)
def test_no_call_is_needed_after_a_step(kind: str) -> None:
    told, untold = make(kind), make(kind)
    assert all(map(torch.equal, train(told, told=True), train(untold)))
    assert all(map(torch.equal, _tensors(told), _tensors(untold)))
    for p, W in zip(untold.constrained(), untold.recurrent_weights(), strict=True):
        assert p.contains(W, 1e-3)


def test_several_passes_before_a_backward_pass() -> None:
    layer, x = make("NCGRU"), torch.randn(4, 2, 3)
    train(layer)
    (layer(x)[0].sum() + layer(x)[0].square().sum()).backward()
    assert all(p.grad is not None for p in layer.parameters())


def test_a_step_is_followed_in_inference_mode() -> None:
    layer, other, x = make("URNN full"), make("URNN full"), torch.randn(4, 2, 3)
    for one in (layer, other):
        optimizer = torch.optim.SGD(one.parameters(), lr=0.1)
        one(x)[0].sum().backward()
        optimizer.step()
    with torch.inference_mode():
        layer(x)
    other.after_step()
    assert all(map(torch.equal, train(layer), train(other)))


@pytest.mark.parametrize("kind", ["NCGRU", "URNN full", "URNN full rms"])
@pytest.mark.parametrize("waits", [False, True], ids=["cpu", "gpu"])
@pytest.mark.parametrize("way", ["fused", "data"])
def test_steps_that_torch_does_not_count_are_followed(
    kind: str, waits: bool, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "reading_waits", lambda t: waits)
    layer, twin = make(kind), make(kind)
    x = torch.randn(4, 2, 3)
    for one, fused in ((layer, True), (twin, False)):
        optimizer = torch.optim.Adam(one.parameters(), 1e-2, fused=fused, foreach=not fused)
        for _ in range(20):
            optimizer.zero_grad()
            one(x)[0].square().mean().backward()
            if way == "fused":
                optimizer.step()
                continue
            for p in one.parameters():
                p.data -= 0.05 * p.grad  # type: ignore[operator]
            one.after_step()
    torch.testing.assert_close(layer(x)[0], twin(x)[0], atol=1e-5, rtol=0)
    for W in layer.recurrent_weights():
        assert base.deviation(W.detach()) < 1e-2, "beyond what the Neumann series leaves"


@pytest.mark.parametrize(
    ("kind", "whole"),
    [("URNN full rms", lambda layer: nn.ModuleDict({"layer": layer})), ("NCGRU", lambda layer: layer)],
)
def test_what_is_saved_right_after_a_step_goes_on_alike(kind: str, whole: Callable[[Layer], nn.Module]) -> None:
    layer, twin = make(kind), make(kind)
    layer(torch.randn(4, 2, 3))[0].square().mean().backward()
    torch.optim.SGD(layer.parameters(), lr=0.1).step()
    whole(twin).load_state_dict(whole(layer).state_dict())
    assert all(map(torch.equal, train(layer), train(twin)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("T", "B"), [(0, 2), (3, 0), (3, 2)])
def test_sequences_without_steps_have_the_features_of_any_other(kind: str, T: int, B: int) -> None:
    layer, x = make(kind, num_layers=2), torch.randn(T, B, 3, requires_grad=True)
    for given in ({"lengths": [0] * B}, {"reset": torch.zeros(T, B, dtype=torch.bool)})[: 1 if T * B else 2]:
        y, _ = layer(x, **given)
        assert y.shape == (T, B, layer.output_size)
        y.sum().backward()
    assert not any(t.grad is None or t.grad.any() for t in (x, *layer.parameters()))
    assert T * B or layer(x)[0].shape == y.shape


@pytest.mark.parametrize("kind", KINDS)
def test_the_final_state_is_no_part_of_the_output(kind: str) -> None:
    y, h_n = make(kind)(torch.randn(5, 2, 3))
    before = y.detach().clone()
    for s in tuples(h_n):
        s.detach().zero_()  # as where a sequence of the carried state begins anew
    assert torch.equal(y, before)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("T", [0, 5])
def test_autocast_works_with_the_plain_loop_too(kind: str, T: int) -> None:
    layer, x = make(kind, engine="reference"), torch.randn(T, 2, 3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y, _ = layer(x)
    assert bool(torch.isfinite(y).all())


@pytest.mark.parametrize("way", ["init", "load", "copy"])
def test_weights_set_by_hand_stay_on_the_manifold(way: str) -> None:
    layer = NCGRU(2, 32).double()
    theta = layer.cells[0].recurrent["c"].theta
    value = torch.randn_like(theta)
    if way == "init":
        nn.init.uniform_(theta, -0.5, 0.5)
    elif way == "load":
        layer.load_state_dict({"cells.0.recurrent.c.theta": value}, strict=False)
    else:
        with torch.no_grad():
            theta.copy_(value)
    assert base.deviation(layer.recurrent_weights()[0].detach()) < 1e-12


@pytest.mark.parametrize("kind", ["NCGRU", "URNN full", "ScoRNN"])
def test_derivatives_of_torch_func_are_those_of_autograd(kind: str) -> None:
    layer, x = make(kind, engine="reference"), torch.randn(4, 2, 3)
    parameters = {name: p.detach() for name, p in layer.named_parameters()}

    def loss(given: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(layer, given, (x,))[0].square().sum()

    found = torch.func.grad(loss)(parameters, x)
    layer(x)[0].square().sum().backward()
    for name, p in layer.named_parameters():
        torch.testing.assert_close(found[name], p.grad)
    apart = torch.func.vmap(torch.func.grad(loss), (None, 1))(parameters, x.unsqueeze(2))
    for name, grad in found.items():
        torch.testing.assert_close(apart[name].sum(0), grad, atol=1e-5, rtol=1e-5)
    jacobian = torch.func.jacrev(lambda x: layer(x)[0])(x)
    torch.testing.assert_close(jacobian, torch.autograd.functional.jacobian(lambda x: layer(x)[0], x))


def test_a_wider_type_has_its_own_precision() -> None:
    for layer in (NCGRU(3, 40, dtype=torch.float64), NCGRU(3, 40).double(), NCGRU(3, 40).bfloat16().float()):
        least = torch.finfo(layer.cells[0].U.dtype).eps
        assert base.deviation(layer.recurrent_weights()[0].detach()) < 1e3 * least


@pytest.mark.parametrize("how", ["deepcopy", "pickle", "state_dict"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("steps", [0, 2])
def test_a_copy_trains_on_alike(kind: str, how: str, steps: int) -> None:
    layer = make(kind)
    if steps:
        train(layer, steps)
    if how == "state_dict":
        twin = make(kind)
        twin.load_state_dict(layer.state_dict())
    else:
        twin = copy.deepcopy(layer) if how == "deepcopy" else pickle.loads(pickle.dumps(layer))
    found, expected = train(twin), train(layer)
    if how == "state_dict" and not steps:  # what is loaded is normalised before the first step rather than after it
        torch.testing.assert_close(found[0], expected[0])
    else:
        assert all(map(torch.equal, found, expected))


def _tensors(layer: Layer) -> list[torch.Tensor]:
    return [t for t in layer.state_dict().values() if isinstance(t, torch.Tensor)]


@pytest.mark.parametrize("kind", KINDS)
def test_another_precision_and_back(kind: str) -> None:
    layer, x = make(kind), torch.randn(5, 4, 3)
    train(layer)
    expected, _ = layer(x)
    double, _ = layer.to(torch.float64)(x.double())
    torch.testing.assert_close(double.float(), expected, atol=1e-5, rtol=1e-4)
    assert torch.equal(layer.float()(x)[0], expected)


def test_bases_stay_in_double_precision() -> None:
    layer = make("URNN full").to(torch.float32)
    (stiefel,) = layer.constrained()
    assert stiefel.get_buffer("base").dtype == torch.complex128


@pytest.mark.parametrize("kind", ["NCGRU", "URNN full", "SpectralRNN"])
def test_replicas_compute_the_same(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        sys.modules["torch.nn.parallel.replicate"],
        "_broadcast_coalesced_reshape",
        lambda tensors, devices, detach=False: [[t.clone() for t in tensors] for _ in devices],
    )
    layer, x = make(kind), torch.randn(5, 4, 3)
    train(layer)
    copies = replicate(layer, [0, 1])
    before = [t.clone() for t in _tensors(layer)]
    assert all(torch.equal(one(x)[0], layer(x)[0]) for one in copies)
    copies[0](x)[0].sum().backward()
    assert all(p.grad is not None for p in layer.parameters())
    assert all(map(torch.equal, before, _tensors(layer)))
    with torch.no_grad():
        next(layer.constrained()[0].parameters()).add_(0.1)
    if kind != "SpectralRNN":
        with pytest.raises(RuntimeError, match="after_step"):
            replicate(layer, [0, 1])


def test_parameter_groups_hold_every_parameter_once() -> None:
    layer = SpectralRNN(3, 8, num_layers=2, sigma_lr_scale=50.0)
    found = layer.parameter_groups(1e-3, 1e-4)
    rates = {"free": 1e-3, "recurrent": 1e-4, "recurrent x 50": 50e-4}
    assert {g["name"]: pytest.approx(g["lr"]) for g in found} == rates
    assert sorted(id(p) for g in found for p in g["params"]) == sorted(map(id, layer.parameters()))
    optimizer = torch.optim.AdamW(found, weight_decay=0.1)
    assert {g["name"]: g["weight_decay"] for g in optimizer.param_groups}["recurrent"] == 0.0
    assert optimizer.param_groups[0]["weight_decay"] == 0.1


def test_dropout_is_between_layers_and_in_training_only() -> None:
    layer, x = make("ScoRNN", num_layers=2, dropout=0.5), torch.randn(5, 4, 3)
    assert not torch.equal(layer(x)[0], layer(x)[0])
    assert torch.equal(layer.eval()(x)[0], layer(x)[0])
    single = make("ScoRNN", dropout=0.5)
    assert torch.equal(single(x)[0], single(x)[0])


def test_the_seed_of_torch_decides_the_weights() -> None:
    torch.manual_seed(3)
    a, b = ScoRNN(3, 8), ScoRNN(3, 8)
    torch.manual_seed(3)
    again = ScoRNN(3, 8)
    assert torch.equal(a.cells[0].U, again.cells[0].U)
    assert not torch.equal(a.cells[0].U, b.cells[0].U)


def test_any_pairing_by_name_or_class() -> None:
    named = Recurrent(3, 8, cell="gru", recurrent="householder", m=4, orthogonal=["c", "r"])
    given = Recurrent(3, 8, cell=GRU, recurrent=Householder, m=4, orthogonal=["c", "r"])
    assert [type(p) for p in named.parametrizations()] == [type(p) for p in given.parametrizations()]
    assert len(named.recurrent_weights()) == 2
    other = ScoRNN(3, 8, recurrent="householder")
    assert isinstance(other.constrained()[0], Householder)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ScoRNN(3, 8, rhoo=2), "ScoRNN: rhoo=2 does not apply here: did you mean 'rho'"),
        (lambda: ScoRNN(3, 8, rho=9), "model.rho=9 is out of range"),
        (lambda: ScoRNN(3, 0), "ScoRNN: hidden_size=0 is out of range"),
        (lambda: ScoRNN(3, 8, dropout=1.0), "ScoRNN: dropout=1.0 is out of range"),
        (lambda: ScoRNN(3, 8, bidirectional=True), "bidirectional=True does not apply"),
        (lambda: ScoRNN(3, 8, dtype=torch.float16), "use float32 and torch.autocast"),
        (lambda: ScoRNN(3, 8, dtype="float32"), "dtype='float32' is no type of torch: use torch.float32"),
        (lambda: Recurrent(3, 8, cell=int), "Recurrent: cell=int is no cell: it must be a subclass of Cell"),
        (lambda: Recurrent(3, 8, recurrent=nn.Linear), "Recurrent: recurrent=Linear is no parametrization"),
        (lambda: ScoRNN(3, 8, engine="fast"), "engine='fast' is not available"),
        (lambda: NCGRU(3, 8, variant="code"), "variant='code' multiplies"),
        (lambda: URNN(3, 8, kind="big"), "URNN: kind='big' is not known"),
        (lambda: Recurrent(3, 8, recurrent="stiefel"), "the state is real"),
        (lambda: Recurrent(3, 8, cell="nothing"), "Recurrent: cell=nothing is not known"),
    ],
)
def test_wrong_settings_are_refused(call: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        call()


@pytest.mark.parametrize(
    ("x", "h_0", "message"),
    [
        (torch.randn(5, 4, 2), None, r"needs numbers \(T, B, 3\)"),
        (torch.zeros(5, 4, dtype=torch.int64), None, "torch.int64"),
        (torch.randn(5, 4, 3, 1), None, r"needs numbers"),
        (torch.randn(5, 4, 3, dtype=torch.float64), None, "torch.float64"),
        (torch.randn(5, 4, 3), torch.zeros(1, 3, 8), r"needs an initial state \(1, 4, 8\): it is \(1, 3, 8\)"),
        (torch.randn(5, 3), torch.zeros(1, 1, 8), r"needs an initial state \(1, 8\)"),
        (torch.zeros(5, 4, 3).to_sparse(), None, r"x is in torch.sparse_coo: use x.to_dense\(\)"),
        (torch.nested.nested_tensor([torch.zeros(5, 3)], layout=torch.jagged), None, "to_padded_tensor"),
        (np.zeros((5, 4, 3)), None, "needs a tensor: x is a ndarray"),
        (torch.randn(5, 4, 3), 0.0, "needs tensors as its initial state: it is given 0.0"),
    ],
)
def test_wrong_inputs_are_refused(x: Any, h_0: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ScoRNN(3, 8)(x, h_0)


def test_a_layer_in_half_precision_is_refused() -> None:
    with pytest.raises(ValueError, match="rounds its matrix"):
        ScoRNN(3, 8).half()(torch.randn(5, 4, 3).half())


def test_lightning_is_not_imported() -> None:
    code = "import sys, orthobench.layers as l; l.ScoRNN(3,8); print({'lightning', 'hydra', 'pandas'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "set()", done.stderr
