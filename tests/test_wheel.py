"""The wheel carries conf/ and nothing private, and runs from another folder."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.conftest import REPO

FIRST_RUN = "model=scornn task=copying T=200 trainer.max_steps=2000"  # of `make run`, as tests/test_readme.py holds it


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and with the wheel that is built from it: those of `make dist`, or new ones."""
    if made := os.environ.get("ORTHOBENCH_DIST"):
        return Path(made).absolute()
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(REPO)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    (path,) = dist.glob("orthobench-*.whl")
    return path


def test_the_sdist_holds_what_a_checkout_needs_to_be_installed_and_run(dist: Path) -> None:
    (path,) = dist.glob("orthobench-*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"Makefile", "pyproject.toml", "constraints.txt", "README.md", "LICENSE", "scripts/install.py"} <= names
    assert {"Dockerfile", "CITATION.cff", ".zenodo.json"} <= names
    ours = {p.relative_to(REPO).as_posix() for p in (REPO / "conf").rglob("*.yaml")}
    assert ours <= names
    assert not [name for name in names if name.startswith(("runs/", "data/", ".venv/"))]


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
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(site), str(wheel)]
    installed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert installed.returncode == 0, installed.stderr
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    env = {**os.environ, "PYTHONPATH": str(site), "PYTHONSAFEPATH": "1"}
    env.pop("ORTHOBENCH_RUNS")

    def run(*words: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "orthobench", *words]
        return subprocess.run(command, cwd=elsewhere, env=env, capture_output=True, text=True, check=False)

    assert f"conf        {site / 'orthobench' / 'conf'}" in run("doctor").stdout
    assert (site / "bin" / "orthobench").is_file()
    first, steps = FIRST_RUN.rsplit("=", 1)
    assert int(steps) == 2000
    done = run(*first.split()[:-1], "trainer.max_steps=20")
    assert done.returncode == 0, done.stderr
    assert "scornn (n=190, 21,764 parameters) on copying, T=200, seed 1" in done.stdout
    assert len(list((elsewhere / "runs").glob("copying-scornn-*/record.json"))) == 1
