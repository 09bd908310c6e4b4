"""The wheel carries conf/ and nothing private; the files of a release agree, and the lock is whole."""

import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from orthobench import __version__
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


PROJECT = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CITED = OmegaConf.load(REPO / "CITATION.cff")
ZENODO = json.loads((REPO / ".zenodo.json").read_text(encoding="utf-8"))
DOCKER = (REPO / "Dockerfile").read_text(encoding="utf-8")


def test_the_citation_has_what_the_format_asks_for_and_the_version_of_the_package() -> None:
    assert {"cff-version", "message", "title", "authors"} <= set(CITED)
    assert CITED["cff-version"] == "1.2.0"
    assert CITED.type == "software"
    assert CITED.license == PROJECT["license"]
    assert str(CITED.version) == __version__
    assert [author.name for author in CITED.authors] == [author["name"] for author in PROJECT["authors"]]


def test_zenodo_says_the_same() -> None:
    assert ZENODO["upload_type"] == "software"
    assert ZENODO["title"] == CITED.title
    assert ZENODO["license"] == CITED.license
    assert ZENODO["keywords"] == PROJECT["keywords"]
    assert ZENODO["creators"] == [{"name": author.name} for author in CITED.authors]
    assert len(ZENODO["description"]) > 100


def test_the_image_is_made_of_files_that_exist_and_makes_the_first_run() -> None:
    copied = [word for line in re.findall(r"^COPY (.+) \S+$", DOCKER, flags=re.M) for word in line.split()]
    assert copied
    assert all((REPO / name).exists() for name in copied)
    allowed = (REPO / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert allowed[0] == "*"
    assert {f"!{name}" for name in copied} == {line for line in allowed if line.startswith("!")}
    assert "-c constraints.txt" in DOCKER
    first = next(
        line for line in (REPO / "Makefile").read_text(encoding="utf-8").splitlines() if "task=copying" in line
    )
    assert f"orthobench {first.split('-m orthobench ')[1]} " in DOCKER


LOCK = (REPO / "requirements.lock").read_text(encoding="utf-8")
ENTRIES = re.findall(r"(?m)^([A-Za-z0-9_.-]+)==(\S+)(.*(?:\n +.*)*)", LOCK)


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_what_is_pinned_and_every_dependency_is_locked_with_hashes() -> None:
    pinned = re.findall(r"(?m)^([A-Za-z0-9_.-]+)==(\S+)", (REPO / "constraints.txt").read_text(encoding="utf-8"))
    locked = {(plain(name), version) for name, version, _ in ENTRIES}
    assert {(plain(name), version) for name, version in pinned} <= locked
    wanted = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    names = {plain(re.match(r"[A-Za-z0-9_.-]+", word)[0]) for words in wanted for word in words}  # type: ignore[index]
    assert names <= {name for name, _ in locked}
    assert len(ENTRIES) > 100
    assert [name for name, _, rest in ENTRIES if not re.search(r"--hash=sha256:[0-9a-f]{64}", rest)] == []
    assert not re.search(r"(?m)^(?!#| |[A-Za-z0-9_.-]+==)", LOCK.strip()), "no other kind of line, such as an address"
