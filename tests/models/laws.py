"""What a network obeys, whatever its cells: every law takes a function that makes one with random parameters."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, vmap
from torch.func import functional_call

from tests.making import draw

Make = Callable[..., Any]


def exact_gradients_through_two_layers(make: Make) -> None:
    model = make(layers=2, engine="reference")
    own = dict(model.named_parameters())

    def output(x: Tensor, *values: Tensor) -> Tensor:
        return functional_call(model, dict(zip(own, values, strict=True)), (x,))[0]

    assert torch.autograd.gradcheck(output, (draw(2, 3, 3).requires_grad_(), *own.values()), fast_mode=True)


def the_last_output_is_the_last_of_all(make: Make) -> None:
    every, last = (make(readout=readout)(draw(2, 4, 3))[0] for readout in ("all", "last"))
    torch.testing.assert_close(every[:, -1], last)


def a_state_goes_on(make: Make) -> None:
    model, x = make(layers=2), draw(2, 7, 3)
    whole, end = model(x)
    first, middle = model(x[:, :4])
    second, final = model(x[:, 4:], [tuple(s.detach() for s in layer) for layer in middle])
    torch.testing.assert_close(torch.cat([first, second], dim=1), whole)
    torch.testing.assert_close(final, end)


def members_have_the_numbers_of_each(make: Make) -> None:
    model, x = make(), draw(3, 2, 4, 3)
    own = {name: torch.stack([p.detach(), 2 * p.detach(), -p.detach()]) for name, p in model.named_parameters()}
    together = vmap(lambda own, x: functional_call(model, own, (x,))[0])(own, x)
    for i in range(3):
        alone = functional_call(model, {name: p[i] for name, p in own.items()}, (x[i],))[0]
        torch.testing.assert_close(together[i], alone)


LAWS = [
    exact_gradients_through_two_layers,
    the_last_output_is_the_last_of_all,
    a_state_goes_on,
    members_have_the_numbers_of_each,
]
every_law = pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
