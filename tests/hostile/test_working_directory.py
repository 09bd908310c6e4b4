"""No process of a sweep imports a module that lies in the working directory, unless the program itself does."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPO, write

PLANTED = ("orthobench", "hydra", "torch", "numpy", "omegaconf", "lightning", "joblib", "json", "yaml", "typing", "gc")
PROGRAM = "import sys\nfrom orthobench.__main__ import main\nsys.exit(main())\n"
RUNS = (
    "-m",
    "model=rnn",
    "task=copying",
    "T=5",
    "recipe=none",
    "seed=1,2",
    "model.hidden_size=4",
    "trainer.max_steps=1",
)
STARTED = {
    "a fork server": (),
    "new interpreters": ("fork=false",),
    "several at a time": ("hydra/launcher=joblib", "hydra.launcher.n_jobs=2"),
}
CELL = "from orthobench.cells.elman import Elman\nclass Planted(Elman):\n    pass\n"


def run(command: list[str], words: tuple[str, ...], folder: Path, **env: str) -> "subprocess.CompletedProcess[str]":
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run(
        [sys.executable, *command, *words],
        cwd=folder,
        env={**clean, **env},
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.slow
@pytest.mark.parametrize("way", STARTED)
def test_planted_modules(way: str, tmp_path: Path) -> None:
    for name in PLANTED:
        (tmp_path / f"{name}.py").write_text(
            f"import os\nos.mkdir({str(tmp_path / 'canary')!r})\nraise SystemExit(99)\n"
        )
    program = tmp_path / "bin" / "program.py"  # what a console script is
    write(tmp_path, {"bin/program.py": PROGRAM})
    done = run([str(program)], (*RUNS, *STARTED[way]), tmp_path, PYTHONPATH=str(REPO))
    assert not (tmp_path / "canary").exists(), done.stderr
    assert done.returncode == 0, done.stderr
    assert "2 of 2 runs done" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("way", ["a fork server", "new interpreters"])
@pytest.mark.parametrize("found_by", ["-m", "PYTHONPATH"])
def test_plug_ins_of_the_working_directory(way: str, found_by: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(CELL)
    words = (*RUNS, "model.cell=planted", *STARTED[way])
    (tmp_path / "program.py").write_text(PROGRAM)
    command = ["-m", "orthobench"] if found_by == "-m" else ["-P", "program.py"]
    path = str(REPO) if found_by == "-m" else f"{REPO}:"
    done = run(command, words, tmp_path, PYTHONPATH=path, ORTHOBENCH_PLUGINS="mine")
    assert done.returncode == 0, done.stderr


RC = {"usetex": b"text.usetex: true\n", "an unknown backend": b"backend: x\n", "no text": b"\xff\xfe\x00"}


@pytest.mark.parametrize("kind", [*RC, "a pipe"])
@pytest.mark.parametrize("removed", [False, True])
def test_figures_do_not_read_it(kind: str, removed: bool, tmp_path: Path) -> None:
    place = tmp_path / "matplotlibrc"
    os.mkfifo(place) if kind == "a pipe" else place.write_bytes(RC[kind])
    program = (
        "import os, shutil, sys\nfrom orthobench.report import drawing\n"
        f"{'shutil.rmtree(os.getcwd())' if removed else ''}\n"
        "text = drawing.svg(drawing.lines({'a': [(1.0, 2.0), (2.0, 3.0)]}, 'x', 'y'))\n"
        "assert os.environ['SOURCE_DATE_EPOCH'] == 'abc' and os.environ['MPLBACKEND'] == 'abc'\n"
        "sys.stdout.write(text)"
    )
    odd = {"SOURCE_DATE_EPOCH": "abc", "MPLBACKEND": "abc", "MATPLOTLIBRC": str(place), "PYTHONPATH": str(REPO)}
    (tmp_path / "x").mkdir()
    done = run(["-c", program], (), tmp_path / "x" if removed else tmp_path, **odd)
    assert done.returncode == 0, done.stderr
    from orthobench.report import drawing

    assert done.stdout == drawing.svg(drawing.lines({"a": [(1.0, 2.0), (2.0, 3.0)]}, "x", "y"))
