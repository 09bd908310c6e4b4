"""Every command of the README does what it says."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPO

TEXT = (REPO / "README.md").read_text(encoding="utf-8")
LINES = [line for block in re.findall(r"^```sh\n(.*?)^```", TEXT, flags=re.M | re.S) for line in block.splitlines()]
OURS = [shlex.split(line) for line in LINES if line.startswith(("orthobench", "python -m orthobench"))]
RUNS = [words[3:] for words in OURS if words[:3] == ["python", "-m", "orthobench"]]
VERBS = [words[1:] for words in OURS if words[0] == "orthobench"]
SHORT = ["trainer.max_steps=1", "task.val_size=2", "task.test_size=2", "T=3"]


def test_the_readme_has_commands() -> None:
    assert len(RUNS) >= 2
    assert len(VERBS) >= 4
    targets = {line.split()[1] for line in LINES if line.startswith("make")}
    assert targets == {"run", "install", "test", "test-all", "test-kernels", "reproduce-tables"}


def test_the_makefile_has_the_readmes_targets() -> None:
    makefile = (REPO / "Makefile").read_text(encoding="utf-8")
    for line in LINES:
        if line.startswith("make "):
            assert re.search(rf"^{line.split()[1]}:", makefile, flags=re.M), line


def test_make_run_is_the_job_that_the_readme_shows() -> None:
    makefile = (REPO / "Makefile").read_text(encoding="utf-8")
    assert "python -m orthobench model=scornn task=copying T=200 trainer.max_steps=2000" in makefile
    assert "scornn (n=190, 21,764 parameters) on copying, T=200, seed 1" in TEXT


@pytest.mark.parametrize("words", [words for words in RUNS if "-m" not in words], ids=" ".join)
def test_a_run(words: list[str], cli) -> None:
    short = {word.partition("=")[0] for word in SHORT}
    done = cli(*(word for word in words if word.partition("=")[0] not in short), *SHORT)
    assert done.returncode == 0, done.stderr
    assert "record.json" in done.stdout.splitlines()[-1]


@pytest.mark.slow
@pytest.mark.parametrize("words", [words for words in RUNS if "-m" in words], ids=" ".join)
def test_a_sweep_composes(words: list[str]) -> None:
    from orthobench.config.check import check
    from orthobench.config.compose import compose, parse
    from orthobench.launch.sweep import jobs

    plan = jobs(parse([word for word in words if word != "-m"]))
    assert len(plan) > 1
    assert len({check(compose(job)).run_id for job in plan}) == len(plan)


NEED_MORE = ("prepare", "plan", "bench", "compare", "best", "tune")  # docs/own_sweeps.md runs the last three
QUICK = [words for words in VERBS if words[0] not in NEED_MORE]


@pytest.mark.parametrize("words", QUICK, ids=" ".join)
def test_a_verb(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    from orthobench.__main__ import main

    assert main(words) == 0
    assert capsys.readouterr().out


@pytest.mark.slow
def test_the_python_example() -> None:
    (block,) = re.findall(r"^```python\n(.*?)^```", TEXT, flags=re.M | re.S)
    done = subprocess.run(
        [sys.executable, "-c", block], capture_output=True, text=True, check=False, env=dict(os.environ)
    )
    assert done.returncode == 0, done.stderr
    assert "21764" in done.stdout


def test_the_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)]+)\)", TEXT):
        assert (REPO / target).exists(), target


def test_every_setting_in_the_table_exists() -> None:
    from orthobench.config.compose import compose

    values = compose([]).values
    for key in re.findall(r"`([a-z_T]+)=", TEXT.split("| key |")[1].split("\n\n")[0]):
        assert key in values or key in ("model", "task", "recipe", "optimizer", "schedule", "logger"), key


def test_ci_does_nothing_that_the_readme_does_not_say() -> None:
    commands = [line for line in Path(REPO / ".ci" / "run").read_text().splitlines() if line.startswith("make")]
    assert set(commands) <= {line for line in LINES if line.startswith("make")}


@pytest.mark.parametrize("page", ["models.md", "tasks.md"])
def test_the_lists_are_what_the_program_prints(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Renewed by `python scripts/lists.py`."""
    monkeypatch.syspath_prepend(str(REPO / "scripts"))
    from lists import rendered  # type: ignore[import-not-found]

    assert rendered(page) == (REPO / "docs" / page).read_text(encoding="utf-8")


def test_every_model_and_task_is_named() -> None:
    words = set(re.findall(r"\w+", TEXT.split("## Models and tasks")[1].split("\n## ")[0]))
    for kind in ("model", "task"):
        names = {path.stem for path in (REPO / "conf" / kind).glob("*.yaml")}
        assert {name for name in names if not name.endswith("_block")} <= words
