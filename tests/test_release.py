"""The files of a release agree with the package; requirements.lock has every dependency with its hashes."""

import json
import re
import tomllib

from omegaconf import OmegaConf

from orthobench import __version__
from tests.conftest import REPO

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


def test_what_is_pinned_is_locked() -> None:
    pinned = re.findall(r"(?m)^([A-Za-z0-9_.-]+)==(\S+)", (REPO / "constraints.txt").read_text(encoding="utf-8"))
    locked = {(plain(name), version) for name, version, _ in ENTRIES}
    assert {(plain(name), version) for name, version in pinned} <= locked


def test_every_dependency_is_locked() -> None:
    project = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [
        *project["dependencies"],
        *(word for words in project["optional-dependencies"].values() for word in words),
    ]
    names = {plain(re.match(r"[A-Za-z0-9_.-]+", word)[0]) for word in wanted}  # type: ignore[index]
    assert names <= {plain(name) for name, _, _ in ENTRIES}


def test_every_package_has_hashes() -> None:
    assert len(ENTRIES) > 100
    assert [name for name, _, rest in ENTRIES if not re.search(r"--hash=sha256:[0-9a-f]{64}", rest)] == []
    assert not re.search(r"(?m)^(?!#| |[A-Za-z0-9_.-]+==)", LOCK.strip()), "no other kind of line, such as an address"
