"""The attempts of a run, one after the other: where each was computed, with what, and how far it came.

    {"device": "cuda", "name": "NVIDIA H200", "engine": "triton", "torch": "2.11.0", "steps": 40700, "seconds": 235.1}

`name` is the GPU's or the processor's; `seconds` are of all that the attempt did up to the end of training. What an
earlier version did not write down is null.
"""

import re
from typing import Any

Attempts = list[dict[str, Any]]
WORDS = ("device", "name", "engine", "torch")
KEYS, TEXT = {*WORDS, "steps", "seconds"}, (str, type(None))


def begun_earlier(steps: int, seconds: float, on_gpu: bool) -> Attempts:
    """The attempts of a checkpoint of an earlier version, which tells no more of them than that there was a GPU."""
    device = "cuda" if on_gpu else "cpu"
    return [{"device": device, "name": None, "engine": None, "torch": None, "steps": steps, "seconds": seconds}]


def joined(attempts: Attempts) -> Attempts:
    """The attempts that made steps, those of one kind that follow each other as one."""
    found: Attempts = []
    for one in attempts:
        if one["steps"] <= 0:
            continue
        if found and all(found[-1][word] == one[word] for word in WORDS):
            last = found.pop()
            one = last | {key: last[key] + one[key] for key in ("steps", "seconds")}
        found.append(one)
    return found


def is_mixed(attempts: Attempts | None) -> bool:
    """Return True if a run was computed on several devices, or by several engines, so that none of its times is of
    either.

    What is unknown is no other one.
    """
    words = ("device", "name", "engine")
    return any(len({one[word] for one in attempts or [] if one[word] is not None}) > 1 for word in words)


def of_all(attempts: Attempts, word: str) -> str:
    """Values of all attempts under a word, each once, in words."""
    return ", ".join(dict.fromkeys(str(one[word]) for one in attempts if one[word] is not None))


def in_words(attempts: Attempts) -> str:
    """Every attempt, such as `cuda (NVIDIA H200, triton, torch 2.11.0): 40,700 steps in 235 s; cpu (...): ...`."""
    return "; ".join(_one(one) for one in joined(attempts))


def seconds_of(words: str) -> dict[str, float]:
    """Seconds on each kind of device, from what `in_words` told; a person may have told minutes."""
    found: dict[str, float] = {}
    told = re.findall(r"(\w+)(?: \([^)]*\))?: [\d,]+ steps in (?:about )?([\d,]+) (s|minutes)\b", words)
    for device, time, unit in told:
        found[device] = found.get(device, 0.0) + float(time.replace(",", "")) * (60 if unit == "minutes" else 1)
    return found


def are_attempts(value: Any) -> bool:
    """Return True if a value is a list of attempts."""
    return isinstance(value, list) and all(_is_attempt(one) for one in value)


def _one(one: dict[str, Any]) -> str:
    torch = None if one["torch"] is None else f"torch {one['torch']}"
    made_with = ", ".join(part for part in (one["name"], one["engine"], torch) if part)
    return f"{one['device']}{f' ({made_with})' * bool(made_with)}: {one['steps']:,} steps in {one['seconds']:,.0f} s"


def _is_attempt(one: Any) -> bool:
    if not isinstance(one, dict) or not one.keys() >= KEYS:
        return False
    device, *words = (one[word] for word in WORDS)
    known = isinstance(device, str) and all(isinstance(word, TEXT) for word in words)
    return known and type(one["steps"]) is int and type(one["seconds"]) in (int, float)
