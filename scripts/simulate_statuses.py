"""How often a published number gets which status, by the true gap and the spread of the seeds: a table in Markdown.

    python scripts/simulate_statuses.py            print it
    python scripts/simulate_statuses.py --write    put it into docs/judging.md, between its two markers

Gap and spread are in margins; a positive gap means that ours is better. Seeds are normal, the published number has no
spread of its own. The draws are fixed, so that the figures are the same each time.
"""

import sys
from collections import Counter
from pathlib import Path

import numpy as np

from orthobench.analysis.status import judge

DRAWS = 2000
CASES = (  # gap, spread, seeds
    *((0.8, 1.0, n) for n in (3, 5, 10, 30, 100, 300)),
    *((0.0, 0.5, n) for n in (2, 3, 5, 10)),
    *((0.0, 5.0, n) for n in (3, 5, 10)),
    *((gap, 0.5, 5) for gap in (1.5, 2.0, 3.0, -3.0)),
)
SHOWN = ("reproduced", "agrees, not precise", "better", "not reproduced", "partial")
PAGE = Path(__file__).resolve().parents[1] / "docs" / "judging.md"
MARKERS = "<!-- simulated -->\n", "<!-- end -->\n"


def shares(gap: float, spread: float, n: int) -> Counter[str]:
    """How many of the draws get each status."""
    draws = np.random.default_rng([n, round(10 * abs(gap)), round(10 * spread)]).standard_normal((DRAWS, n))
    ours = (gap + spread * draws).tolist()
    return Counter(judge(row, 0.0, margin=1.0, direction="higher", planned=n).word for row in ours)


def table() -> str:
    """All cases, in per cent of the draws."""
    lines = [["true gap / d", "s / d", "seeds", *SHOWN], ["---"] * (3 + len(SHOWN))]
    for gap, spread, n in CASES:
        found = shares(gap, spread, n)
        lines.append([f"{gap:g}", f"{spread:g}", str(n), *(f"{100 * found[word] / DRAWS:.1f} %" for word in SHOWN)])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    if "--write" in sys.argv:
        text = PAGE.read_text(encoding="utf-8")
        start, end = (text.index(marker) for marker in MARKERS)
        PAGE.write_text(f"{text[: start + len(MARKERS[0])]}\n{table()}\n{text[end:]}", encoding="utf-8")
    else:
        print(table(), end="")
