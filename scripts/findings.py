"""Write docs/results/findings.md, and the two tables of README.md, from the claims of the fair tables and the records.

python scripts/findings.py             what is not what the records say
python scripts/findings.py --write     write both
"""

import sys
import textwrap
from collections import Counter
from functools import lru_cache
from itertools import chain
from math import inf, nan
from pathlib import Path

from matplotlib.colors import to_rgb

from orthobench.report import costs, drawing
from orthobench.report.drawing import COLOURS, DASHES, MARKERS
from orthobench.report.fair import BLIND, DROP, TITLE, normalised
from orthobench.report.quantities import digits
from orthobench.report.renewing import renew
from orthobench.study.catalogue import SHIPPED
from orthobench.study.statistics.status import AGREES, NOT_RUN, PARTIAL, STATUSES, UNDERSPECIFIED, UNSTABLE
from orthobench.study.tables.table import FAIR
from orthobench.study.verdicts.claims import is_cost
from orthobench.study.verdicts.comparison import Compared, compare
from orthobench.study.verdicts.fair import FairTable, fair_table
from orthobench.study.verdicts.fair_claims import outcomes
from orthobench.study.verdicts.fair_entry import FairEntry
from orthobench.study.verdicts.needs import needs
from orthobench.study.verdicts.searched import searched_table
from orthobench.study.verdicts.searched_claims import HELD

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "results" / "findings.svg"
IN_PICTURE = ("ncgru", "gru_chrono", "deltanet", "lem", "gru", "spectral_rnn", "nnrnn", "exprnn", "scornn", "lstm")
APART, ALIKE = 0.075, 0.03  # of a score: two names, two lines
RESULTS, PAGE, README = ROOT / "results", ROOT / "docs" / "results" / "findings.md", ROOT / "README.md"
CELLS, PAPERS, END = "<!-- findings -->\n", "<!-- papers -->\n", "<!-- end -->\n"
HEAD = """\
# Findings

This page says what the records in `results/records` show. Each claim is in its table's file, under
`claims:`, with a test. The tests are evaluated again whenever records change. A claim that does not hold says so
here. These claims were written after the runs; each of the [searched tables](../explanation/fair2.md) says when it was.
Text under *Why* is interpretation and is not tested.

All claims are for this parameter budget, 2,000 training steps unless stated, and default model settings except the
tuned learning rate. Scores are means over five seeds that were not used for tuning. One cell is *ahead* of another if
their 95 % intervals do not touch; nothing corrects for the number of pairs. A level holds if all runs but one of
three or more are on its side. [Fair tables](../explanation/fair.md) has the rules. The papers' own tables, at the
end, keep to the papers' protocols and to their own numbers of seeds.
"""


COLUMNS = {  # of the overview: heading, and the table and case that it is read from
    "three digits until a cue": ("fair/cued_copying", "digits=3"),
    "always after 40 steps": ("fair/cued_copying_fixed", ""),
    "after 10,000 steps": ("fair/cued_copying_longer", ""),
    "ten digits": ("fair/cued_copying", "digits=10"),
    "copying, T=200": ("fair/copying", "T=200"),
    "adding, T=200": ("fair/adding", "T=200"),
    "parity": ("fair/parity", ""),
    "products in S3": ("fair/group_word", ""),
    "value by its key": ("fair/cued_recall", ""),
    "noisy MNIST": ("fair/noisy_mnist", ""),
    "HAR-2": ("fair/har2", ""),
}
FIRST = next(iter(COLUMNS))
HARDER = {  # cases of the second protocol, with a search for each cell and up to 6,000 steps
    "fair2/cued_copying": "hold ten digits until an unpredictable cue, after up to 6,000 training steps",
    "fair2/group_word": "track a state, after up to 6,000 training steps",
    "fair2/cued_recall": "look 16 values up by their keys, after up to 6,000 training steps",
}
MOST = 5  # cells that a row of it names
DUELS = [("ncgru", "gru_chrono"), ("scornn", "gru")]
OVERVIEW = """\
With 2,000 steps the table says how fast a cell learns, and not what it could hold; the
[searched tables](../explanation/fair2.md) ask that. Scores are scaled so that 1 is perfect and 0 is the trivial
predictor, and are means over five seeds. A cell whose 95 % interval reaches the trivial predictor *did not learn*. Of a
cell with diverged seeds their number stands in place of a mean. The *order-blind predictor* knows how often each token
was shown, and not in which order.

Within a task all cells have about the same number of parameters ({least:,} to {most:,}, by task), Adam, and 2,000
training steps (HAR-2: 4,000). The rate of each was chosen on two other seeds. Blank: not run, or not with all five
seeds.

- *held to*: the longest tested delay at which the lower end of the 95 % interval is above 0.9; "none" if the cell
  misses 0.9 at a delay of training. Delays are 10, 20, 40, 80 and 160, of which the first three are in training.
- *ms a step*: a training step of the three digits on one core, median ± half the interquartile range. Times of the
  same program differ by up to {repeated}.
- *s to learn*: that time, multiplied by the median training steps until the validation loss is below a tenth of the
  trivial predictor's; it is looked at every 100 steps.
- *bytes of state*: memory that is kept of a sequence from step to step.
"""


TOLD = {  # what a heading, a row or a sign means, where there is one
    "always after 40 steps": "*always after 40 steps*: the three digits with a predictable cue.",
    "after 10,000 steps": "*after 10,000 steps*: the three digits, with 10,000 training steps.",
    "deltanet_unconvolved": "*deltanet_unconvolved*: a control, `model=deltanet model.convolution=null`.",
    "mlstm_unconvolved": "*mlstm_unconvolved*: a control, `model=mlstm model.convolution=null`.",
    "_convolved": "*lstm_convolved*, *gru_convolved*, *slstm_convolved*: controls, `model.input_convolution=4`.",
    "gru_chrono_told_4": "*gru_chrono_told_4*, *gru_chrono_told_1000*: controls, `model=gru_chrono model.T_max=`.",
    "unicornn_dt1": "*unicornn_dt1*: a control, `model=unicornn model.dt=1`.",
    "ncgru_free": "*ncgru_free*: a control, `model=ncgru model.recurrent=free`.",
    "lstm_forget5": "*lstm_forget5*: a control, `model=lstm model.forget_bias=5`.",
    "†": "†: the best rate is the largest or the smallest that was tried.",
    "‡": "‡: the two seeds that chose the rate scored more than 0.1 better.",
}
SCOPE = """\
Fastest first. A cell is listed if the 95 % interval of its score lies above 0.9, in training and at the length \
tested; 1 is perfect. Each has one layer, a budget of {least:,} to {most:,} parameters, 2,000 training steps \
and five fresh seeds."""
ELSEWHERE = """\
[All results](docs/results/findings.md), [how they were measured](docs/explanation/fair.md), \
[harder cases, with a search for each cell](docs/results/answer.md)."""
PUBLISHED = """\
Part of what these papers print has been run at full length. [Judging]({folder}judging.md) defines each status.
"""


@lru_cache
def fair_of(name: str) -> FairTable:
    """A fair table, read once."""
    return fair_table(SHIPPED.table(name), RESULTS)


def overview() -> str:
    """The models side by side, those that hold three digits best first."""
    tables = {heading: fair_of(table) for heading, (table, _) in COLUMNS.items()}
    entries = {
        heading: {one.model: one for one in tables[heading].at(case) if one.whole}
        for heading, (_, case) in COLUMNS.items()
    }
    lines = [["cell", *COLUMNS, "held to", "ms a step", "s to learn", "bytes of state"]]
    lines += [["---", *["---:"] * (len(lines[0]) - 1)]]
    first, table = entries[FIRST], tables[FIRST]
    for model in first:
        scores = [
            "" if found is None else _score(tables[heading], found)
            for heading, found in ((heading, entries[heading].get(model)) for heading in COLUMNS)
        ]
        one = first[model]
        ms = str(costs.step(one.cost)) if one.cost else "not measured"
        state = digits(one.budget.get("state_bytes"), 0)
        lines.append([model, *scores, str(table.horizon(one) or "none"), ms, _seconds(one), state])
    blind = [digits(tables[heading].blind(case), 2) for heading, (_, case) in COLUMNS.items()]
    lines.append([BLIND, *blind, *[""] * 4])
    sizes = [budget(fair_of(table)) for table, _ in COLUMNS.values()]
    words = OVERVIEW.format(least=min(sizes), most=max(sizes), repeated=costs.REPEATED)
    text = "".join(chain(*lines))
    words += "".join(f"- {told}\n" for sign, told in TOLD.items() if sign in text)
    return f"{words}\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines)


def budget(table: FairTable) -> int:
    """How many parameters the models of a fair table are given."""
    (given,) = [word for word in table.table.common if word.startswith("params=")]
    return int(given.partition("=")[2])


def _score(table: FairTable, found: FairEntry) -> str:
    drop, text = table.drop(found), str(normalised(table, found))
    return text and text + "†" * found.choice.edge + "‡" * (drop is not None and drop > DROP)


def picture() -> str:
    """Scores of three digits by the delay of the cue, as SVG: some models by name, all others in grey."""
    name, case = COLUMNS[FIRST]
    table = fair_of(name)
    figure, axes = drawing.subplot(7.2, 3.6)
    axes.axvspan(*table.trained[case], color="#888888", alpha=0.15, linewidth=0)
    ends: list[tuple[list[float], str, str]] = []  # a line, its model and its colour
    for one in (one for one in table.at(case) if one.whole and one.mean is not None):
        scores = [one.scores(one.at(length)).mean or 0.0 for length in table.lengths]
        if one.model not in IN_PICTURE:
            axes.plot(table.lengths, scores, color="#888888", alpha=0.35, linewidth=0.8)
            continue
        again, place = divmod(IN_PICTURE.index(one.model), len(COLOURS))
        colour, dashes = COLOURS[place], DASHES[again]
        low, high = zip(*(one.interval_of(one.at(length)) or (nan, nan) for length in table.lengths), strict=True)
        axes.fill_between(table.lengths, low, high, color=colour, alpha=0.1, linewidth=0)
        axes.plot(table.lengths, scores, color=colour, linestyle=dashes, marker=MARKERS[place], markersize=4, zorder=3)
        ends.append((scores, one.model, colour))
    height = inf
    for same in _together(sorted(ends, key=lambda one: -one[0][-1])):
        (scores, *_), names, colours = zip(*same, strict=True)
        height = min(scores[-1], height - APART)
        colour = [0.6 * part for part in to_rgb(colours[0])] if len(colours) == 1 else "black"  # as text, so darker
        label = "\n".join(textwrap.wrap(", ".join(names), 24))
        at = table.lengths[-1], height
        axes.annotate(label, at, (10, 0), textcoords="offset points", va="center", color=colour)
    axes.spines[["top", "right"]].set_visible(False)
    drawing.trivial(axes, 0.0)
    beside = table.lengths[0], 0.0
    axes.annotate(drawing.TRIVIAL, beside, (0, -4), textcoords="offset points", va="top", fontsize=8, color="#555555")
    axes.set_xscale("log")
    axes.set_xticks(list(table.lengths), list(map(str, table.lengths)))
    axes.minorticks_off()
    axes.set_xlabel("steps until the cue (shaded: in training)")
    axes.set_ylabel("three digits, score (1: perfect)")
    return drawing.svg(figure)


def _together(ends: list[tuple[list[float], str, str]]) -> list[list[tuple[list[float], str, str]]]:
    """The lines, those in one group that cannot be told apart in the picture."""
    found: list[list[tuple[list[float], str, str]]] = []
    for one in ends:
        if found and all(abs(a - b) < ALIKE for a, b in zip(found[-1][0][0], one[0], strict=True)):
            found[-1].append(one)
        else:
            found.append([one])
    return found


def duels() -> str:
    """Of pairs of models, in how many of the cases that both have one is ahead of the other."""
    said = []
    for one, other in DUELS:
        found = [{e.model: e for e in fair_of(table).at(case) if e.whole} for table, case in COLUMNS.values()]
        pairs = [(entries[one], entries[other]) for entries in found if one in entries and other in entries]
        both = [pair for pair in pairs if all(entry.interval for entry in pair)]
        ahead, behind = sum(a.beats(b) for a, b in both), sum(b.beats(a) for a, b in both)
        said.append(
            f"In the {len(both)} columns where both have an interval, {one} is ahead of {other} in {ahead or 'none'} "
            f"and behind it in {behind or 'none'}; in the other {len(both) - ahead - behind} their intervals touch."
        )
    return "\n".join(said) + "\n"


def claims() -> str:
    """The claims of every fair table with what came of them, those of a case together."""
    text = ""
    for table in (one for one in SHIPPED.tables() if one.track == FAIR and one.claims):
        found = outcomes(fair_of(table.name))
        for case in dict.fromkeys(one.stated.case for one in found):
            asks = SHIPPED.about("experiment", table.name)[0].description
            title = ", ".join(filter(None, (table.title, case)))
            text += f"\n## {title}\n\n{asks}. [`{table.name}`](../../results/tables/fair.md)\n\n"
            for one in (one for one in found if one.stated.case == case):
                word = "" if one.word == HELD else f"**{one.word[0].upper()}{one.word[1:]}:** "
                why = f" Why: {one.stated.why}" if one.stated.why else ""
                text += f"- {word}{one.stated.claim} ({one.detail}){why}\n"
    return text


def page() -> str:
    """docs/results/findings.md."""
    text = f"{HEAD}\n## In short\n\n{short('../../', '')}\n## {TITLE}\n\n{overview()}\n{duels()}{claims()}"
    parts = [
        PUBLISHED.format(folder="../explanation/"),
        coverage(),
        apart(),
        beyond(),
        statuses(),
        published(),
        sides(),
    ]
    return f"{text}\n## The papers' numbers beside ours\n\n" + "\n".join(parts)


@lru_cache
def judged() -> list[tuple[str, str, Compared]]:
    """Paper, kind, and all that the papers print but counts of parameters and what is lost.

    The kind is `number`, `claim`, or `step` for a claim about the time of a step, which takes no training.
    """
    found = []
    for table in (one for one in SHIPPED.tables() if one.track == "published"):
        compared = compare(table, RESULTS)
        kinds = [("number", one) for one in compared.numbers]
        kinds += [("step" if is_cost(one.printed) else "claim", one) for one in compared.claims]
        found += [(table.paper, kind, one) for kind, one in kinds if not one.printed.lost]
    return [one for one in found if one[2].verdict.word in STATUSES]


def published() -> str:
    """The claims of the papers of which something came out, paper by paper."""
    text = ""
    decided = [(paper, one) for paper, kind, one in judged() if kind != "number"]
    decided = [(paper, one) for paper, one in decided if one.verdict.word not in (NOT_RUN, PARTIAL)]
    for paper in dict.fromkeys(paper for paper, _ in decided):
        text += f"### Claims of [{paper}](../../results/tables/{paper}.md)\n\n"
        for one in (one for found, one in decided if found == paper):
            note = f" {one.printed.note}" if one.printed.note else ""
            where = "; ".join(filter(None, (f"`{one.printed.table}`", one.verdict.mark)))
            text += f"- **{one.verdict.word}**: {one.printed.claim} ({where}){note}\n"
        text += "\n"
    return text


def sides() -> str:
    """On which side of the printed numbers ours lie, of columns of ten numbers or more."""
    columns: dict[tuple[str, str, str], list[float]] = {}
    for paper, kind, one in judged():
        judged_at_all = one.difference is not None and one.verdict.word != UNSTABLE  # whose survivors are not judged
        if kind == "number" and one.printed.kind == "result" and judged_at_all:
            columns.setdefault((paper, one.printed.table, one.printed.column), []).append(one.difference or 0.0)
    lines = [["table", "column", "numbers", "ours below", "ours above"], ["---", "---", "---:", "---:", "---:"]]
    for (paper, table, column), gaps in columns.items():
        if len(gaps) >= 10:
            counts = (len(gaps), sum(gap < 0 for gap in gaps), sum(gap > 0 for gap in gaps))
            lines.append([f"[`{paper}/{table}`](../../results/tables/{paper}.md)", column, *map(str, counts)])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def statuses() -> str:
    """How many published numbers and claims of each paper have which status."""
    counts = Counter((paper, one.verdict.word) for paper, _, one in judged())
    lines = [["paper", *STATUSES], ["---", *["---:"] * len(STATUSES)]]
    for paper in SHIPPED.papers():
        shown = (str(counts[paper, status]) for status in STATUSES)
        lines.append([f"[{paper}](../../results/tables/{paper}.md)", *shown])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def coverage() -> str:
    """How much of what the papers print has been run at all, and what came of it."""
    kinds = {"number": "numbers", "claim": "claims about training", "step": "claims about the time of a step"}
    found = Counter((kind, NOT_RUN if _untested(one) else one.verdict.word) for _, kind, one in judged())
    vague = Counter((kind, one.verdict.word) for _, kind, one in judged() if one.vague)
    shown = [status for status in STATUSES if status != NOT_RUN and any(found[kind, status] for kind in kinds)]
    lines = [["what the papers print", "in all", "run", *shown], ["---", *["---:"] * (len(shown) + 2)]]
    for kind, what in kinds.items():
        counts, total = [found[kind, status] for status in shown], sum(found[kind, status] for status in STATUSES)
        told = [f"{count} ({vague[kind, one]} say nothing)" if one == AGREES and vague[kind, one] else str(count)
                for one, count in zip(shown, counts, strict=True)]  # fmt: skip
        lines.append([what, str(total), str(sum(counts)), *told])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def beyond() -> str:
    """How many claims the first table counts as not run, and the second as underspecified."""
    count = sum(_untested(one) and one.verdict.word == UNDERSPECIFIED for _, _, one in judged())
    told = f"{count} claims leave too much out to be tested. They count as not run above, and as underspecified below."
    return f"{textwrap.fill(told, 120)}\n" if count else ""


def _untested(one: Compared) -> bool:
    return one.printed.claim is not None and one.printed.verb == "untested"


def apart() -> str:
    """On which side of the printed numbers those of ours lie that are called underspecified."""
    gaps = [one.difference or 0.0 for _, _, one in judged() if one.verdict.word == UNDERSPECIFIED]
    above, below = sum(gap > 0 for gap in gaps), sum(gap < 0 for gap in gaps)
    text = (
        "A number is *underspecified* if ours differs from it, and the paper leaves out a setting that may be the "
        f"reason. Nearly every number has such a setting. Ours is above the printed one in {above} of these cases and "
        f"below it in {below}. *Agrees, not precise*: the published value lies inside our 95 % prediction interval, "
        "but the interval is too wide to confirm it. Where it covers more than half of the range from the trivial "
        "predictor to the best score, it says nothing."
    )
    return f"{textwrap.fill(text, 120)}\n"


def readme(text: str) -> str:
    """Return README.md with its two tables between their markers."""
    for mark, block in (
        (CELLS, short("", "docs/")),
        (PAPERS, f"{coverage()}\n{PUBLISHED.format(folder='docs/explanation/')}"),
    ):
        start = text.index(mark) + len(mark)
        text = f"{text[:start]}{block}{text[text.index(END, start) :]}"
    return text


def short(root: str, docs: str) -> str:
    """Table of needs, each with the models that meet it, fastest first."""
    lines, sizes = [["you need to", "cells that do", "tested to", "records"], ["---"] * 4], []
    for one in needs([fair_of(name) for name in dict.fromkeys(table for table, _ in COLUMNS.values())]):
        sizes.append(budget(fair_of(one.table)))
        names = ", ".join(f"`{model}`" for model in one.models[:MOST]) or "none"
        more = f" and {len(one.models) - MOST} more" if len(one.models) > MOST else ""
        link = f"[`{one.table}`]({root}results/tables/{one.table.split('/')[0]}.md)"
        lines.append([one.need, names + more, f"{one.length} steps", link])
    lines += harder(root) if docs else []
    scope = SCOPE.format(least=min(sizes), most=max(sizes))
    rest = f" {ELSEWHERE}" if docs else ""
    return "".join(f"| {' | '.join(line)} |\n" for line in lines) + f"\n{scope}{rest}\n"


def harder(root: str) -> list[list[str]]:
    """A line for each case of the second protocol that half of the seeds of a complete cell solve."""
    lines = []
    for name, need in HARDER.items():
        found = searched_table(SHIPPED.table(name), RESULTS)
        done = [cell for cell in found.known if cell.complete]
        able = [cell for cell in done if cell.lines and 2 * cell.solved[0] >= len(cell.lines)]
        if able:
            told = ", ".join(f"`{cell.name}` ({cell.solved[0]} of {len(cell.lines)} seeds)" for cell in able)
            far = f"{max(cell.horizon or 0 for cell in able):,} steps"
            link = f"[`{name}`]({root}results/tables/fair2.md)"
            lines.append([need, f"{told}; {len(done)} of {len(found.cells)} cells are run", far, link])
    return lines


def _seconds(one: FairEntry) -> str:
    """The seconds that a model trains until its loss is at a tenth of the trivial one, as text."""
    if one.steps_to_tenth is None:
        return "never"
    return digits(one.steps_to_tenth * one.cost.s_per_step, 1) if one.cost else "not measured"


def texts() -> dict[Path, str]:
    """What the two files should hold."""
    return {PAGE: page(), README: readme(README.read_text(encoding="utf-8"))}


def main(arguments: list[str]) -> int:
    """Returns 1 where a file is not what it should be and is not to be written."""
    wanted = texts() | ({PICTURE: picture()} if "--write" in arguments else {})
    return renew(wanted, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
