"""Write the lists of models and tasks, as `orthobench list` prints them, into README.md.

Run as: python scripts/readme_lists.py
"""

import contextlib
import io
import re
import sys
from pathlib import Path

from orthobench.verbs import list as listing

README = Path(__file__).resolve().parents[1] / "README.md"


def rendered(text: str) -> str:
    """README.md's text with every list as it should be now."""
    for kind in ("models", "tasks"):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            listing.main([kind])
        lines = [line.rstrip() for line in out.getvalue().splitlines() if not re.match(r"\s+(no data:|data in) ", line)]
        block = "\n".join([f"<!-- list {kind} -->", "```", *lines, "```"])
        text = re.sub(rf"<!-- list {kind} -->\n```\n.*?```", lambda _, block=block: block, text, flags=re.S)
    return text


if __name__ == "__main__":
    README.write_text(rendered(README.read_text(encoding="utf-8")), encoding="utf-8")
    sys.exit(0)
