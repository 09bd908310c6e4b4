"""Averages and copies, other types and devices, and one cell in two layers."""

import copy
import pickle
from typing import Any

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel

from orthobench.layers import Layer
from tests.layers.uses.common import NotTheMean, draw, make, on_the_manifold, same, train


def _averaged(kind: str, **options: Any) -> Layer:
    model = make(kind)
    average, optimizer = AveragedModel(model, **options), torch.optim.Adam(model.parameters(), 3e-2)
    for step in range(12):
        optimizer.zero_grad()
        model(draw(seed=step))[0].square().mean().backward()
        optimizer.step()
        model(draw())
        average.update_parameters(model)
    layer: Any = average.module
    on_the_manifold(layer)
    again = make(kind)
    again.load_state_dict(layer.state_dict())
    same(again(draw())[0], layer(draw())[0], atol=1e-4, rtol=1e-4)
    return layer


def averaged(kind: str) -> None:
    layer = _averaged(kind)
    if any(name.endswith(".base") for name, _ in layer.named_buffers()):
        raise NotTheMean


def averaged_buffers(kind: str) -> None:
    _averaged(kind, use_buffers=True)


def mean_of_state_dicts(kind: str) -> None:
    states = []
    model = make(kind)
    for seed in range(3):
        train(model, 4, seed=10 * seed)
        states.append({k: v.clone() for k, v in model.state_dict().items()})
    mean = {k: sum(s[k] for s in states) / 3 for k in states[0]}
    made = make(kind)
    made.load_state_dict(mean)
    on_the_manifold(made)
    first = made(draw())[0].detach()
    same(made(draw())[0].detach(), first, atol=0, rtol=0)


def deep_copy(kind: str) -> None:
    model = make(kind)
    train(model)
    twin = copy.deepcopy(model)
    train(model)
    train(twin)
    same(twin(draw())[0], model(draw())[0], atol=0, rtol=0)


def pickled(kind: str) -> None:
    model = make(kind)
    train(model)
    twin = pickle.loads(pickle.dumps(model))
    train(model)
    train(twin)
    same(twin(draw())[0], model(draw())[0], atol=0, rtol=0)


def double_and_back(kind: str) -> None:
    model = make(kind)
    train(model)
    y = model(draw())[0].detach()
    same(model.double()(draw().double())[0].float(), y)
    same(model.float()(draw())[0], y, atol=0, rtol=0)


def meta(kind: str) -> None:
    model = make(kind)
    train(model)
    y = model(draw())[0].detach()
    made = [make(kind, device="meta").to_empty(device="cpu")]
    with torch.device("meta"):
        made += [make(kind).to_empty(device="cpu")]
        assigned = make(kind)
    assert next(assigned.parameters()).is_meta
    for one in made:
        one.load_state_dict(model.state_dict())
        same(one(draw())[0], y, atol=1e-5, rtol=1e-5)
        train(one)
        on_the_manifold(one)
    assigned.load_state_dict({k: v.clone() for k, v in model.state_dict().items()}, assign=True)
    same(assigned(draw())[0], y, atol=1e-5, rtol=1e-5)


def one_cell_in_two_layers(kind: str) -> None:
    first = make(kind)
    second, alone = make(kind), make(kind)
    second.cells[0] = first.cells[0]
    for one in (first, alone):
        one.after_step()  # reflectors have unit length from the start
    both = nn.ModuleList([first, second])
    optimizers = [torch.optim.SGD(m.parameters(), 0.05) for m in (both, alone)]
    for step in range(3):
        for optimizer, calls in zip(optimizers, ((first, second), (alone, alone)), strict=True):
            optimizer.zero_grad()
            sum(call(draw(seed=step + i))[0].square().mean() for i, call in enumerate(calls)).backward()
            optimizer.step()
    for one in (first, second):
        same(one(draw())[0], alone(draw())[0], atol=1e-6, rtol=1e-5)
    on_the_manifold(second)
