"""Make 30 recorded runs of the fair tables again, and write how far their scores drifted.

They are first seeds of rows that another processor made, spread evenly over all such rows.

python scripts/reruns.py              make those that results/reruns.csv lacks, and write the paragraph of the docs
python scripts/reruns.py --check      exit 1 where the paragraph is not what results/reruns.csv says
"""

import argparse
import csv
import re
import statistics
import sys
import textwrap
from pathlib import Path

import torch

from orthobench.recording.files import as_csv, write_bytes
from orthobench.recording.record import hardware
from orthobench.study.catalogue import SHIPPED
from orthobench.study.records import records
from orthobench.study.records.drift import BITWISE, DIFFERENT, ROUNDED, verdict
from orthobench.study.records.records import Line
from orthobench.study.tables.table import FAIR
from orthobench.verbs.rerun import made_again

ROOT = Path(__file__).resolve().parents[1]
RESULTS, MADE = ROOT / "results", ROOT / "results" / "reruns.csv"
PAGE = ROOT / "docs" / "how-to" / "reproduce-a-paper.md"
BEGIN, END = "<!-- reruns -->\n", "<!-- end -->\n"
ROWS = 30
COLUMNS = ["table", "row", "seed", "metric", "recorded", "rerun", "least", "greatest", "verdict", "cpu", "rerun_cpu",
           "git", "rerun_git"]  # fmt: skip


def main() -> int:
    """Make, write, or check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--runs", default="runs", help="folder of the reruns")
    asked = parser.parse_args()
    if not asked.check:
        make(asked.runs)
    wanted = page()
    if asked.check:
        return int(PAGE.read_text(encoding="utf-8") != wanted)
    PAGE.write_text(wanted, encoding="utf-8")
    return 0


def page() -> str:
    """The page of the docs, with the paragraph that results/reruns.csv gives."""
    found = PAGE.read_text(encoding="utf-8")
    return re.sub(f"{BEGIN}.*?{END}", lambda _: BEGIN + paragraph(made()) + END, found, flags=re.S)


def made() -> list[dict[str, str]]:
    """Lines of results/reruns.csv."""
    if not MADE.is_file():
        return []
    with MADE.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def chosen() -> list[tuple[str, Line]]:
    """Runs to be made again, each with its table."""
    here = hardware(torch.device("cpu"))["cpu"]
    all_of = [
        (table.name, line)
        for table in SHIPPED.tables()
        if table.track == FAIR
        for line in records.read(RESULTS, table.name)
        if line.seed == 1
        and line.preset == "full"
        and line.values["status"] == "done"
        and line.values.get("cpu") != here
    ]
    return [all_of[len(all_of) * i // ROWS] for i in range(min(ROWS, len(all_of)))]


def make(runs: str) -> None:
    """Make the runs that there are not yet, and keep each as soon as it is made."""
    rows = made()
    known = {(row["table"], row["row"]) for row in rows}
    for name, line in [] if len(rows) >= ROWS else chosen():
        if (name, line.row) in known:
            continue
        _, before, after, found = made_again([name, line.row, f"seed={line.seed}", f"runs_root={runs}"])
        score = next(one for one in found if one.name == f"best_val:{SHIPPED.table(name).score}")
        least, greatest = score.seeds or ("", "")
        values = [name, line.row, line.seed, score.name, score.before, score.after, least, greatest, verdict(found)]
        values += [one.values.get(key) for key in ("cpu", "git") for one in (before, after)]
        rows.append(dict(zip(COLUMNS, map(str, values), strict=True)))
        write_bytes(MADE, as_csv(COLUMNS, ([row[column] for column in COLUMNS] for row in rows)).encode())


def paragraph(rows: list[dict[str, str]]) -> str:
    """What the lines say, for the docs."""
    words = [row["verdict"] for row in rows]
    moved = [abs(float(row["rerun"]) - float(row["recorded"])) for row in rows]
    ranged = [row for row in rows if row["least"]]
    outside = [row for row in ranged if not float(row["least"]) <= float(row["rerun"]) <= float(row["greatest"])]
    before, after = (", ".join(sorted({row[column] for row in rows})) for column in ("cpu", "rerun_cpu"))
    first = (
        f"Of {len(rows)} runs of the fair tables, made on {before} and made again on {after}, "
        f"{words.count(BITWISE)} are bitwise the same, {words.count(ROUNDED)} the same to rounding, "
        f"and {words.count(DIFFERENT)} differ. Training amplifies rounding, and so does every change of the code. "
    )
    second = (
        f"The number that ranks the row moved by {statistics.median(moved):.2g} in the median, "
        f"and by {max(moved):.2g} at most. "
        f"It left the range of the recorded seeds in {len(outside)} of the {len(ranged)} rows with several seeds. "
    )
    third = "`python scripts/reruns.py` made [the numbers](../../results/reruns.csv).\n"
    return textwrap.fill(first + second, 136, break_on_hyphens=False) + "\n" + third


if __name__ == "__main__":
    sys.exit(main())
