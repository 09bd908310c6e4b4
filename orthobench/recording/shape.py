"""The shape of a record: which kind of value each of its keys has.

A digest tells that nobody has changed a record by
accident; it does not tell that a record is one.
"""

from itertools import chain
from typing import Any

from orthobench.recording.attempts import are_attempts

RECORD = "record.json"
NUMBERS = "numbers by name"
NUMBER = {int, float, bool, type(None)}  # what JSON makes of a number or null
KINDS: dict[str, Any] = {
    **dict.fromkeys(("run_id", "status", "model", "task"), str),
    **dict.fromkeys(("seed", "steps"), int),
    **dict.fromkeys(("identity", "reason", "metrics_csv"), (str, type(None))),
    **dict.fromkeys(("T", "best_step"), (int, type(None))),
    **dict.fromkeys(("config", "code", "env", "hardware", "time", "metrics", "curve", "lengths", "sources"), dict),
    **dict.fromkeys(("baseline", "parameters", "budget", "orthogonality", "crossed"), NUMBERS),
    "checkpoint": dict,
    "engine": list,
    "attempts": list,
}
WORDS = {"code": ("version", "git"), "env": ("orthobench", "torch", "python"), "hardware": ("device", "cpu", "gpu")}
LISTS = ("engine", "attempts", "curve")  # whose parts have kinds, too
MADE_OF = ("plugins", "yaml", "data")
NEEDED = ("run_id", "status", "model", "task", "seed", "steps")
MAYBE_NULL = (
    "parameters", "budget", "sources", "lengths", "crossed", "checkpoint", "engine", "attempts", "curve", "baseline",
)  # fmt: skip


def is_record(found: dict[str, Any]) -> bool:
    """Return True if everything that is read from a record has the kind that it is taken for."""
    if any(found.get(key) is None for key in NEEDED):
        return False
    for key, kind in KINDS.items():
        value = found.get(key)
        if key not in found or (value is None and key in MAYBE_NULL):
            continue
        right = are_numbers(value) if kind is NUMBERS else isinstance(value, kind) and not isinstance(value, bool)
        if not right:
            return False
    named = [(found.get(part) or {}).get(key) for part, keys in WORDS.items() for key in keys]
    chosen = [*(found.get("metrics") or {}).values(), *(found.get("lengths") or {}).values()]
    digests = [value for value in (found.get("checkpoint") or {}).values() if value is not None]
    return (
        all(word is None or isinstance(word, str) for word in named)
        and all(scores is None or are_numbers(scores) for scores in chosen)
        and all(isinstance(text, str) for text in digests)
        and are_sources(found.get("sources"))
        and have_lists(found)
    )


def have_lists(found: dict[str, Any]) -> bool:
    """Return True if the lists of a record, of which some may be missing, have the parts that are read from them."""
    layers = found.get("engine") or []
    return (
        are_attempts(found.get("attempts") or [])
        and all(_is_curve(points) for points in (found.get("curve") or {}).values())
        and all(isinstance(layer, dict) and isinstance(layer.get("engine"), str) for layer in layers)
    )


def are_numbers(value: Any) -> bool:
    """Return True if a value is numbers, or None, by name."""
    return isinstance(value, dict) and set(map(type, value.values())) <= NUMBER


def are_sources(value: Any) -> bool:
    """Return True if a value is what a run was made of: digests by name, for plug-ins, YAML files and data; or None."""
    if not isinstance(value, dict):
        return value is None
    made_of = [value[kind] for kind in MADE_OF if value.get(kind) is not None]
    return all(isinstance(part, dict) and all(isinstance(one, str) for one in part.values()) for part in made_of)


def _is_curve(points: Any) -> bool:
    pairs = isinstance(points, list) and set(map(type, points)) <= {list} and set(map(len, points)) <= {2}
    return pairs and set(map(type, chain.from_iterable(points))) <= NUMBER
