"""What every task's scores promise, whatever the precision of training."""

from typing import Any

import pytest
import torch
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from orthobench.errors import ConfigError
from orthobench.tasks.base import Task
from orthobench.tasks.cross_entropy import cross_entropy
from orthobench.tasks.drawn.adding import Adding
from orthobench.tasks.drawn.copying import Copying
from orthobench.tasks.drawn.cued_copying import CuedCopying
from orthobench.tasks.drawn.parenthesis import Parenthesis
from orthobench.tasks.drawn.parity import Parity
from orthobench.tasks.metric import ACCURACY, Metric
from orthobench.tasks.real.har2 import HAR2
from orthobench.tasks.real.noisy_mnist import NoisyMNIST
from orthobench.tasks.real.ucr import UCR

WRONG, SIZE = 3, 1000
RIGHT = 1 - WRONG / SIZE


def answers(target: torch.Tensor, classes: int) -> torch.Tensor:
    """One-hot bfloat16 outputs of which those of the first three sequences are all wrong."""
    chosen = target.clone()
    chosen[:WRONG] = (target[:WRONG] + 1) % classes
    return F.one_hot(chosen, classes).to(torch.bfloat16)


@pytest.mark.parametrize(
    ("task", "shape", "names"),
    [
        (Copying(T=5), (25,), ["accuracy"]),
        (UCR("GunPoint"), (), ["accuracy"]),
        (NoisyMNIST(), (), ["accuracy", "score"]),
        (CuedCopying(), (67,), ["accuracy", "score"]),
        (Parity(labels="every"), (40,), ["accuracy", "score", "last_score", "last_accuracy"]),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Task) else None,
)
def test_shares_of_bfloat16_outputs_are_exact(task: Any, shape: tuple[int, ...], names: list[str]) -> None:
    target = torch.randint(task.output_size, (SIZE, *shape), generator=torch.Generator().manual_seed(1))
    found = task.measure(answers(target, task.output_size), target)
    chances = {"accuracy": 0.0, "last_accuracy": 0.0, "score": getattr(task, "chance", 0.1135), "last_score": 0.5}
    for name in names:
        assert found[name].dtype == torch.float64
        assert float(found[name]) == pytest.approx((RIGHT - chances[name]) / (1 - chances[name]), abs=1e-12)


def test_shares_of_bfloat16_logits_counters_and_digits_are_exact() -> None:
    target = torch.arange(SIZE) % 2
    y = (2 * target - 1).to(torch.bfloat16)[:, None]
    y[:WRONG] *= -1
    assert float(HAR2().measure(y, target)["accuracy"]) == pytest.approx(RIGHT, abs=1e-12)
    task = Parenthesis(T=4)
    _, target = task.sample(SIZE, 1)
    y = target.to(torch.bfloat16)
    y[:WRONG] = 1 - y[:WRONG]
    found = task.measure(y, target)
    assert [float(found[name]) for name in ("accuracy", "exact")] == pytest.approx([RIGHT, RIGHT], abs=1e-12)
    target = torch.zeros(SIZE, 25, dtype=torch.int64)
    found = Copying(T=5, marker=False).measure(answers(target, 9), target)
    assert float(found["emitted"]) == pytest.approx(WRONG / SIZE, abs=1e-12)


@pytest.mark.parametrize("name", ["loss", "measure"])
@pytest.mark.parametrize(
    ("task", "y", "target"),
    [
        (Parity(), torch.randn(8, 5, 2), torch.zeros(8, 5, 1, dtype=torch.int64)),
        (Parity(), torch.randn(8, 1, 2), torch.zeros(8, dtype=torch.int64)),
        (Adding(T=5), torch.randn(8, 1), torch.randn(8)),
        (Adding(T=5), torch.randn(1), torch.randn(8, 1)),
    ],
)
def test_targets_of_another_shape_than_the_answers_are_refused(
    name: str, task: Task, y: torch.Tensor, target: torch.Tensor
) -> None:
    with pytest.raises(ConfigError, match=r"the targets are .* and the model's answers"):
        getattr(Task, name)(task, y, target)


@pytest.mark.parametrize("name", ["loss", "measure"])
def test_a_mask_that_would_be_left_out_is_refused(name: str) -> None:
    y, target = torch.randn(8, 1), torch.randn(8, 1)
    with pytest.raises(ConfigError, match="Adding has a mask: redefine `loss` and `measure`"):
        getattr(Adding(T=5), name)(y, target, torch.zeros(8, 1, dtype=torch.bool))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("top 1, top 5", "share", "higher", (0.0, 1.0)), "one line without a comma"),
        (("accuracy", "share", "up", (0.0, 1.0)), "direction='up' is none of higher, lower, neither"),
        (("accuracy", "share", "higher", (1.0, 0.0)), "swap them"),
    ],
)
def test_a_wrong_metric_is_refused(arguments: Any, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        Metric(*arguments)


def test_a_value_beyond_its_bounds_is_refused() -> None:
    ACCURACY.check(1.0, "Own")
    with pytest.raises(ConfigError, match=r"Own: accuracy is 40, and its declared bounds are \(0.0, 1.0\)"):
        ACCURACY.check(40.0, "Own")


@pytest.mark.parametrize(
    ("task", "y", "target"),
    [
        (Copying(T=5), torch.randn(8, 25, 9), torch.zeros(8, 25, dtype=torch.int64)),
        (Adding(T=5), torch.randn(8, 1), torch.randn(8, 1)),
        (HAR2(), torch.randn(8, 1), torch.ones(8, dtype=torch.int64)),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Task) else None,
)
def test_a_loss_in_mixed_precision_is_of_float32(task: Any, y: torch.Tensor, target: torch.Tensor) -> None:
    rounded = y.to(torch.bfloat16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = task.measure(rounded, target)["loss"]
    assert found.dtype == torch.float32
    assert float(found) == pytest.approx(float(task.loss(rounded.float(), target)), rel=1e-6)


@pytest.mark.parametrize("K", [2, 10, 15, 16, 50])
@pytest.mark.parametrize("shape", [(3,), (3, 1), (3, 7)])
def test_cross_entropy_is_minus_the_logarithm_of_the_right_class_share(K: int, shape: tuple[int, ...]) -> None:
    rng = torch.Generator().manual_seed(K)
    y = torch.randn(*shape, K, generator=rng, dtype=torch.float64, requires_grad=True)
    target = torch.randint(K, shape, generator=rng)
    right = torch.nn.functional.one_hot(target, K)
    expected = -((y.exp() / y.exp().sum(-1, keepdim=True)).log() * right).sum(-1)
    torch.testing.assert_close(cross_entropy(y, target, "none"), expected)
    torch.testing.assert_close(cross_entropy(y, target), expected.mean())
    (slope,) = torch.autograd.grad(cross_entropy(y, target), y)
    torch.testing.assert_close(slope, (y.softmax(-1) - right) / expected.numel())


class Named(TorchDispatchMode):
    """Notes the names of torch's operations."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.add(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("reduction", ["mean", "none"])
@pytest.mark.parametrize(("device", "expected"), [("cpu", "nll_loss2d_forward"), ("meta", "nll_loss_forward")])
def test_cross_entropy_takes_the_loop_over_steps_on_a_cpu_alone(device: str, expected: str, reduction: str) -> None:
    """CUDA's version of it sums in any order, and is refused where `trainer.deterministic=true`."""
    y, target = torch.randn(3, 7, 9), torch.zeros(3, 7, dtype=torch.int64)
    with Named() as seen:
        found = cross_entropy(y.to(device), target.to(device), reduction)
    assert {name for name in seen.names if name.startswith("nll")} == {expected}
    assert found.shape == (() if reduction == "mean" else target.shape)


@pytest.mark.gpu
def test_cross_entropy_of_few_classes_is_deterministic_on_a_gpu() -> None:
    y = torch.randn(3, 7, 9, device="cuda", requires_grad=True)
    torch.use_deterministic_algorithms(True)
    try:
        cross_entropy(y, torch.zeros(3, 7, dtype=torch.int64, device="cuda")).backward()
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("K", [4, 16])
@pytest.mark.parametrize("target", [torch.full((3, 4, 4), 0.25), torch.zeros(4, 3).long(), torch.zeros(12).long()])
def test_targets_of_another_shape_are_refused(K: int, target: torch.Tensor) -> None:
    """As many as there are answers, and shares of as many classes as there are steps, would give a number."""
    with pytest.raises(ConfigError, match=r"do not suit answers .*: give a class for each answer, a whole number"):
        cross_entropy(torch.zeros(3, 4, K), target)
