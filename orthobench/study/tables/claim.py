"""A claim of a searched table, written before its first run; `analysis/claim_rule.py` has the kinds of tests.

claims:
  - claim: "A GRU with chrono biases solves it with nine of ten seeds."
    test: {solves: [gru_chrono], seeds: 9}
    source: tallec2018warp              # whose claim it is, a BibTeX key or a paper of ours; ours where it is left out
    metric: test/score                  # of tests that compare a number; the table's score where it is left out
"""

from dataclasses import dataclass, field
from typing import Any

from orthobench.errors import ConfigError
from orthobench.schema import coerce, did_you_mean

KEYS: dict[str, Any] = {"claim": str, "test": dict, "source": str, "metric": str}


@dataclass(frozen=True)
class StatedClaim:
    """Claim: a sentence, and the test of it."""

    claim: str
    test: dict[str, Any] = field(hash=False)
    source: str | None = None
    metric: str | None = None


def claim_of(given: Any, place: str) -> StatedClaim:
    """A claim, its keys checked; `analysis` checks the test.

    Raises:
        ConfigError: a key is unknown or missing.
    """
    if not isinstance(given, dict):
        raise ConfigError(f"{place}: claim and test are needed.")
    for name in given:
        if name not in KEYS:
            raise ConfigError(f"{place}.{name} is not a key here: {did_you_mean(str(name), KEYS)}")
    missing = [name for name in ("claim", "test") if not given.get(name)]
    if missing:
        raise ConfigError(f"{place}: {', '.join(missing)} is missing.")
    return StatedClaim(**{name: coerce(body, KEYS[name], f"{place}.{name}") for name, body in given.items()})
