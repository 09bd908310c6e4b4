"""docs/explanation/security.md says how many hostile inputs are tried; the number is counted, never typed."""

import re
import subprocess
import sys
from collections import Counter

import pytest

from tests.conftest import REPO

KINDS = {
    "a stranger's configuration folder, overrides and options": ("foreign_configuration", "endless_configuration"),
    "paths and links in them, and in runs": ("named_files", "links"),
    "YAML files that are damaged, endless or enormous": ("yaml",),
    "settings, sweeps and seeds that no machine could carry out": ("enormous_settings",),
    "damaged copies of published data, and data of one's own of the wrong kind": ("damaged_data", "own_data"),
    "records, checkpoints, run folders and tables of records": ("run_folder", "values_of_a_run", "files_of_a_run"),
    "journals of a tuning": ("journal",),
    "names from files, in the terminal, CSV, Markdown, LaTeX, HTML and figures": ("outputs",),
    "records whose words are commands of a shell": ("printed_commands",),
    "modules in the working directory, against every way in which processes start": ("working_directory",),
}


def table() -> str:
    """The table as it should be."""
    listed = subprocess.run(
        [sys.executable, "-m", "pytest", "tests/hostile", "--collect-only", "-q", "-m", "", "-p", "no:cacheprovider"],
        cwd=REPO,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    found = Counter(re.findall(r"(?m)^tests/hostile/(\w+\.py)::", listed))
    kinds = {kind: [f"test_{name}.py" for name in names] for kind, names in KINDS.items()}
    counts = {kind: sum(found[name] for name in names) for kind, names in kinds.items()}
    rows = [f"| {kind} | {counts[kind]:,} | {', '.join(f'`{name}`' for name in kinds[kind])} |" for kind in KINDS]
    return "\n".join(
        ["| what | inputs | tests/hostile/ |", "|---|---:|---|", *rows, f"| all | {sum(counts.values()):,} | |"]
    )


@pytest.mark.slow
def test_the_page_has_what_is_counted() -> None:
    page = (REPO / "docs" / "explanation" / "security.md").read_text(encoding="utf-8")
    assert table() in page, f"the table should be\n{table()}"
