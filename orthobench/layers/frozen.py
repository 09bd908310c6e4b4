"""Layers as they are deployed: recurrent matrices as constants, complex states as pairs of real numbers."""

import copy
from typing import Any, TypeVar

import torch
from torch import nn

from orthobench.errors import ConfigError
from orthobench.layers.follow import Follower
from orthobench.models.frozen import frozen_cell
from orthobench.parametrizations.base import parametrizations
from orthobench.parametrizations.hooks import refresh

Module = TypeVar("Module", bound=nn.Module)


def frozen(model: Module) -> Module:
    """A copy of a model that computes the same, in evaluation mode, and does not train.

    The recurrent matrices of its layers are constants. A complex state (L, B, N) is the real one [Re h, Im h] (L, B,
    2N), for LRU and RotationRNN with both parts of a unit side by side.

    Args:
        model: a layer, or any module with layers inside.

    Raises:
        ConfigError: a cell has a complex state, and no real form is known of it.
    """
    with torch.no_grad():
        refresh(model)  # weights that hooks have computed with gradients cannot be copied
        for layer in model.modules():
            if isinstance(layer, Follower):
                layer._follow()
        found: Any = copy.deepcopy(model).eval()
        for layer in found.modules():
            if isinstance(layer, Follower):
                cells: Any = layer.cells
                for i, cell in enumerate(cells):
                    cells[i] = frozen_cell(cell)
                layer._followed = layer._versions()
    return found.requires_grad_(False)


def refuse_for_onnx(layer: Any) -> None:
    """Refuse a layer that ONNX has no operators for, where its matrices cannot be computed before.

    Raises:
        ConfigError: it has a recurrent matrix of such operators, or a complex state.
    """
    found = [type(p).__name__ for p in parametrizations(layer) if not p.in_onnx]
    found += [f"a complex state, {type(cell).__name__}" for cell in layer.cells if cell.complex_state]
    if found:
        raise ConfigError(
            f"{type(layer).__name__} cannot be exported as it is with dynamo=True, because ONNX has no operators for "
            f"{found[0]}: export orthobench.layers.frozen(model), whose matrices are constants."
        )
