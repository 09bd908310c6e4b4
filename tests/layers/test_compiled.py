"""`torch.compile` leaves C alone, and what follows an optimizer's step is done; loading is no step."""

import copy
from typing import Any

import pytest
import torch

from orthobench import layers


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["DeltaNet", "MLSTM", "SpectralRNN", "ORNN"])
def test_a_compiled_layer_trains_to_the_same_bits(name: str) -> None:
    torch._dynamo.reset()
    plain = getattr(layers, name)(3, 8)
    other = copy.deepcopy(plain)
    run: Any = torch.compile(other)
    rules = [torch.optim.Adam(layer.parameters(), 1e-2) for layer in (plain, other)]
    for seed in range(4):
        x = torch.randn(5, 2, 3, generator=torch.Generator().manual_seed(seed))
        for call, rule in zip((plain, run), rules, strict=True):
            rule.zero_grad()
            call(x)[0].square().sum().backward()
            rule.step()
        assert torch.equal(plain(x)[0], run(x)[0])


@pytest.mark.parametrize("name", ["SpectralRNN", "ORNN", "NCGRU", "UGRU"])
def test_loading_weights_is_no_step(name: str) -> None:
    made, x = [getattr(layers, name)(3, 8) for _ in range(2)], torch.randn(5, 2, 3)
    made[1].load_state_dict(made[0].state_dict())
    for layer in made:
        layer(x)[0].square().sum().backward()
        layer.after_step()
        assert len(layer._load_state_dict_post_hooks) == 1, "one for good, however many steps are made"
    for p, q in zip(*(layer.parameters() for layer in made), strict=True):
        assert torch.equal(p.grad, q.grad)
