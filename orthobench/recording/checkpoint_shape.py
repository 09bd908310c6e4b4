"""The shape of a checkpoint: what is needed to go on from it, or to score its weights.

A digest tells that nobody has changed a checkpoint by accident; it does not tell that a file is a run's checkpoint.
"""

from collections.abc import Mapping
from typing import Any

import torch


def problem(state: Any) -> str | None:
    """Why this is not the checkpoint of a run, as the end of a sentence; null where it is one."""
    if not isinstance(state, dict):
        return "it is no mapping"
    kinds = {"state_dict": dict, "global_step": int, "callbacks": dict, "loops": dict, "optimizer_states": list}
    for key, kind in kinds.items():
        if not isinstance(state.get(key), kind):
            return f"its {key} is missing or of another kind"
    saved = state["callbacks"].get("Saver")
    if not isinstance(saved, dict) or not isinstance(saved.get("origin") or {}, dict):
        return "it does not say what the run has come to"
    if not all(isinstance(value, torch.Tensor) for value in state["state_dict"].values()):
        return "its weights are no tensors"
    if not isinstance(saved.get("curve"), torch.Tensor | None):
        return "its curves are no tensor"
    wild = next((name for name, value in state["state_dict"].items() if not torch.isfinite(value).all()), None)
    return None if wild is None else f"{wild} has values that are not finite"


def misfit(state: Mapping[str, Any], module: torch.nn.Module, optimizer: torch.optim.Optimizer) -> str | None:
    """Why a run cannot go on from a checkpoint, as the end of a sentence; null where it can."""
    own, found = module.state_dict(), state["state_dict"]
    differing = sorted(own.keys() ^ found.keys()) or [name for name in own if own[name].shape != found[name].shape]
    if differing:
        return f"{differing[0]} is missing, unknown or of another shape"
    sizes = [len(group["params"]) for group in optimizer.param_groups]
    groups = [kept.get("param_groups") for kept in state["optimizer_states"] if isinstance(kept, dict)]
    if len(groups) != 1 or not isinstance(groups[0], list):
        return "it has no state of the optimizer"
    same = all(isinstance(group, dict) and isinstance(group.get("params"), list) for group in groups[0])
    if not same or [len(group["params"]) for group in groups[0]] != sizes:
        return "the optimizer's groups are others"
    return None if isinstance(state["optimizer_states"][0].get("state"), dict) else "the optimizer's state is missing"
