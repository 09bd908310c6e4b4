"""Weights that torch.nn.utils computes when a module is called, for modules whose tensors are read without a call."""

from torch import nn
from torch.nn.modules import module as modules
from torch.nn.utils.prune import BasePruningMethod
from torch.nn.utils.spectral_norm import SpectralNorm
from torch.nn.utils.weight_norm import WeightNorm

COMPUTED = (BasePruningMethod, SpectralNorm, WeightNorm)


def refresh(module: nn.Module) -> None:
    """Compute the weights of `prune`, `spectral_norm` and `weight_norm` in all parts of a module.

    Their hooks act when the part is called. The tensors of a cell and of its parts are read without a call, and would
    be those of an earlier pass.
    """
    for part in module.modules():
        for hook in part._forward_pre_hooks.values():
            if isinstance(hook, COMPUTED):
                hook(part, ())


def heard(module: nn.Module) -> bool:
    """Return True if hooks are called with what the module returns, its own or those of all modules."""
    return bool(module._forward_hooks or modules._global_forward_hooks)


def hooked(module: nn.Module) -> bool:
    """Return True if hooks are called with what the module returns, or with its gradient."""
    own = module._backward_hooks or module._backward_pre_hooks
    return heard(module) or bool(own or modules._global_backward_hooks or modules._global_backward_pre_hooks)


def taken(module: nn.Module, name: str) -> bool:
    """Return True if a hook computes a parameter, or `torch.nn.utils.parametrize`, from others of other names."""
    return name not in module._parameters and not getattr(module, "_is_replica", False)
