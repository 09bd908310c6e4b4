"""How often a published number, or a claim, gets which status: two tables in Markdown.

    python scripts/simulate_statuses.py            print them
    python scripts/simulate_statuses.py --write    put them into docs/explanation/judging.md, between their markers

Of a number, gap and spread are in margins; a positive gap means that ours is better, and the published number has no
spread of its own. Of a claim, s is the standard deviation of one model's seeds. Seeds are normal. The draws are fixed,
so that the figures are the same each time.
"""

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from orthobench.study.records.records import Line
from orthobench.study.statistics.status import judge
from orthobench.study.tables.claim_rule import claimed_rows
from orthobench.study.tables.published import Published
from orthobench.study.verdicts import claims
from orthobench.tasks.metric import Metric

DRAWS, CLAIM_DRAWS = 2000, 1000
CASES = (  # gap, spread, seeds
    *((0.8, 1.0, n) for n in (3, 5, 10, 30, 100, 300)),
    *((0.0, 0.5, n) for n in (2, 3, 5, 10)),
    *((0.0, 5.0, n) for n in (3, 5, 10)),
    *((gap, 0.5, 5) for gap in (1.5, 2.0, 3.0, -3.0)),
)
SHOWN = ("reproduced", "agrees, not precise", "better", "not reproduced", "partial")
CLAIM_SHOWN = ("reproduced", "undecided", "not reproduced", "partial")
PAGE = Path(__file__).resolve().parents[1] / "docs" / "explanation" / "judging.md"
NUMBERS, CLAIMS, END = "<!-- simulated -->\n", "<!-- simulated claims -->\n", "<!-- end -->\n"

Rng = np.random.Generator
Seeds = dict[str, list[float | None]]
BETTER = {"better": ["a"], "than": ["b"]}
SETS = [f"{i}" for i in range(21)]


def normal(
    a: float, b: float = 0.0, sa: float = 1.0, sb: float = 1.0, lost: float = 0.0
) -> Callable[[Rng, int], Seeds]:
    """Seeds of two models with means a and b, of which a share `lost` of the first model's diverge."""

    def draw(rng: Rng, n: int) -> Seeds:
        kept = rng.random(n) >= lost
        ours = [float(v) if k else None for v, k in zip(rng.normal(a, sa, n), kept, strict=True)]
        return {"a": ours, "b": rng.normal(b, sb, n).tolist()}

    return draw


def ratio(true: float) -> Callable[[Rng, int], Seeds]:
    """Positive seeds, one in twenty apart, whose ratio is given."""
    return lambda rng, n: {
        name: (mean * np.exp(rng.normal(0, 0.05, n))).tolist() for name, mean in (("a", true), ("b", 1))
    }


def data_sets(gap: float) -> Callable[[Rng, int], Seeds]:
    """Two models on 21 data sets."""
    return lambda rng, n: {
        f"{name}_{one}": rng.normal(gap if name == "a" else 0.0, 1.0, n).tolist() for one in SETS for name in "ab"
    }


CLAIM_CASES: tuple[tuple[dict[str, Any], str, Callable[[Rng, int], Seeds], tuple[int, ...]], ...] = (
    (BETTER, "no difference", normal(0.0), (3, 5, 6, 8, 15)),
    (BETTER, "2 s better", normal(2.0), (5, 6, 8, 15)),
    (BETTER, "2 s worse", normal(-2.0), (5, 8)),
    (BETTER, "2 s better, a fifth of its seeds diverge", normal(2.0, lost=0.2), (8, 15)),
    (BETTER, "no difference, half of its seeds diverge", normal(0.0, lost=0.5), (8,)),
    ({"not_better": ["a"], "than": ["b"], "margin": 2.0}, "better by just the margin of 2 s", normal(2.0), (5, 8)),
    ({"not_better": ["a"], "than": ["b"], "margin": 2.0}, "no difference, margin 2 s", normal(0.0), (5, 8)),
    ({"equal": ["a"], "to": ["b"], "within": 2.0}, "apart by just the margin of 2 s", normal(2.0), (5, 8)),
    ({"equal": ["a"], "to": ["b"], "within": 2.0}, "no difference, margin 2 s", normal(0.0), (5, 8)),
    ({"equal": ["a"], "to": ["b"], "within": 2.0}, "apart by 4 s, margin 2 s", normal(4.0), (8,)),
    ({"ratio": ["a"], "to": ["b"], "between": [2, 3], "tolerance": 0}, "just 3, said 2 to 3", ratio(3.0), (5, 8)),
    ({"ratio": ["a"], "to": ["b"], "between": [2, 3], "tolerance": 0}, "2.5, said 2 to 3", ratio(2.5), (5, 8)),
    ({"less_spread": ["a"], "than": ["b"]}, "no difference", normal(0.0), (5, 10)),
    ({"less_spread": ["a"], "than": ["b"]}, "a fifth", normal(0.0, sa=0.2), (5, 10)),
    (
        {"less_spread": ["a"], "than": ["b"]},
        "a fifth, but half of its seeds diverge",
        normal(0, sa=0.2, lost=0.5),
        (10,),
    ),
    ({"wilcoxon": ["a"], "than": ["b"]}, "no difference, 21 data sets", data_sets(0.0), (5,)),
    ({"wilcoxon": ["a"], "than": ["b"]}, "s / 2 better, 21 data sets", data_sets(0.5), (5,)),
)


def shares(gap: float, spread: float, n: int) -> Counter[str]:
    """How many of the draws of a number get each status."""
    draws = np.random.default_rng([n, round(10 * abs(gap)), round(10 * spread)]).standard_normal((DRAWS, n))
    ours = (gap + spread * draws).tolist()
    return Counter(judge(row, 0.0, margin=1.0, direction="higher", planned=n).word for row in ours)


def claim_shares(test: dict[str, Any], draw: Callable[[Rng, int], Seeds], n: int, draws: int) -> Counter[str]:
    """How many of the draws of a claim, alone in its table, get each status."""
    measured, rng = Metric("test/x", "", "higher"), np.random.default_rng(n)
    place = ("p", "t", "r", "c", "test/x", "1", 1, "last", "claim", tuple(claimed_rows(test)))
    printed = Published(*place, claim=".", test=test, measured=measured)
    tables = ({name: _lines(name, values) for name, values in draw(rng, n).items()} for _ in range(draws))
    return Counter(claims.judge([printed], rows, n)[0].word for rows in tables)


def _lines(name: str, values: list[float | None]) -> list[Line]:
    return [
        Line({"cell": name, "seed": i, "status": "diverged" if v is None else "done", "last:test/x": v})
        for i, v in enumerate(values)
    ]


def number_table() -> str:
    """All cases of a number, in per cent of the draws."""
    lines = [["true gap / d", "s / d", "seeds", *SHOWN]]
    lines += [[f"{gap:g}", f"{s:g}", str(n), *_per_cent(shares(gap, s, n), SHOWN)] for gap, s, n in CASES]
    return _markdown(lines)


def claim_table() -> str:
    """All cases of a claim, in per cent of the draws."""
    lines = [["claim", "truth", "seeds", *CLAIM_SHOWN]]
    for test, truth, draw, sizes in CLAIM_CASES:
        verb = next(iter(test))
        lines += [
            [verb, truth, str(n), *_per_cent(claim_shares(test, draw, n, CLAIM_DRAWS), CLAIM_SHOWN)] for n in sizes
        ]
    return _markdown(lines)


def _per_cent(found: Counter[str], shown: tuple[str, ...]) -> list[str]:
    return [f"{100 * found[word] / found.total():.1f} %" for word in shown]


def _markdown(lines: list[list[str]]) -> str:
    lines.insert(1, ["---"] * len(lines[0]))
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    for marker, made in ((NUMBERS, number_table()), (CLAIMS, claim_table())):
        start = text.index(marker) + len(marker)
        text = f"{text[:start]}\n{made}\n{text[text.index(END, start) :]}"
        print(made)
    if "--write" in sys.argv:
        PAGE.write_text(text, encoding="utf-8")
