"""The wheel carries conf/ and nothing private, and runs from another folder."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.conftest import REPO


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(REPO)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (path,) = folder.glob("orthobench-*.whl")
    return path


def test_it_holds_the_configuration_and_the_package_alone(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    ours = sorted(p.relative_to(REPO / "conf").as_posix() for p in (REPO / "conf").rglob("*.yaml"))
    packed = sorted(name.removeprefix("orthobench/conf/") for name in names if name.startswith("orthobench/conf/"))
    assert packed == ours
    published = sorted(p.name for p in (REPO / "results" / "published").iterdir())
    assert {"scornn.yaml", "scornn.bib", "references.bib"} < set(published)
    templates = REPO / "orthobench" / "report" / "templates"
    shown = [path.relative_to(REPO).as_posix() for path in templates.rglob("*") if path.is_file()]
    assert shown
    assert set(shown) <= set(names)
    start = "orthobench/published/"
    assert sorted(name.removeprefix(start) for name in names if name.startswith(start)) == published
    assert {name.split("/")[0].split("-")[0] for name in names} == {"orthobench"}
    assert not [name for name in names if ("test" in name and "/testing/" not in name) or "__pycache__" in name]


def test_it_holds_the_source_of_the_compiled_loops(wheel: Path) -> None:
    names, folder = zipfile.ZipFile(wheel).namelist(), "orthobench/scan/native"
    ours = sorted(p.name for p in (REPO / folder).glob("*.[ch]"))
    assert ours
    assert sorted(name.removeprefix(f"{folder}/") for name in names if name.endswith((".c", ".h"))) == ours


@pytest.mark.slow
def test_it_runs_from_another_folder(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(site)  # our own archive, just built
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    env = {**os.environ, "PYTHONPATH": str(site), "PYTHONSAFEPATH": "1"}
    env.pop("ORTHOBENCH_RUNS")

    def run(*words: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "orthobench", *words]
        return subprocess.run(command, cwd=elsewhere, env=env, capture_output=True, text=True, check=False)

    assert f"conf        {site / 'orthobench' / 'conf'}" in run("doctor").stdout
    done = run("model=scornn", "task=copying", "T=5", "trainer.max_steps=2", "model.hidden_size=4", "task.val_size=4")
    assert done.returncode == 0, done.stderr
    assert len(list((elsewhere / "runs").glob("copying-scornn-*/record.json"))) == 1
