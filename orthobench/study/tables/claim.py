"""A claim of a fair or a searched table; of the latter it says when it was written.

The kinds of tests are in `verdicts/fair_claims.py`, and in `searched_claims.py` and `claim_rule.py` beside it.

claims:
  - claim: "A GRU with chrono biases solves it with nine of ten seeds."
    test: {solves: [gru_chrono], seeds: 9}
    source: tallec2018warp              # whose claim it is, a BibTeX key or a paper of ours; ours where it is left out
    metric: test/score                  # of tests that compare a number; the table's score where it is left out
    case: T=200                         # of a fair table that has a grid
    why: "..."                          # the most likely reason, where one is offered; nothing tests it
    written: 2026-11-27 08:29 UTC       # when, of a searched table, which then shows how many runs were there before it
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from orthobench.common.schema import coerce, refuse_unknown
from orthobench.errors import ConfigError

MINUTE = "%Y-%m-%d %H:%M UTC"
KEYS: dict[str, Any] = {
    "claim": str,
    "test": dict,
    "source": str,
    "metric": str,
    "case": str,
    "why": str,
    "written": str,
}


@dataclass(frozen=True)
class StatedClaim:
    """Claim: a sentence, and the test of it."""

    claim: str
    test: dict[str, Any] = field(hash=False)
    source: str | None = None
    metric: str | None = None
    case: str = ""
    why: str = ""
    written: str | None = None

    @property
    def time(self) -> datetime | None:
        """When it was written."""
        return None if self.written is None else datetime.strptime(self.written, MINUTE).replace(tzinfo=UTC)


def claim_of(given: Any, place: str) -> StatedClaim:
    """A claim, its keys checked; `study/verdicts/fair_claims.py` and `searched_claims.py` check the test.

    Raises:
        ConfigError: a key is unknown or missing.
    """
    if not isinstance(given, dict):
        raise ConfigError(f"{place}: claim and test are needed, as docs/explanation/fair.md shows.")
    refuse_unknown(given, KEYS, f"{place}.", " is not a key here")
    missing = [name for name in ("claim", "test") if not given.get(name)]
    if missing:
        raise ConfigError(f"{place}: {', '.join(missing)} is missing: add it.")
    made = StatedClaim(**{name: coerce(body, KEYS[name], f"{place}.{name}") for name, body in given.items()})
    try:
        _ = made.time
    except ValueError:
        raise ConfigError(f"{place}.written: {made.written} is no time; write it as 2026-11-27 08:29 UTC.") from None
    return made
