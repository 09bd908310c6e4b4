"""What a GPU would not have to wait for: no map reads a value at a step, and none is another for it."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from torch.func import functional_call
from torch.profiler import ProfilerActivity, profile

from orthobench.parametrizations import base
from orthobench.parametrizations.matrix_exp import MatrixExp
from orthobench.parametrizations.neumann_cayley import NeumannCayley
from orthobench.parametrizations.skew_exp import exponential
from orthobench.parametrizations.stiefel import Stiefel
from tests.parametrizations.conftest import Training
from tests.parametrizations.test_every_map import MAPS, make, same_state

READS = ("aten::_local_scalar_dense", "aten::is_nonzero", "aten::equal", "aten::nonzero")


def callers(event: Any) -> set[str]:
    """Names of all that an operation is part of. A CPU's solver looks at pivots, that of a GPU does not."""
    found = set()
    while event.cpu_parent is not None:
        event = event.cpu_parent
        found.add(event.name)
    return found


def on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "reading_waits", lambda t: True)


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.sampled(6)
def test_training_without_reads_gives_the_same_bits(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    trained = []
    for waits in (False, True):
        if waits:
            on_a_gpu(monkeypatch)
        p = make(name, n=8)
        Training(p, lr=0.05).run(25)
        trained.append(p)
    assert same_state(*trained)


@pytest.mark.parametrize(
    "name", [name for name in MAPS if name != "stiefel projected"]
)  # a decomposition, now and then
@pytest.mark.sampled(6)
def test_a_step_reads_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted where torch itself would read too, such as whether a system was singular."""
    on_a_gpu(monkeypatch)
    p = make(name, n=8)
    rate = torch.full((), 0.01)

    def step() -> None:
        W = p()
        (W * W.conj().detach().roll(1, 0)).sum().abs().backward()
        with torch.no_grad():
            for q in p.parameters():
                q.sub_(rate * q.grad)
                q.grad = None
        p.after_step()

    step()
    with profile(activities=[ProfilerActivity.CPU]) as found:
        step()
        step()
    counted = Counter(event.name for event in found.events() if "aten::linalg_lu_solve" not in callers(event))
    assert counted["aten::mul"] > 0
    assert not {name: counted[name] for name in READS if counted[name]}


@pytest.mark.parametrize("size", [0.0, 0.3, 1.0, 3.0, 20.0, 300.0])
def test_the_exponential_squares_as_often_unread(size: float, monkeypatch: pytest.MonkeyPatch) -> None:
    X = torch.as_tensor(np.random.default_rng(0).normal(size=(9, 9)))
    A = size * (X - X.T)
    G, found = torch.as_tensor(np.random.default_rng(1).normal(size=(9, 9))), []
    for waits in (False, True):
        if waits:
            on_a_gpu(monkeypatch)
        B = A.clone().requires_grad_()
        W = exponential(B)
        found.append((W.detach(), *torch.autograd.grad(W, B, G)))
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


def test_what_would_need_more_squarings_is_not_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    on_a_gpu(monkeypatch)
    A = torch.tensor([[0.0, 1e5], [-1e5, 0.0]], dtype=torch.float64)
    assert exponential(A).isnan().all()


@pytest.mark.parametrize(("cls", "options"), [(Stiefel, {}), (MatrixExp, {"gradient": "geodesic"})])
def test_a_theta_that_torch_does_not_count_for_is_looked_at(
    cls: type, options: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_a_gpu(monkeypatch)
    p = cls(6, np.random.default_rng(0), **options)
    p.after_step()
    with torch.inference_mode():
        theta = torch.full_like(p.theta, 0.1)
        W = functional_call(p, {"theta": theta}, ())
    assert not torch.equal(W, p())


@pytest.mark.parametrize(
    ("cls", "options"), [(NeumannCayley, {}), (Stiefel, {}), (MatrixExp, {"gradient": "geodesic"})]
)
def test_what_is_loaded_is_looked_at_once(cls: type, options: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    on_a_gpu(monkeypatch)
    looks: list[bool] = []
    look = cls.looks_settled
    monkeypatch.setattr(cls, "looks_settled", lambda self: looks.append(True) or look(self))
    p, q = (cls(6, np.random.default_rng(seed), **options) for seed in (0, 1))
    Training(p, lr=0.05).run(3)
    with torch.no_grad():
        p.theta.add_(0.01)  # a step that was not followed yet
    q.load_state_dict(p.state_dict())
    looks.clear()
    for _ in range(3):
        p.after_step()
    assert not looks
    for _ in range(3):
        q.after_step()
    assert len(looks) == 1
    assert same_state(p, q)
    assert q.steps == p.steps
