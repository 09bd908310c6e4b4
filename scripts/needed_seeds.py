"""How many seeds the claims of each table need, as a table in Markdown.

python scripts/needed_seeds.py            print it
python scripts/needed_seeds.py --write    put it into docs/explanation/judging.md, between its markers
"""

import sys
from pathlib import Path

from orthobench.study.catalogue import SHIPPED
from orthobench.study.tables.published import load_table
from orthobench.study.verdicts.claims import needed_seeds

PAGE = Path(__file__).resolve().parents[1] / "docs" / "explanation" / "judging.md"
START, END = "<!-- needed seeds -->\n", "<!-- end -->\n"
HEADERS = ("table", "claims that are tested", "seeds planned", "to hold", "for the opposite")


def table() -> str:
    """A line for each table whose claims are tested over seeds."""
    lines = [" | ".join(HEADERS), " | ".join(["---"] * len(HEADERS))]
    for name in SHIPPED.options("experiment"):
        one = SHIPPED.table(name)
        found = needed_seeds([printed for printed in load_table(one) if printed.kind == "claim"])
        if found is not None:
            lines.append(f"`{name}` | {found.claims} | {len(one.seeds)} | {found.hold} | {found.opposite}")
    return "".join(f"| {line} |\n" for line in lines)


if __name__ == "__main__":
    made = table()
    if "--write" in sys.argv[1:]:
        text = PAGE.read_text(encoding="utf-8")
        start = text.index(START) + len(START)
        PAGE.write_text(f"{text[:start]}\n{made}\n{text[text.index(END, start) :]}", encoding="utf-8")
    else:
        sys.stdout.write(made)
