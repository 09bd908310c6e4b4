"""The shape of a checkpoint: what is needed to go on from it, or to score its weights.

A digest tells that nobody has changed a checkpoint by accident; it does not tell that a file is a run's checkpoint.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import torch

from orthobench.recording.attempts import are_attempts
from orthobench.recording.shape import are_numbers, are_sources

KINDS = {"state_dict": dict, "global_step": int, "callbacks": dict, "loops": dict, "optimizer_states": list}
SAVED: dict[str, Any] = {  # what a run has come to, see `Saver`
    **dict.fromkeys(("best", "best_test"), are_numbers),
    **dict.fromkeys(("best_step", "peak_bytes"), int),
    **dict.fromkeys(("finished", "recovered_from"), str),
    "latest": are_numbers,
    "validated": int,
    "wall_s": int | float,
    "code": list,
    "origin": dict,
    "curve": torch.Tensor,
    "random": list,
}
DTYPES = {
    torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128, torch.bool,
    torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
}  # fmt: skip
ALWAYS = ("latest", "validated", "wall_s", "code", "random")


def problem(state: Any) -> str | None:
    """Why this is not the checkpoint of a run, as the end of a sentence; None where it is one."""
    if not isinstance(state, dict):
        return "it is no mapping"
    odd = next(_odd_tensors(state), None)
    if odd is not None:
        return odd
    for key, kind in KINDS.items():
        if not isinstance(state.get(key), kind):
            return f"its {key} is missing or of another kind"
    saved = state["callbacks"].get("Saver")
    if not isinstance(saved, dict) or state["global_step"] < 0:
        return "it does not say what the run has come to"
    for key, kind in SAVED.items():
        value = saved.get(key)
        known = key in saved or key == "origin"
        if not known or not (key not in ALWAYS if value is None else _is(value, kind)):
            return f"its {key} is missing or of another kind"
    origin = saved.get("origin") or {}
    if not isinstance(origin.get("identity", ""), str) or not are_sources(origin.get("sources")):
        return "it does not say whose it is"
    if not all(isinstance(one, str | None) for one in saved["code"]) or not saved["code"]:
        return "it does not say with what code it was made"
    if not are_attempts(saved.get("attempts", [])):
        return "it does not say where it was computed"
    if not all(isinstance(value, torch.Tensor) for value in state["state_dict"].values()):
        return "its weights are no tensors"
    wild = next((name for name, value in state["state_dict"].items() if not torch.isfinite(value).all()), None)
    return None if wild is None else f"{wild} has values that are not finite"


def _odd_tensors(state: Any) -> Iterator[str]:
    """Why tensors anywhere in a checkpoint are not plain ones whose values are all there, each as a sentence's end."""
    waiting, seen = [state], set()
    while waiting:
        value = waiting.pop()
        if isinstance(value, torch.Tensor):
            reason = _odd(value)
            if reason is not None:
                yield f"a tensor of shape {tuple(value.shape)} in it {reason}"
        elif isinstance(value, Mapping | list | tuple | set) and id(value) not in seen:  # one may hold itself
            seen.add(id(value))
            waiting += [*value.keys(), *value.values()] if isinstance(value, Mapping) else value


def _odd(tensor: torch.Tensor) -> str | None:
    if tensor.layout != torch.strided or tensor.is_nested:
        return "is sparse"
    if tensor.is_quantized or tensor.dtype not in DTYPES:
        return f"is of the type {tensor.dtype}"
    if tensor.device.type != "cpu":
        return f"is on the device {tensor.device}, and has no values"
    there = tensor.untyped_storage().nbytes()
    return None if tensor.numel() * tensor.element_size() <= there else f"has values for {there:,} bytes alone"


def misfit(state: Mapping[str, Any], module: torch.nn.Module, optimizer: torch.optim.Optimizer) -> str | None:
    """Why a run cannot go on from a checkpoint, as the end of a sentence; None where it can."""
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
    if not isinstance(state["optimizer_states"][0].get("state"), dict):
        return "the optimizer's state is missing"
    return None if "carried" in state else "the state that is carried from batch to batch is missing"


def differing(found: Any, own: Any, place: str) -> str | None:
    """End of a sentence about a library's state of another kind than this run's own; None if all are alike.

    Null where it is not. What either alone has is left to the library, whose versions differ.

    Args:
        found: the state in the checkpoint.
        own: the same of this run, which has not begun; None there may be a number in the checkpoint.
        place: where the state is, by dots.
    """
    if isinstance(own, Mapping):
        if not isinstance(found, Mapping):
            return f"{place} is of another kind"
        told = (differing(found[key], value, f"{place}.{key}") for key, value in own.items() if key in found)
        return next((one for one in told if one is not None), None)
    kind = int | float | None if own is None else int | float if isinstance(own, float) else type(own)
    counted = not isinstance(found, int) or found >= -1
    return None if _is(found, kind) and counted else f"{place} is of another kind"


def _is(value: Any, kind: Any) -> bool:
    if kind is are_numbers:
        return are_numbers(value)
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
