"""Write docs/findings.md, and its short version in README.md, from results/findings.yaml and the records.

python scripts/findings.py             what no longer holds, and what is not written yet
python scripts/findings.py --write     write both; refused where a finding no longer holds
"""

import csv
import re
import sys
from collections import Counter
from pathlib import Path

from orthobench.analysis.fair import FairTable
from orthobench.analysis.fair_entry import FairEntry
from orthobench.analysis.findings import Finding, entry, fair_of, problems, read
from orthobench.analysis.published import papers
from orthobench.analysis.status import STATUSES
from orthobench.config.table import FAIR, FULL, load
from orthobench.report import costs
from orthobench.report.fair_figures import figures
from orthobench.report.numbers import number, spread

ROOT = Path(__file__).resolve().parents[1]
PICTURE, SHOWN = ROOT / "docs" / "findings.svg", ("fair/cued_copying", "Cued copying, digits=3: score by length")
RESULTS, PAGE, README = ROOT / "results", ROOT / "docs" / "findings.md", ROOT / "README.md"
START, END = "<!-- findings -->\n", "<!-- end -->\n"
HEAD = """\
# Findings

What the records in `results/records` say. Every sentence names its table, and the numbers in it are read from the
records; each rests on tests in `results/findings.yaml`, which the project's own tests evaluate, so a sentence that the
records no longer bear out cannot stand here. Scores are means over five seeds that were not used for tuning, with their
95 % interval; one model is ahead of another where the two intervals do not touch. `python scripts/findings.py --write`
writes this page again.
"""


class Numbers:
    """What a sentence may say of a model: `{ncgru.score}`, `{ncgru.horizon}`, `{ncgru.ms}`, `{ncgru.state}`."""

    def __init__(self, table: FairTable, found: FairEntry) -> None:
        self.score = f"{number(found.mean, 3)}{spread(found.t_interval_of(table.score.name), 3, table.score.bounds)}"
        self.horizon = str(table.horizon(found) or "none")
        self.ms = costs.step(found.cost) if found.cost else "not measured"
        self.state = number(found.budget.get("state_bytes"), 0)
        self.rate = found.rate


def sentence(finding: Finding) -> str:
    """The sentence with its numbers."""
    if load(finding.table).track != FAIR:
        return finding.says
    fair = fair_of(finding.table, RESULTS)
    named = set(re.findall(r"\{(\w+)\.", finding.says))
    known = {model: Numbers(fair, entry(fair, finding, model)) for model in named}
    return finding.says.format(**known, order_blind=number(fair.order_blind.get(finding.case), 3))


def source(finding: Finding, root: str) -> str:
    """A link to the table that a finding rests on."""
    page = finding.table.split("/")[0]
    case = f", {finding.case}" if finding.case else ""
    return f"[`{finding.table}`{case}]({root}results/tables/{page}.md)"


def page(found: list[Finding]) -> str:
    """docs/findings.md."""
    text = HEAD
    for title in dict.fromkeys(one.title for one in found):
        text += f"\n## {title}\n\n"
        for one in (one for one in found if one.title == title):
            text += f"- {sentence(one)} ({source(one, '../')})\n" + (f"  Why: {one.why}\n" if one.why else "")
    return f"{text}\n## The papers' numbers beside ours\n\n{statuses()}"


def statuses() -> str:
    """How many published numbers and claims of each paper have which status, by results/tables."""
    lines = [["paper", *STATUSES], ["---", *["---:"] * len(STATUSES)]]
    for paper in papers():
        with (RESULTS / "tables" / f"{paper}.csv").open(encoding="utf-8", newline="") as file:
            counts = Counter(row["status"].partition(" (")[0] for row in csv.DictReader(file) if row["preset"] == FULL)
        lines.append([f"[{paper}](../results/tables/{paper}.md)", *(str(counts[status]) for status in STATUSES)])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def readme(text: str, found: list[Finding]) -> str:
    """README.md with the short version between its markers."""
    start = text.index(START) + len(START)
    short = "".join(f"- {sentence(one)} ({source(one, '')})\n" for one in found if one.short)
    return f"{text[:start]}\n{short}\n{text[text.index(END, start) :]}"


def texts() -> dict[Path, str]:
    """What the two files should hold."""
    found = read(RESULTS / "findings.yaml")
    return {PAGE: page(found), README: readme(README.read_text(encoding="utf-8"), found)}


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
            PICTURE.write_text(figures(fair_of(SHOWN[0], RESULTS))[SHOWN[1]], encoding="utf-8")
        print(f"{'wrote' if '--write' in arguments else 'not up to date:'} {path}")
    return int(bool(stale) and "--write" not in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
