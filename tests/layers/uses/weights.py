"""Weights that torch.nn.utils computes from others, by hooks and by parametrizations."""

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn.utils import parametrizations as parametrized
from torch.nn.utils import prune

from orthobench.layers import Layer
from tests.layers.uses.common import NotApplicable, draw, make, same, train


def _hooked(kind: str, module: Callable[[Layer], nn.Module], name: str, apply: Callable[..., Any]) -> None:
    """Training with the hook: gradients reach the new parameters, and a fresh copy with the same weights agrees."""
    layer, wanted = make(kind), make(kind)
    if name == "U":  # the gates of MLSTM start with zeros, of which no norm can be taken
        torch.nn.init.normal_(layer.cells[0].U, std=0.5)
    apply(module(layer), name)
    train(layer)
    layer.eval()
    y = layer(draw())[0].detach()
    where, own = module(wanted), module(layer)
    value = getattr(own, name).detach()
    wanted.load_state_dict({k: v for k, v in layer.state_dict().items() if k in wanted.state_dict()}, strict=False)
    with torch.no_grad():
        getattr(where, name).copy_(value)
    same(y, wanted.eval()(draw())[0].detach(), atol=1e-3, rtol=1e-3)
    assert any(p.grad is not None and p.grad.abs().sum() > 0 for p in own.parameters(recurse=True))


def _cell(layer: Layer) -> nn.Module:
    return layer.cells[0]


def prune_input(kind: str) -> None:
    _hooked(kind, _cell, "U", lambda m, name: prune.l1_unstructured(m, name, 0.5))


def prune_recurrent(kind: str) -> None:
    def module(layer: Layer) -> nn.Module:
        name = next(iter(layer.cells[0].recurrent))
        return layer.cells[0].recurrent[name]

    layer = make(kind)
    if not len(layer.cells[0].recurrent):
        raise NotApplicable
    owner = module(layer)
    path, _, name = next(name for name, _ in owner.named_parameters()).rpartition(".")
    _hooked(
        kind,
        lambda layer: module(layer).get_submodule(path),
        name,
        lambda m, name: prune.random_unstructured(m, name, 0.3),
    )


def weight_norm_hook(kind: str) -> None:
    def apply(module: nn.Module, name: str) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            nn.utils.weight_norm(module, name)

    _hooked(kind, _cell, "U", apply)


def spectral_norm_hook(kind: str) -> None:
    _hooked(kind, _cell, "U", lambda m, name: nn.utils.spectral_norm(m, name))


def weight_norm_parametrized(kind: str) -> None:
    _hooked(kind, _cell, "U", lambda m, name: parametrized.weight_norm(m, name))


def spectral_norm_parametrized(kind: str) -> None:
    _hooked(kind, _cell, "U", lambda m, name: parametrized.spectral_norm(m, name))


def hooks_of_a_cell(kind: str) -> None:
    layer, seen = make(kind), []
    layer.cells[0].register_forward_hook(lambda module, given, made: seen.append(made[0]))
    y, _ = layer(draw())
    same(layer.cells[0].features(seen[0]), y)
