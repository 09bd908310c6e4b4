"""What every cell obeys: exact gradients, a state that goes on, one answer from all engines, bounded states."""

from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from orthobench.parametrizations.free import Free
from orthobench.run.callbacks.jacobian import chained_jacobian
from orthobench.scan import ENGINES, choose, recurrence
from tests.cells.every import N, every_cell, every_cell_at_length
from tests.making import draw, gradients, jacobian_by_autograd, network, random_cell, tokens, untouched_cell
from tests.models.laws import every_law

pytestmark = pytest.mark.sampled(12)

LONG = 2_000


def split(options: dict[str, Any]) -> dict[str, Any]:
    """The options of a cell as a network takes them."""
    own = dict(options)
    return {"recurrent": own.pop("recurrent", Free), "cell": own}


@every_law
@every_cell
@pytest.mark.sampled(48)
def test_laws_of_networks(cls: Any, options: dict[str, Any], law: Any) -> None:
    law(partial(network, cls, hidden_size=N, **split(options)))


def results(engine: str, cell: Any, x: Tensor, state: Any) -> list[Tensor]:
    """Outputs, final state, and the gradients of the parameters, the input and the initial state."""
    cell.zero_grad()
    x = x.clone().requires_grad_() if x.is_floating_point() else x
    state = tuple(s.detach().clone().requires_grad_() for s in state)
    h, final = recurrence(cell, x, state, engine)
    (h * draw(*h.shape, seed=8)).abs().square().sum().backward(retain_graph=True)
    sum(s.abs().square().sum() for s in final).backward()
    inputs = [*gradients(cell), x.grad, *(s.grad for s in state)]
    return [h.detach(), *(s.detach() for s in final), *(torch.zeros(()) if g is None else g for g in inputs)]


def state_of(cell: Any, B: int) -> Any:
    return tuple(0.3 * draw(*s.shape, seed=i).to(s.dtype) for i, s in enumerate(cell.initial_state(B)))


@every_cell
@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (4, 17)], ids=str)
@pytest.mark.parametrize("as_tokens", [False, True], ids=["vectors", "tokens"])
def test_all_engines_agree(cls: Any, options: dict[str, Any], shape: tuple[int, int], as_tokens: bool) -> None:
    cell = random_cell(cls, hidden_size=2 * N, **options)
    x, state = tokens(*shape) if as_tokens else draw(*shape, 3), state_of(cell, shape[0])
    expected = results("reference", cell, x, state)
    for name, engine in ENGINES.items():
        if engine.why_not(cell) is None:
            for found, true in zip(results(name, cell, x, state), expected, strict=True):
                tolerance = 1e-11 * (1 + float(true.abs().max()))  # sums in another order
                torch.testing.assert_close(found, true.expand_as(found), rtol=0, atol=tolerance)


@every_cell
def test_a_token_is_its_one_hot_vector_and_no_step_an_empty_output(cls: Any, options: dict[str, Any]) -> None:
    cell, x = random_cell(cls, hidden_size=N, **options), tokens(2, 5)
    expected = recurrence(cell, torch.nn.functional.one_hot(x, 3).double())[0]
    torch.testing.assert_close(recurrence(cell, x)[0], expected, rtol=0, atol=1e-12)
    h, final = recurrence(cell, draw(2, 0, 3))
    assert h.shape[:2] == (2, 0)
    torch.testing.assert_close(final, cell.initial_state(2))


@every_cell
def test_the_jacobian_of_the_hidden_state(cls: Any, options: dict[str, Any]) -> None:
    cell = random_cell(cls, hidden_size=N, **options)
    if cell.complex_state:
        pytest.skip("the diagnostic is for real states")
    x = draw(1, 3, 3)
    torch.testing.assert_close(chained_jacobian(cell, x)[0], jacobian_by_autograd(cell, x))


@every_cell_at_length
def test_two_thousand_steps_stay_bounded(cls: Any, options: dict[str, Any]) -> None:
    """From its own initial values, in float32, on inputs of unit size: finite outputs and gradients, no explosion."""
    cell = untouched_cell(cls, hidden_size=16, **options).float()
    h, final = recurrence(cell, draw(2, LONG, 3).float())
    h[:, -1].abs().square().sum().backward()
    assert all(torch.isfinite(t).all() for t in (h, *final))
    assert all(g is None or torch.isfinite(g).all() for g in gradients(cell))
    early, late = h[:, : LONG // 4].abs().max(), h[:, -LONG // 4 :].abs().max()
    assert late < 4 * early  # a unitary rotation of noise is a random walk, which doubles from a quarter to the end
    assert early < 100


@every_cell
def test_autocast_leaves_the_loop_in_full_precision(cls: Any, options: dict[str, Any]) -> None:
    cell = untouched_cell(cls, hidden_size=N, **options).float()
    x = draw(2, 5, 3).float()
    plain = recurrence(cell, x)[0]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        h, final = recurrence(cell, x)
    assert all(s.dtype in (torch.float32, torch.complex64) for s in (h, *final))
    far, size = (h - plain).detach().abs().max(), plain.detach().abs().max()
    assert far < 0.05 * (1 + size)  # the projection has eight bits


@every_cell
def test_a_hand_written_reverse_refuses_second_derivatives(cls: Any, options: dict[str, Any]) -> None:
    cell, x = random_cell(cls, hidden_size=N, **options), draw(2, 3, 3).requires_grad_()
    if choose(cell)[0] == "reference":
        pytest.skip("the plain loop has them")
    (g,) = torch.autograd.grad(recurrence(cell, x)[0].abs().square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="second derivatives"):
        g.square().sum().backward()
