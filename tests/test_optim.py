"""Every rule against torch's optimizer or its formula in NumPy float64; the factor of every schedule."""

import copy
import io
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR

from orthobench.models.optim import SGD, Adam, Adamw, Optimizer, RMSprop, RMSpropTF, groups
from orthobench.models.schedules import Constant, Exponential, Linear, Schedule, Step, WarmupCosine
from orthobench.parametrizations.base import Parametrization
from orthobench.parametrizations.free import Free

TOLERANCE = {"rtol": 1e-13, "atol": 1e-14}  # a few roundings per step, six steps
GRADIENTS = np.random.default_rng(21).normal(size=(6, 5)) * np.array([1e-4, 1e-2, 1.0, 10.0, 1e3])
RULES = [Adam, SGD, RMSprop, RMSpropTF]
START = np.array([1.0, -2.0, 0.5, 3.0, -0.25])
LR = 0.03
DECAY = {"weight_decay": 0.1}


def ours(rule: Any, lr: float = LR, constrained: bool = False) -> Callable[[list[nn.Parameter]], Optimizer]:
    """What makes an optimizer of one group."""
    return lambda p: Optimizer([{"name": "free", "params": p, "lr": lr, "rule": rule, "constrained": constrained}])


def run(rule: Any, gradients: np.ndarray = GRADIENTS, constrained: bool = False) -> np.ndarray:
    """The parameter after every step."""
    p = nn.Parameter(torch.from_numpy(START.copy()))
    return follow(p, ours(rule, constrained=constrained)([p]), gradients)


@pytest.mark.parametrize("shape", [(5,), (5, 1)], ids=["vector", "matrix"])
@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_adamw_equals_torch_with_decay_groups(weight_decay: float, shape: tuple[int, ...]) -> None:
    """Matrices decay, vectors do not."""
    own, theirs = (nn.Parameter(torch.from_numpy(START.copy()).view(shape)) for _ in range(2))
    gradients = GRADIENTS.reshape(-1, *shape)
    rule = Adamw(beta1=0.5, beta2=0.8, eps=0.1, weight_decay=weight_decay)
    found = follow(own, ours(rule)([own]), gradients)
    decay = weight_decay if len(shape) == 2 else 0.0
    other = torch.optim.AdamW([theirs], lr=LR, betas=(0.5, 0.8), eps=0.1, weight_decay=decay)
    np.testing.assert_allclose(found, follow(theirs, other, gradients), **TOLERANCE)


def follow(p: nn.Parameter, optimizer: torch.optim.Optimizer, gradients: np.ndarray = GRADIENTS) -> np.ndarray:
    path = []
    for g in gradients:
        p.grad = torch.from_numpy(g.copy())
        optimizer.step()
        path.append(p.detach().numpy().copy())
    return np.array(path)


def rmsprop_tf(decay: float, eps: float, momentum: float = 0.0, start: float = 1.0) -> np.ndarray:
    p, a, v, path = START, np.full(5, start), np.zeros(5), []
    for g in GRADIENTS:
        a = decay * a + (1 - decay) * g**2
        v = momentum * v + LR * g / np.sqrt(a + eps)
        p = p - v
        path.append(p)
    return np.array(path)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        pytest.param(RMSpropTF(), rmsprop_tf(0.9, 1e-10), id="rmsprop_tf"),
        pytest.param(RMSpropTF(decay=0.7, eps=0.1, momentum=0.5), rmsprop_tf(0.7, 0.1, 0.5), id="rmsprop_tf settings"),
        pytest.param(RMSpropTF(start=1e-3, eps=0.0), rmsprop_tf(0.9, 0.0, start=1e-3), id="the uRNN code's"),
    ],
)
def test_rule_follows_its_formula(rule: Any, expected: np.ndarray) -> None:
    np.testing.assert_allclose(run(rule), expected, **TOLERANCE)


@pytest.mark.parametrize(
    ("rule", "theirs", "options"),
    [
        (SGD(), torch.optim.SGD, {}),
        (SGD(momentum=0.9, **DECAY), torch.optim.SGD, {"momentum": 0.9, **DECAY}),
        (Adam(), torch.optim.Adam, {}),
        (Adam(0.5, 0.8, eps=0.1, **DECAY), torch.optim.Adam, {"betas": (0.5, 0.8), "eps": 0.1, **DECAY}),
        (RMSprop(), torch.optim.RMSprop, {}),
        (
            RMSprop(decay=0.7, eps=0.1, momentum=0.5, **DECAY),
            torch.optim.RMSprop,
            {"alpha": 0.7, "eps": 0.1, "momentum": 0.5, **DECAY},
        ),
    ],
)
def test_rule_equals_torch(rule: Any, theirs: type[torch.optim.Optimizer], options: dict[str, Any]) -> None:
    p = nn.Parameter(torch.from_numpy(START.copy()))
    np.testing.assert_allclose(run(rule), follow(p, theirs([p], lr=LR, **options)), **TOLERANCE)


@pytest.mark.parametrize("cls", RULES)
def test_weight_decay_adds_a_share_of_the_parameter_to_the_gradient(cls: type) -> None:
    found = run(cls(weight_decay=0.1), GRADIENTS[:1])
    np.testing.assert_allclose(found, run(cls(), GRADIENTS[:1] + 0.1 * START), **TOLERANCE)


@pytest.mark.parametrize("cls", RULES)
def test_constrained_parameters_get_no_weight_decay(cls: type) -> None:
    assert np.array_equal(run(cls(weight_decay=0.1), constrained=True), run(cls()))


def test_a_parameter_without_gradient_stays_and_a_gradient_is_left_as_it_was() -> None:
    p, q = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2))
    q.grad = torch.tensor([1.0, 2.0])
    ours(RMSpropTF(momentum=0.5, **DECAY))([p, q]).step()
    assert p.tolist() == [1.0, 1.0]
    assert q.grad.tolist() == [1.0, 2.0]


def test_momentum_after_tensorflow_keeps_the_learning_rate_of_its_steps() -> None:
    p = nn.Parameter(torch.zeros(1, dtype=torch.float64))
    rule = RMSpropTF(decay=0.0, eps=0.0, momentum=0.5)  # each update is lr sign(g)
    optimizer = ours(rule, lr=1.0)([p])
    follow(p, optimizer, np.ones((1, 1)))
    optimizer.param_groups[0]["lr"] = 0.1
    follow(p, optimizer, np.ones((1, 1)))
    assert p.item() == pytest.approx(-(1.0 + 0.5 * 1.0 + 0.1), rel=1e-14)


def test_a_closure_is_evaluated_with_gradients() -> None:
    p = nn.Parameter(torch.tensor([3.0]))
    optimizer = ours(SGD(), lr=0.5)([p])

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = (p**2).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 9.0
    assert p.item() == 0.0


class Scaled(Free):
    """A constrained parametrization that scales the rate of one of its parameters."""

    constrained = True

    def __init__(self, n: int) -> None:
        super().__init__(n, np.random.default_rng(1))
        self.spectrum = nn.Parameter(torch.ones(n))
        self.angles = nn.Parameter(torch.ones(n))

    def learning_rate_scales(self) -> dict[str, float]:
        return {"spectrum": 0.1}


class Model(nn.Module):
    """Two constrained parametrizations, a free one and a readout."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Scaled(2), Scaled(2)
        self.free = Free(2, np.random.default_rng(1))
        self.readout = nn.Parameter(torch.ones(3))

    def constrained(self) -> list[Parametrization]:
        return [self.first, self.second]


def named(model: Model, group: dict[str, Any]) -> set[str]:
    ids = {id(p) for p in group["params"]}
    return {name for name, p in model.named_parameters() if id(p) in ids}


def test_groups() -> None:
    model = Model()
    free, plain, scaled = groups(model, Adam(), 0.5, SGD(), 0.01)
    seen = [(g["name"], g["lr"], g["rule"], g["constrained"], named(model, g)) for g in (free, plain, scaled)]
    assert seen == [
        ("free", 0.5, Adam(), False, {"free.weight", "readout"}),
        (
            "recurrent",
            0.01,
            SGD(),
            True,
            {f"{map}.{own}" for map in ("first", "second") for own in ("weight", "angles")},
        ),
        ("recurrent x 0.1", pytest.approx(0.001, rel=1e-15), SGD(), True, {"first.spectrum", "second.spectrum"}),
    ]
    model.constrained = list
    assert [group["name"] for group in groups(model, Adam(), 0.5, SGD(), 0.01)] == ["free"]


def test_every_group_moves_at_its_own_rate() -> None:
    model = Model()
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    optimizer = Optimizer(groups(model, SGD(), 0.5, SGD(), 0.25))
    sum(p.sum() for p in model.parameters()).backward()
    optimizer.step()
    moved = {name: (before[name] - p.detach()).mean().item() for name, p in model.named_parameters()}
    expected = {"readout": 0.5, "free.weight": 0.5, "first.weight": 0.25, "first.angles": 0.25, "first.spectrum": 0.025}
    assert {name: moved[name] for name in expected} == pytest.approx(expected, rel=1e-6)  # float32


def test_a_group_may_be_added() -> None:
    first, second = (nn.Parameter(torch.ones(2)) for _ in range(2))
    optimizer = Optimizer([{"name": "a", "params": [first], "lr": 0.1, "rule": SGD(), "constrained": False}])
    with pytest.raises(ValueError, match="a group of parameters needs its rule"):
        optimizer.add_param_group({"name": "b", "params": [second], "lr": 0.2, "constrained": False})
    optimizer.add_param_group({"name": "b", "params": [second], "lr": 0.2, "rule": SGD(), "constrained": False})
    first.grad = second.grad = torch.ones(2)
    optimizer.step()
    assert (first[0].item(), second[0].item()) == pytest.approx((0.9, 0.8))
    assert all("rule" not in group for group in optimizer.state_dict()["param_groups"])


def test_two_rules_at_once() -> None:
    model = Model()
    optimizer = Optimizer(groups(model, Adam(), 0.5, RMSpropTF(), 0.25))
    sum(p.sum() for p in model.parameters()).backward()
    optimizer.step()
    assert set(optimizer.state[model.readout]) == {"steps", "first", "second"}
    assert set(optimizer.state[model.first.weight]) == {"square"}


@pytest.mark.parametrize("rule", [SGD(momentum=0.9), Adam(), RMSprop(momentum=0.5), RMSpropTF(momentum=0.5)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_restored_state_goes_on_bit_by_bit(rule: Any, dtype: torch.dtype) -> None:

    def go(p: nn.Parameter, optimizer: Optimizer, gradients: np.ndarray) -> None:
        for g in gradients:
            p.grad = torch.from_numpy(g).to(dtype)
            optimizer.step()

    p, q = (nn.Parameter(torch.tensor(START, dtype=dtype)) for _ in range(2))
    optimizer, restored = ours(rule)([p]), ours(rule)([q])
    go(p, optimizer, GRADIENTS[:3])
    buffer = io.BytesIO()
    torch.save({"state": optimizer.state_dict(), "p": p.detach()}, buffer)
    saved = torch.load(io.BytesIO(buffer.getvalue()), weights_only=True)
    q.data.copy_(saved["p"])
    restored.load_state_dict(saved["state"])
    go(p, optimizer, GRADIENTS[3:])
    go(q, restored, GRADIENTS[3:])
    assert torch.equal(p, q)


def test_a_copy_moves_its_own_parameters() -> None:
    model = Model()
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    twin, optimizer = copy.deepcopy((model, Optimizer(groups(model, SGD(), 0.5, SGD(), 0.5))))
    sum(p.sum() for p in twin.parameters()).backward()
    optimizer.step()
    assert all(torch.equal(p, before[name]) for name, p in model.named_parameters())
    torch.testing.assert_close(twin.readout, before["readout"] - 0.5)


def complex_path(make: Callable[[list[nn.Parameter]], torch.optim.Optimizer], view: bool) -> np.ndarray:
    """A complex parameter, or its two parts as real ones, after every step."""
    rng = np.random.default_rng(22)
    start = torch.from_numpy(rng.normal(size=(4, 2)))
    p = nn.Parameter(start.clone() if view else torch.view_as_complex(start.clone()))
    optimizer, path = make([p]), []
    for _ in range(6):
        g = torch.from_numpy(rng.normal(size=(4, 2)) * np.array([[1e-3], [1.0], [10.0], [1e3]]))
        p.grad = g if view else torch.view_as_complex(g)
        optimizer.step()
        path.append((p.detach() if view else torch.view_as_real(p.detach())).numpy().copy())
    return np.array(path)


@pytest.mark.parametrize(
    ("rule", "theirs", "options"),
    [
        (SGD(momentum=0.9), torch.optim.SGD, {"momentum": 0.9}),
        (Adam(**DECAY), torch.optim.Adam, DECAY),
        (RMSprop(momentum=0.5), torch.optim.RMSprop, {"momentum": 0.5}),
        (RMSpropTF(), None, {}),
    ],
)
def test_a_complex_parameter_is_two_real_ones_as_in_torch(rule: Any, theirs: Any, options: dict[str, float]) -> None:
    found = complex_path(ours(rule), False)
    np.testing.assert_allclose(found, complex_path(ours(rule), True), **TOLERANCE)
    if theirs is not None:
        for view in (False, True):
            np.testing.assert_allclose(found, complex_path(lambda p: theirs(p, lr=LR, **options), view), **TOLERANCE)


STEPPED = Step(gamma=0.5, milestones=[2, 4])


@pytest.mark.parametrize(
    ("schedule", "factors"),
    [
        (Constant(), {(0, 0): 1.0, (99, 9): 1.0}),
        (Linear(), {(0, 0): 1.0, (25, 0): 0.75, (99, 0): 0.01, (100, 0): 0.0, (101, 0): 0.0}),
        (STEPPED, {(0, 1): 1.0, (0, 2): 0.5, (0, 3): 0.5, (0, 4): 0.25}),
        (Step(gamma=0.5, milestones=[]), {(0, 9): 1.0}),
        (Exponential(gamma=0.8), {(50, 0): 1.0, (0, 1): 0.8, (0, 3): 0.512}),
    ],
)
def test_factors_by_step_and_epoch(schedule: Schedule, factors: dict[tuple[int, int], float]) -> None:
    found = {(step, epoch): schedule.factor(step, 100, epoch) for step, epoch in factors}
    assert found == pytest.approx(factors, rel=1e-12)


@pytest.mark.parametrize(("warmup", "floor"), [(4, 0.0), (4, 0.1), (0.2, 0.0), (0, 0.25)])
def test_warm_up_and_cosine_are_those_of_torch(warmup: float, floor: float) -> None:
    steps, w = 20, 4 if warmup else 0
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    cosine = CosineAnnealingLR(optimizer, steps - w, eta_min=floor)
    ramp = LinearLR(optimizer, 1 / w, total_iters=w - 1) if w else None
    scheduler = SequentialLR(optimizer, [ramp, cosine], [w]) if ramp else cosine
    schedule, expected = WarmupCosine(warmup, floor), []
    for _ in range(steps):
        expected.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's own use of an argument that it deprecates
            scheduler.step()
    assert [schedule.factor(step, steps, 0) for step in range(steps)] == pytest.approx(expected, rel=1e-12)
    assert schedule.factor(steps + 5, steps, 0) == pytest.approx(floor)


def test_a_schedule_that_changes_nothing_says_so() -> None:
    schedule = Step(milestones=[5, 2])
    assert schedule.remark(2) == (
        "schedule=step changes nothing here: its first milestone is epoch 2, and the run has 2 whole"
    )
    assert schedule.remark(3) is None
    assert Step(milestones=[]).remark(3) == "schedule=step changes nothing here: it has no milestone"
    assert Linear().remark(0, 0) is None
    assert Exponential().remark(0, 20) == "schedule=exponential changes nothing here: the run has no whole epoch"
    assert Exponential().remark(1, 20) is None
    told = "schedule=warmup_cosine only warms up here: warmup is 50 steps, and the run has 20"
    assert WarmupCosine(warmup=50).remark(0, 20) == told
    assert WarmupCosine(warmup=0.5).remark(0, 20) is None
