"""Write docs/results/findings.md, and the two tables of README.md, from results/findings.yaml and the records.

python scripts/findings.py             what no longer holds, and what is not written yet
python scripts/findings.py --write     write both; refused where a finding no longer holds
"""

import csv
import re
import sys
import textwrap
from collections import Counter
from itertools import chain
from math import floor, inf, log10, nan
from pathlib import Path

from matplotlib.colors import to_rgb

from orthobench.report import costs, drawing
from orthobench.report.drawing import COLOURS, DASHES, MARKERS
from orthobench.report.fair import DROP
from orthobench.report.numbers import number, spread
from orthobench.study.catalogue import SHIPPED
from orthobench.study.statistics.status import NOT_RUN, STATUSES, UNDERSPECIFIED
from orthobench.study.tables.table import FAIR, FULL
from orthobench.study.verdicts.claims import is_cost
from orthobench.study.verdicts.fair import FairTable
from orthobench.study.verdicts.fair_entry import UNASKED, FairEntry
from orthobench.study.verdicts.findings import Finding, entry, fair_of, problems, read

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "results" / "findings.svg"
IN_PICTURE = ("ncgru", "gru_chrono", "deltanet", "lem", "gru", "spectral_rnn", "nnrnn", "exprnn", "scornn", "lstm")
APART, ALIKE = 0.075, 0.03  # of a score: two names, two lines
RESULTS, PAGE, README = ROOT / "results", ROOT / "docs" / "results" / "findings.md", ROOT / "README.md"
CELLS, PAPERS, END = "<!-- findings -->\n", "<!-- papers -->\n", "<!-- end -->\n"
HEAD = """\
# Findings

This page says what the records in `results/records` show. Every statement names its table, and reads its numbers from
the records.

Each claim is a test in `results/findings.yaml`: orders, levels, horizons and statuses. The test suite fails if the
records stop supporting it. Text under *Why* is interpretation and is not tested.

All statements are for this parameter budget, 2,000 training steps unless stated, and default model settings except the
tuned learning rate. Scores are means over five seeds that were not used for tuning, with their 95 % interval.
Milliseconds are medians with half of the distance between the quartiles. One model is ahead of another if their
intervals do not touch. The papers' own tables, at the end, keep to the papers' protocols and to their own numbers of
seeds.
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
NEEDS = {  # of the README: what a reader needs, the column that tests it, and the length to which a cell holds it
    "hold a symbol until an unpredictable cue": (FIRST, 160),
    "recall after a fixed delay": ("copying, T=200", 200),
    "look a value up by its key": ("value by its key", 128),
    "track a state": ("products in S3", 256),
    "add two numbers far apart": ("adding, T=200", 400),
}
MOST = 5  # cells that a row of it names
DUELS = [("ncgru", "gru_chrono"), ("scornn", "gru")]
OVERVIEW = """\
Scores are scaled so that 1 is perfect and 0 is the trivial predictor, and are means over five seeds. Within a task all
cells have about the same number of parameters ({least:,} to {most:,}, by task), Adam, and 2,000 training steps (HAR-2:
4,000). The rate of each was chosen on two other seeds. Blank: not run, or not with all five seeds.

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
    " of 5)": "(4 of 5): the mean of the seeds that did not diverge.",
    "†": "†: the best rate is the largest or the smallest that was tried.",
    "‡": "‡: the two seeds that chose the rate scored more than 0.1 better.",
}
SHORT = """\
Scores are means over five fresh seeds, with the half-width of their 95 % interval. If the bounds of the score cut it
off, its two ends are shown.
"""
SCOPE = """\
Fastest first. A cell is listed if the 95 % interval of its score lies above 0.9, in training and at the length tested;
1 is perfect. Each has one layer of {least:,} to {most:,} parameters, 2,000 training steps and five fresh seeds.
[All results](docs/results/findings.md), [how they were measured](docs/explanation/fair.md).
"""
PUBLISHED = """\
Part of what the five papers print has been run at full length. [Judging]({folder}judging.md) defines each status.
"""


class Numbers:
    """What a sentence may say of a model, such as `{ncgru.score}`, `{ncgru.at[201]}`, `{ncgru.ms}`."""

    def __init__(self, table: FairTable, found: FairEntry) -> None:
        scores = found.scores()
        places = 3 if table.higher else _places(scores.mean)
        mean = number(scores.mean, places)  # in powers of ten where that shows nothing, as of the least losses
        behind = spread(found.t_interval_of(table.score.name), places, table.score.bounds)
        if scores.diverged:
            behind = f" of {len(scores.values)} seeds of {scores.done}"
        self.score = mean if behind in (f" [{mean}, {mean}]", " ± 0.000") else f"{mean}{behind}"
        self.at = {length: number(found.scores(found.at(length)).mean, 3) for length in table.lengths}
        self.unasked = {length: number(found.scores(found.at(length, UNASKED)).mean, 2) for length in table.lengths}
        tuned = (line.metric(table.score.name, "best_val") for line in found.tuned.get(found.rate or "", ()))
        self.tuned = " and ".join(sorted(number(score, 3) for score in tuned))
        self.horizon = str(table.horizon(found) or "none")
        self.ms = costs.step(found.cost) if found.cost else "not measured"
        self.tenth = number(found.steps_to_tenth, 0) or "never"
        self.seconds = "never"
        if found.steps_to_tenth is not None:
            self.seconds = number(found.steps_to_tenth * found.cost.s_per_step, 1) if found.cost else "not measured"
        self.state = number(found.budget.get("state_bytes"), 0)
        self.rate = found.rate


def _places(loss: float | None) -> int:
    """Decimals that show two digits of a loss; three at least, six at most."""
    return min(max(1 - floor(log10(loss)), 3), 6) if loss else 3


def sentence(finding: Finding, words: str) -> str:
    """Words of a finding, `says` or `short`, with their numbers."""
    if SHIPPED.table(finding.table).track != FAIR:
        return words
    fair = fair_of(finding.table, RESULTS)
    named = set(re.findall(r"\{(\w+)\.", words))
    known = {model: Numbers(fair, entry(fair, finding, model)) for model in named}
    blind = {length: number(level, 3) for length, level in fair.order_blind.get(finding.case, {}).items()}
    levels = {"order_blind": blind.get(None), "order_blind_at": blind, "trivial": number(fair.trivial(finding.case), 3)}
    return words.format(**known, **levels)


def source(finding: Finding, root: str) -> str:
    """A link to the table that a finding rests on."""
    page = finding.table.split("/")[0]
    case = f", {finding.case}" if finding.case else ""
    return f"[`{finding.table}`{case}]({root}results/tables/{page}.md)"


def overview() -> str:
    """The models side by side, those that hold three digits best first."""
    tables = {heading: fair_of(table, RESULTS) for heading, (table, _) in COLUMNS.items()}
    entries = {
        heading: {one.model: one for one in tables[heading].at(case) if one.rate}
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
        numbers = Numbers(table, first[model])
        lines.append([model, *scores, numbers.horizon, numbers.ms, numbers.seconds, numbers.state])
    sizes = [budget(fair_of(table, RESULTS)) for table, _ in COLUMNS.values()]
    words = OVERVIEW.format(least=min(sizes), most=max(sizes), repeated=costs.REPEATED)
    text = "".join(chain(*lines))
    words += "".join(f"- {told}\n" for sign, told in TOLD.items() if sign in text)
    return f"{words}\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines)


def budget(table: FairTable) -> int:
    """How many parameters the models of a fair table are given."""
    (given,) = [word for word in table.table.common if word.startswith("params=")]
    return int(given.partition("=")[2])


def _score(table: FairTable, found: FairEntry) -> str:
    if len(found.lines) < len(table.table.seeds):
        return ""
    scores, drop = found.scores(), table.drop(found)
    survivors = f" ({len(scores.values)} of {scores.done})" if scores.diverged else ""
    signs = "†" * found.choice.edge + "‡" * (drop is not None and drop > DROP)
    return f"{number(table.share(found), 2)}{survivors}{signs}"


def picture() -> str:
    """Scores of three digits by the delay of the cue, as SVG: some models by name, all others in grey."""
    name, case = COLUMNS[FIRST]
    table = fair_of(name, RESULTS)
    figure, axes = drawing.subplot(7.2, 3.6)
    axes.axvspan(*table.trained[case], color="#888888", alpha=0.15, linewidth=0)
    ends: list[tuple[list[float], str, str]] = []  # a line, its model and its colour
    for one in (one for one in table.at(case) if one.mean is not None):
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
    axes.axhline(0, color="#888888", linewidth=0.8, linestyle="dotted")
    axes.set_xscale("log")
    axes.set_xticks(list(table.lengths), list(map(str, table.lengths)))
    axes.minorticks_off()
    axes.set_xlabel("steps until the cue (shaded: in training)")
    axes.set_ylabel("three digits, score (0: trivial predictor)")
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
        found = [{e.model: e for e in fair_of(table, RESULTS).at(case) if e.lines} for table, case in COLUMNS.values()]
        pairs = [(entries[one], entries[other]) for entries in found if one in entries and other in entries]
        both = [pair for pair in pairs if all(entry.interval for entry in pair)]
        ahead, behind = sum(a.beats(b) for a, b in both), sum(b.beats(a) for a, b in both)
        said.append(
            f"In the {len(both)} columns where both have an interval, {one} is ahead of {other} in {ahead or 'none'} "
            f"and behind it in {behind or 'none'}; in the other {len(both) - ahead - behind} their intervals touch."
        )
    return "\n".join(said) + "\n"


def page(found: list[Finding]) -> str:
    """docs/results/findings.md."""
    short = "".join(f"- {sentence(one, one.short)} ({source(one, '../../')})\n" for one in found if one.short)
    text = f"{HEAD}\n## In short\n\n{SHORT}\n{short}\n## All cells\n\n{overview()}\n{duels()}"
    for title in dict.fromkeys(one.title for one in found):
        text += f"\n## {title}\n\n"
        for one in (one for one in found if one.title == title):
            text += f"- {sentence(one, one.says)} ({source(one, '../../')})\n" + (
                f"  Why: {one.why}\n" if one.why else ""
            )
    parts = [PUBLISHED.format(folder="../explanation/"), coverage(), apart(), statuses()]
    return f"{text}\n## The papers' numbers beside ours\n\n" + "\n".join(parts)


def judged() -> list[tuple[str, str, str, str]]:
    """Paper, kind, status and, of a number, ours minus theirs of all that the papers print but counts of parameters.

    The kind is `number`, `claim`, or `step` for a claim about the time of a step, which takes no training.
    """
    found = []
    for paper in SHIPPED.papers():
        steps = {(one.table, one.claim) for one in SHIPPED.published(paper) if one.kind == "claim" and is_cost(one)}
        with (RESULTS / "tables" / f"{paper}.csv").open(encoding="utf-8", newline="") as file:
            rows = [row for row in csv.DictReader(file) if row["preset"] == FULL and row["published"] != "lost"]
        found += [
            (
                paper,
                "step" if (row["table"].split("/")[1], row["claim"]) in steps else row["kind"],
                row["status"].partition(" (")[0],
                row["difference"],
            )
            for row in rows
        ]
    return [one for one in found if one[2] in STATUSES]


def statuses() -> str:
    """How many published numbers and claims of each paper have which status."""
    counts = Counter((paper, status) for paper, _, status, _ in judged())
    lines = [["paper", *STATUSES], ["---", *["---:"] * len(STATUSES)]]
    for paper in SHIPPED.papers():
        shown = (str(counts[paper, status]) for status in STATUSES)
        lines.append([f"[{paper}](../../results/tables/{paper}.md)", *shown])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def coverage() -> str:
    """How much of what the papers print has been run at all, and what came of it."""
    kinds = {"number": "numbers", "claim": "claims about training", "step": "claims about the time of a step"}
    found = Counter((kind, status) for _, kind, status, _ in judged())
    shown = [status for status in STATUSES if status != NOT_RUN and any(found[kind, status] for kind in kinds)]
    lines = [["what the papers print", "in all", "run", *shown], ["---", *["---:"] * (len(shown) + 2)]]
    for kind, what in kinds.items():
        counts = [found[kind, status] for status in shown]
        total = sum(found[kind, status] for status in STATUSES)
        lines.append([what, *(str(count) for count in (total, sum(counts), *counts))])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def apart() -> str:
    """On which side of the printed numbers those of ours lie that are called underspecified."""
    gaps = [float(gap) for _, _, status, gap in judged() if status == UNDERSPECIFIED and gap]
    above, below = sum(gap > 0 for gap in gaps), sum(gap < 0 for gap in gaps)
    text = (
        "A number is *underspecified* if ours differs from it, and the paper leaves out a setting that may be the "
        f"reason. Nearly every number has such a setting. Ours is above the printed one in {above} of these cases and "
        f"below it in {below}. *Agrees, not precise*: the published value lies inside our 95 % prediction interval, "
        "but the interval is too wide to confirm it."
    )
    return f"{textwrap.fill(text, 120)}\n"


def readme(text: str) -> str:
    """Return README.md with its two tables between their markers."""
    for mark, block in ((CELLS, needs()), (PAPERS, f"{coverage()}\n{PUBLISHED.format(folder='docs/explanation/')}")):
        start = text.index(mark) + len(mark)
        text = f"{text[:start]}{block}{text[text.index(END, start) :]}"
    return text


def needs() -> str:
    """Table of needs, each with the models that meet it, fastest first."""
    lines, sizes = [["you need to", "cells that do", "tested to", "records"], ["---"] * 4], []
    for need, (heading, least) in NEEDS.items():
        name, case = COLUMNS[heading]
        table = fair_of(name, RESULTS)
        sizes.append(budget(table))
        known = [
            one for one in table.at(case) if one.rate and (ROOT / "conf" / "model" / f"{one.model}.yaml").is_file()
        ]
        able = [one for one in known if (table.horizon(one) or 0) >= least and least not in table.holes(one)]
        able.sort(key=_seconds)
        names = ", ".join(f"`{one.model}`" for one in able[:MOST]) or "none"
        more = f" and {len(able) - MOST} more" if len(able) > MOST else ""
        lines.append([need, names + more, f"{least} steps", f"[`{name}`](results/tables/{name.split('/')[0]}.md)"])
    scope = SCOPE.format(least=min(sizes), most=max(sizes))
    return "".join(f"| {' | '.join(line)} |\n" for line in lines) + f"\n{scope}"


def _seconds(one: FairEntry) -> float:
    return one.cost.s_per_step if one.cost else inf


def texts() -> dict[Path, str]:
    """What the two files should hold."""
    found = read(RESULTS / "findings.yaml")
    return {PAGE: page(found), README: readme(README.read_text(encoding="utf-8"))}


def main(arguments: list[str]) -> int:
    """Returns 1 where a finding no longer holds, or a file is not what it should be and is not to be written."""
    broken = [(one, why) for one in read(RESULTS / "findings.yaml") if (why := problems(one, RESULTS))]
    for one, why in broken:
        print(f"no longer holds: {one.says}\n  {'; '.join(why)}")
    if broken:
        return 1
    stale = {path: text for path, text in texts().items() if not path.is_file() or path.read_text("utf-8") != text}
    for path, text in stale.items():
        if "--write" in arguments:
            path.write_text(text, encoding="utf-8")
            PICTURE.write_text(picture(), encoding="utf-8")
        print(f"{'wrote' if '--write' in arguments else 'not up to date:'} {path}")
    return int(bool(stale) and "--write" not in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
