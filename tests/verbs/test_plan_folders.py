"""`plan --folders` writes what is left of a sweep or a table, and a plain loop of the shell does it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from orthobench.__main__ import main
from orthobench.config.recorded import settings_of
from orthobench.recording.digest import owned, read_sealed, write_sealed
from orthobench.recording.run_folder import read
from orthobench.run.__main__ import main as run
from tests.conftest import RECALL, REPO

pytestmark = pytest.mark.usefixtures("here")

TINY = (*RECALL[:-1], "trainer.max_steps=1", "seed=1,2")


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


def data(path: Path, seed: int) -> Path:
    np.savez(path, x=np.random.default_rng(seed).normal(size=(20, 3, 1)), y=np.arange(20) % 2)
    return path


SERIES = (
    "model=rnn", "task=series", "recipe=none", "model.hidden_size=4", "trainer.max_steps=1", "logger=none",
)  # fmt: skip


@pytest.mark.parametrize("how", ["same", "other data", "a link to other data", "no digest", "another's path", "a pipe"])
def test_a_file_is_read_only_if_it_is_the_one_that_was_planned(
    how: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, secret = data(tmp_path / "mine.npz", 1), data(tmp_path / "secret.npz", 2)
    ((folder,), _) = planned(capsys, *SERIES, f"task.path={path}")
    text = (folder / "config.yaml").read_text()
    if how == "other data":
        data(path, 3)
    elif how in ("a link to other data", "a pipe"):
        path.unlink()
        path.symlink_to(secret) if how != "a pipe" else os.mkfifo(path)
    elif how == "no digest":
        (folder / "config.yaml").write_text(text.partition("start:")[0])
    elif how == "another's path":  # written by somebody who knows how digests of settings are made
        made = settings_of(
            yaml.safe_load(text) | {"task": {**yaml.safe_load(text)["task"], "path": str(secret)}}, "runs"
        )
        folder = made.folder
        folder.mkdir()
        (folder / "config.yaml").write_text(owned(text.partition("\n")[2].replace(str(path), str(secret)), made.digest))
    code = run([str(folder)])
    told = capsys.readouterr().err
    assert code == (0 if how == "same" else 2), told
    assert how in ("same", "another's path") or f"{path}, which {folder}/config.yaml names, is not read" in told
    assert (folder / "record.json").exists() == (how == "same")


def test_the_run_that_another_starts_from_is_the_one_that_was_planned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*TINY[:-1]]) == 0
    (first,) = Path("runs").glob("recall-*")
    capsys.readouterr()
    ((folder,), _) = planned(capsys, *TINY[:-1], f"init_from={first}", "runs_root=others")
    record = read_sealed(first / "record.json") or {}
    assert run([str(folder)]) == 0
    capsys.readouterr()
    ((folder,), _) = planned(capsys, *TINY[:-1], "seed=2", f"init_from={first}", "runs_root=others")
    write_sealed(first / "record.json", record | {"steps": 7})
    assert run([str(folder)]) == 2
    assert "record.json, which" in capsys.readouterr().err


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
