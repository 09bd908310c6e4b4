"""The shape of a record: which kind of value each of its keys has.

A digest tells that nobody has changed a record by
accident; it does not tell that a record is one.
"""

from typing import Any

RECORD = "record.json"
NUMBERS = "numbers by name"
KINDS: dict[str, Any] = {
    **dict.fromkeys(("run_id", "status", "model", "task"), str),
    **dict.fromkeys(("seed", "steps"), int),
    **dict.fromkeys(("identity", "reason"), str | None),
    **dict.fromkeys(("T", "best_step"), int | None),
    **dict.fromkeys(("config", "code", "env", "hardware", "time", "metrics", "curve", "lengths", "sources"), dict),
    **dict.fromkeys(("baseline", "parameters", "budget", "orthogonality", "crossed"), NUMBERS),
    "checkpoint": dict,
    "engine": list,
}
NEEDED = ("run_id", "status", "model", "task", "seed", "steps")
MAYBE_NULL = ("parameters", "budget", "sources", "lengths", "crossed", "checkpoint", "engine", "curve", "baseline")


def is_record(found: dict[str, Any]) -> bool:
    """Whether everything that is read from a record has the kind that it is taken for."""
    if any(found.get(key) is None for key in NEEDED):
        return False
    for key, kind in KINDS.items():
        value = found.get(key)
        if key not in found or (value is None and key in MAYBE_NULL):
            continue
        right = _numbers(value) if kind is NUMBERS else isinstance(value, kind) and not isinstance(value, bool)
        if not right:
            return False
    chosen = [*(found.get("metrics") or {}).values(), *(found.get("lengths") or {}).values()]
    made_of = [part for part in (found.get("sources") or {}).values() if not isinstance(part, bool)]
    texts = [value for part in made_of if isinstance(part, dict) for value in part.values()]
    texts += [value for value in (found.get("checkpoint") or {}).values() if value is not None]
    layers = found.get("engine") or []
    return (
        all(scores is None or _numbers(scores) for scores in chosen)
        and all(part is None or isinstance(part, dict) for part in made_of)
        and all(isinstance(text, str) for text in texts)
        and all(isinstance(layer, dict) and isinstance(layer.get("engine"), str) for layer in layers)
    )


def _numbers(value: Any) -> bool:
    return isinstance(value, dict) and all(one is None or isinstance(one, int | float) for one in value.values())
