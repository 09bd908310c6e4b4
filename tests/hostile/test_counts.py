"""docs/security.md says how many hostile inputs are tried; the number is counted, never typed."""

import re
import subprocess
import sys
from collections import Counter

import pytest

from tests.conftest import REPO

KINDS = {
    "test_foreign_configuration.py": "a stranger's configuration folder, overrides and options",
    "test_yaml.py": "YAML files that are damaged, endless or enormous",
    "test_enormous_settings.py": "settings, sweeps and seeds that no machine could carry out",
    "test_damaged_data.py": "damaged copies of published data",
    "test_run_folder.py": "records, checkpoints, run folders and tables of records",
    "test_outputs.py": "names from files, in the terminal, CSV, Markdown, LaTeX, HTML and figures",
    "test_working_directory.py": "modules in the working directory, against every way in which processes start",
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
    rows = [f"| {kind} | {found[name]:,} | `{name}` |" for name, kind in KINDS.items()]
    total = sum(found[name] for name in KINDS)
    return "\n".join(["| what | inputs | tests/hostile/ |", "|---|---:|---|", *rows, f"| all | {total:,} | |"])


@pytest.mark.slow
def test_the_page_has_what_is_counted() -> None:
    assert table() in (REPO / "docs" / "security.md").read_text(encoding="utf-8"), f"the table should be\n{table()}"
