"""Overrides as text: `key=value`, before anything is composed."""

import math
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from orthobench.config import typo_hints
from orthobench.errors import ConfigError

MOST = 100_000  # runs of a sweep
LARGEST = 10_000  # characters of a word
DEEPEST = 20  # dots in a key, of which the longest one has two
LONGEST = 200  # characters of a word in a message
BEYOND = re.compile(r"[^ \t,\[\]{}():=]*[^\x00-\x7f][^ \t,\[\]{}():=]*")  # values with letters beyond ASCII
BEFORE_QUOTES = re.compile(r"(\\+)(?='|\Z)")
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def key(word: str) -> str:
    """The key that an override sets."""
    return word.lstrip("+").partition("=")[0]


def value(word: str) -> str:
    """The value in an override, as text."""
    return word.partition("=")[2].strip("'\"")


def quoted(text: str) -> str:
    """A value, quoted for Hydra's grammar, in which a backslash is one unless quotes follow it."""
    return "'" + BEFORE_QUOTES.sub(r"\1\1", text).replace("'", "\\'") + "'"


def readable(word: str) -> str:
    """An override whose letters beyond ASCII are quoted: Hydra's grammar knows them in no other form."""
    name, sign, text = word.partition("=")
    if text.isascii() or "'" in text or '"' in text:
        return word
    return f"{name}{sign}{BEYOND.sub(lambda found: quoted(found[0]), text)}"


def refuse_twice(words: Iterable[str], place: str = "") -> None:
    """Refuse overrides of which the last one would win without a word.

    Raises:
        ConfigError: two of them set one key.
    """
    counts = Counter(map(key, words))
    twice = next((name for name, count in counts.items() if count > 1), None)
    if twice is not None:
        raise ConfigError(f"{place}{twice}= is given twice: give it once.")


def seconds(text: str, option: str = "--budget") -> float:
    """`2h`, `1h30m`, `90s` or `90` in seconds; `option` is what a wrong one is refused as.

    Raises:
        ConfigError: the text has another form.
    """
    parts = re.findall(r"(\d+(?:\.\d+)?)([smhd])", text)
    if "".join(number + unit for number, unit in parts) == text and parts:
        return sum(float(number) * UNITS[unit] for number, unit in parts)
    if text.isdigit():
        return float(text)
    raise ConfigError(f"{option} {text} is not a time such as 2h, 1h30m or 90s.")


def expanded(override: Any, text: str) -> list[str]:
    """The values of a sweep of Hydra's, each as text.

    Raises:
        ConfigError: there are more than MOST of them, they are no range, or Hydra cannot expand them.
    """
    from hydra.errors import HydraException

    found: Any = override.value()
    try:
        count = _count(found)
        if count <= MOST:
            return list(override.sweep_string_iterator())
    except (ArithmeticError, ValueError, TypeError) as error:
        raise ConfigError(
            f"{shortened(text.lstrip('+'))} is no range: {error}; write range(START,STOP,STEP)."
        ) from error
    except HydraException as error:  # glob(), of what is no group
        raise ConfigError(
            f"{shortened(text)!r} cannot be expanded: {str(error).splitlines()[0]}"
            "; list the values, separated by commas."
        ) from error
    told = f"{count:,}" if count < 10**15 else "more than 10**15"
    raise ConfigError(
        f"{shortened(text.lstrip('+'))} has {told} values; a sweep may have {MOST:,} runs: sweep over less at once."
    )


def shortened(text: str) -> str:
    """A word as messages show it."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def _count(found: Any) -> int:
    """Number of values, without listing them."""
    if all(hasattr(found, name) for name in ("start", "stop", "step")):
        return max(math.ceil((found.stop - found.start) / found.step), 0)
    return len(getattr(found, "list", ()))


def choices(word: str) -> list[str]:
    """The values in an override, one after the other: `seed=1,2` and `seed=range(1,3)` both have 1 and 2.

    Raises:
        ConfigError: the word is not in Hydra's grammar.
    """
    override = parsed(word)
    found = expanded(override, word) if override.is_sweep_override() else [value(word)]
    return [text.strip("'\"") for text in found]


def parsed(word: str) -> Any:
    """An override as Hydra understands it.

    Raises:
        ConfigError: the word is not in Hydra's grammar.
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    if len(word) > LARGEST:  # Hydra would take minutes
        raise ConfigError(f"{shortened(word)} has {len(word):,} characters; {LARGEST:,} are allowed: use range(...).")
    if key(word).count(".") > DEEPEST:
        raise ConfigError(
            f"{shortened(key(word))}= is no setting: its name has more than {DEEPEST} dots; use a shorter one."
        )
    try:
        return OverridesParser.create().parse_override(readable(word))
    except (HydraException, ValueError, RecursionError) as error:  # the latter for 5,000 digits, or brackets
        reason = shortened(str(error).partition("\n")[0])
        wrong = f"{shortened(word)!r} is not an override of the form key=value: {reason}."
        raise ConfigError(typo_hints.spelling(word) or wrong) from error
