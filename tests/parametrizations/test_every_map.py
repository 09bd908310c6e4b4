"""Laws that every constrained map obeys; and none reads a value at a step, for which a GPU would have to wait."""

import copy
import inspect
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.func import functional_call
from torch.profiler import ProfilerActivity, profile

from orthobench.common.schema import Count, fields
from orthobench.errors import ConfigError
from orthobench.parametrizations import base
from orthobench.parametrizations.antisymmetric import Antisymmetric
from orthobench.parametrizations.base import Parametrization
from orthobench.parametrizations.givens import Givens
from orthobench.parametrizations.householder import Householder
from orthobench.parametrizations.matrix_exp import MatrixExp
from orthobench.parametrizations.neumann_cayley import NeumannCayley
from orthobench.parametrizations.plane_rotations import PlaneRotations
from orthobench.parametrizations.rectangular_svd import RectangularSVD
from orthobench.parametrizations.scaled_cayley import ScaledCayley
from orthobench.parametrizations.schur import Schur
from orthobench.parametrizations.skew_exp import exponential
from orthobench.parametrizations.skew_symmetric import SkewSymmetric
from orthobench.parametrizations.stiefel import Stiefel
from orthobench.parametrizations.svd import SVD
from orthobench.parametrizations.uniform_cayley import UniformCayley
from orthobench.parametrizations.unitary_product import UnitaryProduct
from tests.parametrizations.conftest import Training

pytestmark = pytest.mark.sampled(8)

N = 24
Make = Callable[..., Parametrization]
MAPS: dict[str, tuple[type[Parametrization], dict]] = {
    "scaled_cayley": (ScaledCayley, {}),
    "uniform_cayley": (UniformCayley, {}),
    "neumann_cayley": (NeumannCayley, {"order": 2}),
    "neumann_cayley code": (NeumannCayley, {"variant": "code"}),
    "neumann_cayley exact": (NeumannCayley, {"order": "exact"}),
    "matrix_exp exact": (MatrixExp, {}),
    "matrix_exp lie_algebra": (MatrixExp, {"gradient": "lie_algebra"}),
    "matrix_exp geodesic": (MatrixExp, {"gradient": "geodesic"}),
    "householder": (Householder, {}),
    "householder m=4": (Householder, {"m": 4}),
    "plane_rotations": (PlaneRotations, {}),
    "svd": (SVD, {}),
    "givens": (Givens, {}),
    "givens complex": (Givens, {"complex": True}),
    "unitary_product": (UnitaryProduct, {}),
    "stiefel": (Stiefel, {}),
    "stiefel rms": (Stiefel, {"rms_gradient": True}),
    "stiefel projected": (Stiefel, {"unitary_init": "gaussian", "project_every": 10}),
}
COMPLEX = {name for name, (cls, options) in MAPS.items() if cls.is_complex({"complex": False, **options})}
ORTHOGONAL = [name for name in MAPS if name not in ("svd", "neumann_cayley code")]
# ||W^T W - I||_F after 1,000 steps in float32, n = 24. A map that casts a float64 matrix is at 6e-8 sqrt(2 n), below
# 1e-6; B (I - A) D is multiplied in float32; the series of order 2 has its own error, 1e-5 at this size.
BOUNDS = {"neumann_cayley": 1e-4, "neumann_cayley exact": 1e-5}


def make(name: str, seed: int = 0, n: int = N) -> Parametrization:
    cls, options = MAPS[name]
    return cls(n, np.random.default_rng(seed), **options)


def same_state(a: Parametrization, b: Parametrization) -> bool:
    ours, theirs = a.state_dict(), b.state_dict()
    return ours.keys() == theirs.keys() and all(torch.equal(ours[key], theirs[key]) for key in ours)


@pytest.mark.slow
@pytest.mark.parametrize("name", ORTHOGONAL)
def test_float32_drift_after_a_thousand_steps(name: str, training) -> None:
    p = make(name)
    training_run = training(p)
    for _ in range(999):
        training_run.step()
    assert training_run.run(1) < BOUNDS.get(name, 1e-6)
    assert p.contains(p(), 1e-4)


@pytest.mark.parametrize("name", MAPS)
def test_starts_on_its_manifold_with_a_finite_gradient(name: str) -> None:
    p = make(name)
    W = p()
    assert W.shape == (N, N)
    assert W.dtype == (torch.complex64 if name in COMPLEX else torch.float32)
    assert p.contains(W.to(torch.promote_types(W.dtype, torch.float64)), BOUNDS.get(name, 1e-6))
    assert not p.contains(1.5 * torch.eye(N), 1e-3)
    W.pow(3).sum().real.backward()
    assert all(torch.isfinite(q.grad).all() for q in p.parameters())
    assert all(q.grad.any() for q in p.parameters())


@pytest.mark.parametrize("name", MAPS)
def test_after_step_twice_is_once(name: str, training) -> None:
    p = make(name)
    training(p).run(3)
    once, W = {key: value.clone() for key, value in p.state_dict().items()}, p().detach()
    p.after_step()
    assert all(torch.equal(value, once[key]) for key, value in p.state_dict().items())
    assert torch.equal(p(), W)


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.sampled(4)
def test_a_restored_state_continues_bit_for_bit(name: str, training) -> None:
    p, q = make(name, seed=0), make(name, seed=1)
    first, second = training(p), training(q)
    first.run(7)
    q.load_state_dict(p.state_dict())
    second.optimizer.load_state_dict(copy.deepcopy(first.optimizer.state_dict()))
    second.persistent = first.persistent
    second.generator.set_state(first.generator.get_state())
    assert torch.equal(p(), q())
    first.run(60)  # past a reset of the Neumann series
    second.run(60)
    assert same_state(p, q)
    assert torch.equal(p(), q())


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("generator", [np.random.default_rng, np.random.RandomState])
def test_a_seed_alone_decides_the_start(name: str, generator: Callable) -> None:
    (cls, options), before = MAPS[name], torch.random.get_rng_state()
    assert same_state(cls(N, generator(5), **options), cls(N, generator(5), **options))
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.parametrize("name", MAPS)
def test_the_signature_is_the_schema(name: str) -> None:
    cls, _ = MAPS[name]
    found = fields(cls)
    assert list(found)[:2] == ["n", "rng"]
    options = list(found.values())[2:]
    assert all(not field.required and field.annotation is not inspect.Parameter.empty for field in options)
    assert set(cls.limits(N)) == {field.name for field in options if field.annotation == Count}


@pytest.mark.parametrize("name", MAPS)
def test_what_is_counted(name: str) -> None:
    p = make(name, n=4)
    assert p.parameter_count() == sum(q.numel() for q in p.parameters())
    assert p.multiply_adds() <= 4 * 4, "a product costs more than a dense one"
    inside = [module for module in p.modules() if isinstance(module, Parametrization)]
    assert len(inside) == 1  # a model that lists its parametrizations counts none twice


@pytest.mark.parametrize(
    ("cls", "sizes", "options"),
    [
        (ScaledCayley, [5], {}),
        (Householder, [6], {"m": 3}),
        (Householder, [6], {"m": 6}),
        *((PlaneRotations, [6], {"pairing": pairing, "k": 3}) for pairing in ("half", "even_odd")),
        *((Givens, [4], {"style": style, "complex": c}) for style in ("tunable", "fft") for c in (False, True)),
        (UnitaryProduct, [5], {}),
        (Stiefel, [4], {}),
        (MatrixExp, [5], {"gradient": "geodesic"}),
        (SVD, [5], {"m1": 2, "m2": 3, "r": 0.5}),
        *((RectangularSVD, sizes, {"m1": 1, "m2": 2, "r": 0.5}) for sizes in ([2, 4], [4, 2])),
        (SkewSymmetric, [5], {}),
        (Antisymmetric, [5], {}),
        (Schur, [8], {"upper_bound": 1.0}),
    ],
)
@pytest.mark.sampled(99)
@pytest.mark.usefixtures("float64")
def test_gradients_are_finite_differences(cls: type, sizes: list[int], options: dict) -> None:
    """At random values, away from the start."""
    rng = np.random.default_rng(20)
    p = cls(*sizes, rng, **options)
    names = [name for name, _ in p.named_parameters()]
    values = tuple(torch.as_tensor(rng.normal(size=q.shape)).requires_grad_() for q in p.parameters())

    def matrix(*parameters: torch.Tensor) -> torch.Tensor:
        return functional_call(p, dict(zip(names, parameters, strict=True)), ())

    assert torch.autograd.gradcheck(matrix, values)


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("scaled_cayley", 64 * 64),
        ("stiefel", 64 * 64),
        ("householder", 64 * 64),  # with n reflectors the dense product is cheaper
        ("householder m=4", 2 * (64 + 63 + 62 + 61)),
        ("plane_rotations", 2 * 12 * 64),
        ("svd", 2 * 2 * (16 * 64 - 16 * 15 // 2) + 64),
        ("givens", 4 * (2 * 32 + 2 * 31)),
        ("givens complex", 3 * (2 * 32 + 2 * 31) + 64),
        ("unitary_product", 7 * 64 + 64 * 6),
    ],
)
def test_multiply_adds_of_a_product(name: str, count: int) -> None:
    assert make(name, n=64).multiply_adds() == count


@pytest.mark.parametrize(
    ("cls", "n", "options", "count"),
    [
        (ScaledCayley, 190, {}, 17_955),
        (ScaledCayley, 512, {}, 130_816),
        (Householder, 128, {"m": 16}, 1_928),
        (Householder, 10, {"m": "max"}, 55),
        (PlaneRotations, 128, {}, 896),
        (PlaneRotations, 256, {}, 2_048),
        (SVD, 128, {"m1": 16, "m2": 16}, 3_984),
        (SVD, 32, {"m1": 16, "m2": 16}, 816),
        (Givens, 128, {}, 2 * 64 + 2 * 63),
        (Givens, 128, {"complex": True}, 2 * (2 * 64 + 2 * 63) + 128),
        (Givens, 128, {"capacity": "max", "complex": True}, 128**2),  # as many as a unitary matrix has
        (Givens, 128, {"capacity": "max"}, 128 * 127 // 2),  # as many as an orthogonal one has
        (Givens, 512, {"style": "fft", "complex": True}, 2 * 9 * 256 + 512),
        (UnitaryProduct, 30, {}, 7 * 30),
        (Stiefel, 30, {}, 900),
    ],
)
def test_free_numbers(cls: type[Parametrization], n: int, options: dict, count: int) -> None:
    assert cls(n, np.random.default_rng(0), **options).parameter_count() == count


@pytest.mark.parametrize(
    ("cls", "key", "limit"),
    [(Householder, "m", 8), (PlaneRotations, "k", 6), (ScaledCayley, "rho", 8), (SVD, "m1", 8), (SVD, "m2", 8)],
)
def test_a_count_is_one_of_n_or_a_share_or_all(cls: type[Parametrization], key: str, limit: int) -> None:
    rng = np.random.default_rng(0)
    assert [getattr(cls(8, rng, **{key: value}), key) for value in (0, 3, 0.5, "max")] == [0, 3, limit // 2, limit]
    with pytest.raises(ConfigError, match=f"{key}={limit + 1} is out of range"):
        cls(8, rng, **{key: limit + 1})


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
    assert exponential(torch.tensor([[0.0, 1e5], [-1e5, 0.0]]).double()).isnan().all(), "more squarings would be needed"


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
