"""`plan --folders` writes what is left of a sweep or a table, and a plain loop of the shell does it."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from orthobench.__main__ import main
from orthobench.recording.run_folder import read
from orthobench.run.__main__ import main as run
from tests.conftest import REPO

TINY = (
    "model=rnn", "task=recall", "recipe=none", "T=5", "model.hidden_size=4", "task.val_size=2", "task.test_size=2",
    "task.batch_size=2", "logger=none", "trainer.max_steps=1", "seed=1,2",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def planned(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> tuple[list[Path], str]:
    """The folders that are printed, and what else is told."""
    assert main(["plan", *words, "--folders"]) == code
    out, err = capsys.readouterr()
    return [Path(line) for line in out.splitlines()], err


def test_what_is_left_of_a_sweep(capsys: pytest.CaptureFixture[str]) -> None:
    folders, told = planned(capsys, "-m", *TINY, "optimizer.lr=0.1,0.01")
    assert "4 folders to do, 0 runs done already" in told
    assert [(read(one).run["seed"], read(one).optimizer["lr"]) for one in folders] == [
        (1, 0.1),
        (1, 0.01),
        (2, 0.1),
        (2, 0.01),
    ]
    assert not list(Path("runs").glob("*/record.json")), "nothing is started"
    assert run([str(folders[0])]) == 0
    capsys.readouterr()
    left, told = planned(capsys, "-m", *TINY, "optimizer.lr=0.1,0.01")
    assert left == folders[1:]
    assert "3 folders to do, 1 runs done already" in told


def test_a_folder_of_another_run_hinders_no_other(capsys: pytest.CaptureFixture[str]) -> None:
    folders, _ = planned(capsys, *TINY)
    (folders[0] / "config.yaml").write_text(f"# {64 * '0'} {64 * '0'}\n")
    left, told = planned(capsys, *TINY, code=6)
    assert left == folders[1:]
    assert "another run's" in told
    assert "1 folders to do, 0 runs done already, 1 refused" in told


def test_the_rows_of_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    folders, told = planned(capsys, "urnn_ugru/table3", "--preset", "smoke")
    assert len({read(folder).run["cell"] for folder in folders}) == len(folders) > 1
    assert "`orthobench reproduce` with the same words records" in told


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((*TINY, "hydra/launcher=local"), "does not apply to --folders"),
        ((*TINY, "--preset", "smoke"), "--preset smoke is of a table"),
        (("urnn_ugru/table3", "--record"), "neither --cheapest nor --record"),
        ((*TINY, "model.rho=3"), "model.rho does not apply"),
    ],
)
def test_what_is_refused(words: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert planned(capsys, *words, code=2)[0] == []
    assert not Path("runs").exists()
    assert main(["plan", *words, "--folders"]) == 2
    assert sentence in capsys.readouterr().err


def test_the_loop_of_the_docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (REPO / "docs" / "how-to" / "clusters.md").read_text(encoding="utf-8")
    (block,) = (text for text in re.findall(r"(?s)```sh\n(.*?)```", page) if "while read" in text)
    plan, loop = block.splitlines()
    assert plan.startswith("orthobench plan ")
    assert plan.endswith(" --folders > runs.txt")
    program = f'orthobench() {{ "{sys.executable}" -m orthobench "$@"; }}\npython() {{ "{sys.executable}" "$@"; }}\n'
    monkeypatch.setenv("PYTHONPATH", str(REPO))
    done = subprocess.run(["sh", "-ec", f"{program}orthobench plan {' '.join(TINY)} --folders > runs.txt\n{loop}"])
    assert done.returncode == 0
    records = [json.loads(path.read_text()) for path in (tmp_path / "runs").glob("*/record.json")]
    assert [record["status"] for record in records] == ["done", "done"]
