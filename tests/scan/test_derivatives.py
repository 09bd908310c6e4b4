"""Second derivatives, forward mode and the transforms of torch.func: right, or refused; never zero in silence."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.func import functional_call

from orthobench.cells.base import Cell
from orthobench.cells.elman import Elman
from orthobench.cells.gru import GRU
from orthobench.cells.lstm import LSTM
from orthobench.cells.scalar_gated import ScalarGated
from orthobench.errors import ConfigError
from orthobench.parametrizations.householder import Householder
from orthobench.parametrizations.matrix_exp import MatrixExp
from orthobench.parametrizations.neumann_cayley import NeumannCayley
from orthobench.scan import ENGINES, choose, recurrence
from tests.making import draw, random_cell

FAST = [
    (cls, name)
    for cls in (Elman, ScalarGated, GRU)
    for name in ("fused", "native")
    if ENGINES[name].why_not(random_cell(cls)) is None
]
every_engine = pytest.mark.parametrize(("cls", "engine"), FAST)
every_cell = pytest.mark.parametrize("cls", [Elman, ScalarGated, GRU, LSTM])
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")  # torch's own, in forward mode
REFUSED = r"second derivatives \(create_graph=True\) are not available here: use "
X = draw(2, 4, 3)


def of_x(cell: Cell, engine: str) -> Callable[[Tensor], Tensor]:
    return lambda x: recurrence(cell, x, engine=engine)[0].sum()


@every_engine
def test_second_derivatives_are_refused_and_the_first_are_right(cls: Any, engine: str) -> None:
    cell, found = random_cell(cls), []
    with pytest.raises(RuntimeError, match=REFUSED + "engine=reference"):
        torch.autograd.functional.hessian(of_x(cell, engine), X)
    with pytest.raises(RuntimeError, match=r"several gradients at once .* not available here: use engine=reference"):
        torch.autograd.functional.jacobian(of_x(cell, engine), X, vectorize=True)
    for name in (engine, "reference"):
        x = X.clone().requires_grad_()
        found.append(torch.autograd.grad(of_x(cell, name)(x), x, create_graph=True)[0])
    torch.testing.assert_close(found[0], found[1])
    with pytest.raises(RuntimeError, match=REFUSED + "engine=reference"):  # the penalty on a gradient
        torch.autograd.grad(found[0].square().sum(), list(cell.recurrent.parameters()), allow_unused=True)


@every_cell
def test_a_hessian_by_the_plain_loop(cls: Any) -> None:
    cell = random_cell(cls)
    f = of_x(cell, "reference")
    H = torch.autograd.functional.hessian(f, X).reshape(X.numel(), -1)
    x, e = X.clone().requires_grad_(), 1e-6
    for i in (0, 7):
        step = torch.zeros(X.numel(), dtype=X.dtype).index_fill(0, torch.tensor(i), e).view_as(X)
        up, down = (torch.autograd.grad(f(x + s), x)[0].flatten() for s in (step, -step))
        torch.testing.assert_close(H[i], (up - down) / (2 * e), atol=1e-7, rtol=1e-5)


def test_torchs_lstm_on_a_cpu_has_second_derivatives() -> None:
    cell = random_cell(LSTM)
    found, expected = (torch.autograd.functional.hessian(of_x(cell, name), X) for name in ("fused", "reference"))
    torch.testing.assert_close(found, expected)


@every_cell
@pytest.mark.parametrize("transform", [torch.func.grad, torch.func.jacrev, torch.func.jacfwd, torch.func.hessian])
def test_transforms_of_torch_func(cls: Any, transform: Any) -> None:
    cell = random_cell(cls)
    assert choose(cell)[0] != "reference"
    torch.testing.assert_close(transform(of_x(cell, "auto"))(X), transform(of_x(cell, "reference"))(X))


@every_cell
def test_gradients_of_single_sequences(cls: Any) -> None:
    cell = random_cell(cls)
    own = {name: p.detach() for name, p in cell.named_parameters()}
    module = Scan(cell)

    def loss(own: dict[str, Tensor], x: Tensor) -> Tensor:
        return functional_call(module, {f"cell.{name}": p for name, p in own.items()}, (x[None],)).square().sum()

    found = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(own, X)
    for i, x in enumerate(X):
        cell.zero_grad()
        module(x[None]).square().sum().backward()
        for name, p in cell.named_parameters():
            torch.testing.assert_close(found[name][i], p.grad)


class Scan(torch.nn.Module):
    def __init__(self, cell: Cell) -> None:
        super().__init__()
        self.cell = cell

    def forward(self, x: Tensor) -> Tensor:
        return recurrence(self.cell, x)[0]


@every_cell
def test_forward_mode(cls: Any) -> None:
    cell, tangent = random_cell(cls), draw(2, 4, 3, seed=3)
    _, found = torch.func.jvp(of_x(cell, "auto"), (X,), (tangent,))
    x = X.clone().requires_grad_()
    (g,) = torch.autograd.grad(of_x(cell, "auto")(x), x)
    torch.testing.assert_close(found, (g * tangent).sum())


@every_engine
def test_an_engine_asked_for_by_name_refuses_them(cls: Any, engine: str) -> None:
    cell = random_cell(cls)
    for call in (
        lambda: torch.func.grad(of_x(cell, engine))(X),
        lambda: torch.func.jvp(of_x(cell, engine), (X,), (X,)),
    ):
        with pytest.raises(ConfigError, match=f"engine={engine} has no forward mode and no torch.func.grad"):
            call()


@pytest.mark.parametrize("depth", [1, 2])
@every_engine
def test_maps_over_maps(cls: Any, engine: str, depth: int) -> None:
    cell, x = random_cell(cls), draw(*(3, 2)[:depth], 2, 4, 3)
    f: Any = lambda x: recurrence(cell, x, engine=engine)[0]  # noqa: E731
    for _ in range(depth):
        f = torch.func.vmap(f)
    expected = torch.stack([recurrence(cell, one, engine=engine)[0] for one in x.flatten(0, depth - 1)])
    assert torch.equal(f(x), expected.view(*x.shape[:-1], 4))


@every_engine
def test_a_map_over_parameters_alone(cls: Any, engine: str) -> None:
    cell = random_cell(cls)
    module = Scan(cell)
    own = {f"cell.{name}": torch.stack([p.detach(), p.detach() / 2]) for name, p in cell.named_parameters()}
    found = torch.func.vmap(lambda own: functional_call(module, own, (X,)))(own)
    for i in range(2):
        alone = functional_call(module, {name: p[i] for name, p in own.items()}, (X,))
        torch.testing.assert_close(found[i], alone)


@pytest.mark.parametrize("recurrent", [Householder, NeumannCayley, MatrixExp])
def test_maps_without_second_derivatives_refuse_them(recurrent: type) -> None:
    cell = random_cell(Elman, recurrent=recurrent)
    own = list(cell.recurrent.parameters())
    (g, *_) = torch.autograd.grad(of_x(cell, "reference")(X), own, create_graph=True)
    with pytest.raises(RuntimeError, match=REFUSED):
        torch.autograd.grad(g.square().sum(), own, allow_unused=True)
