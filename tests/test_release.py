"""The files that come with a release agree with the package."""

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
