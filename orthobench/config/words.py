"""Overrides as text: `key=value`, before anything is composed."""

from orthobench.config import slips
from orthobench.errors import ConfigError


def key(word: str) -> str:
    """The key that an override sets."""
    return word.lstrip("+").partition("=")[0]


def value(word: str) -> str:
    """The value in an override, as text."""
    return word.partition("=")[2].strip("'\"")


def choices(word: str) -> list[str]:
    """The values in an override, one after the other: `seed=1,2` and `seed=range(1,3)` both have 1 and 2.

    Raises:
        ConfigError: the word is not in Hydra's grammar.
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    try:
        override = OverridesParser.create().parse_override(word)
        found = list(override.sweep_string_iterator()) if override.is_sweep_override() else [value(word)]
    except HydraException as error:
        reason = str(error).splitlines()[0]
        wrong = f"{word!r} is not an override of the form key=value: {reason}."
        raise ConfigError(slips.spelling(word) or wrong) from error
    return [text.strip("'\"") for text in found]
