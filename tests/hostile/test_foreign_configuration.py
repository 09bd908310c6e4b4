"""A stranger's `--config-dir` runs no code, reads no secret, and writes to no place but that of the command line."""

from itertools import product
from pathlib import Path
from typing import Any

import pytest

from orthobench.__main__ import main
from orthobench.config.policy import check_values
from orthobench.errors import ConfigError
from tests.conftest import write

HEADERS = (
    "# @package hydra",
    " # @package hydra",
    "\n\t# @package hydra",
    "# @package  hydra.job",
    "#@package hydra.help",
)
BODIES = (
    "help: {template: canary}",
    "job: {env_set: {LD_PRELOAD: canary.so}}",
    "callbacks: {a: {x: 1}}",
    "run: {dir: canary}",
    "launcher: {n_jobs: 64}",
    "job_logging: {version: 1}",
)
DEFAULTS = (
    "/task@_global_.hydra.hydra_logging: copying",
    "/task@hydra.job: copying",
    "override /hydra/launcher: joblib",
    "/hydra/help@_here_: default",
    "/task@_global_.hydra: copying",
    "/model@_global_.hydra.job.env_set: rnn",
)
PLACES = (
    "runs_root: canary",
    "results_root: canary",
    "data_root: canary",
    "data: {verify: false}",
    "logger: {project: canary}",
    "logger: {entity: canary}",
    "force: true",
    "timeout: 1",
    "{runs_root: canary, results_root: canary}",
)
SECRETS = (
    "${oc.env:AWS_SECRET_ACCESS_KEY}",
    "${${cell}:AWS_SECRET_ACCESS_KEY}",
    "${oc.${cell}:AWS_SECRET_ACCESS_KEY}",
    "${oc.env:${cell}}",
    "${oc.decode:x}",
    "${oc.create:x}",
    "a${${cell}:b}c",
    "${oc.env:ORTHOBENCH_DATA,${oc.env:HOME}}",
)
ASKED = ([], ["--help"], ["--cfg", "job"], ["-m"])


def refused(files: dict[str, str], words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program ends with 2 and has written nothing."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a secret")
    write(tmp_path / "conf", files)
    assert main(["--config-dir", "conf", *words, "task=copying", "T=5", "trainer.max_steps=1"]) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["conf"]


@pytest.mark.sampled(12)
@pytest.mark.parametrize(("header", "body", "asked"), list(product(HEADERS, BODIES, ASKED)))
def test_hydra_itself(
    header: str, body: str, asked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused({"model/evil.yaml": f"{header}\n{body}\n"}, [*asked, "model=evil"], tmp_path, monkeypatch)


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("entry", "asked"), list(product(DEFAULTS, ASKED)))
def test_defaults(entry: str, asked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"defaults:\n  - {entry}\ncell: elman\n"
    refused({"model/evil.yaml": text}, [*asked, "model=evil"], tmp_path, monkeypatch)


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("body", "asked", "group"), list(product(PLACES, ASKED, ("recipe", "trainer"))))
def test_places_and_logger(
    body: str, asked: list[str], group: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {f"{group}/evil.yaml": f"# @package _global_\n{body}\n"}
    refused(files, [*asked, f"{group}=evil"], tmp_path, monkeypatch)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "word", ["runs_root=canary", "++data_root=canary", "logger=wandb", "logger.entity=x", "force=true"]
)
@pytest.mark.parametrize("key", ["common", "cells"])
def test_a_table(word: str, key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    common, cell = (f", '{word}'" if key == where else "" for where in ("common", "cells"))
    rows = f"common: [task=copying{common}]\ncells:\n  a: [model=rnn{cell}]\n"
    text = f"track: published\nseeds: [1]\nmargin: {{}}\n{rows}"
    refused({"experiment/evil/table1.yaml": text}, ["experiment=evil/table1"], tmp_path, monkeypatch)


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("value", "asked"), list(product(SECRETS, ASKED)))
def test_secrets(value: str, asked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"# @package _global_\ncell: oc.env\ndeviations: ['{value}']\n"
    refused({"recipe/evil.yaml": text}, [*asked, "recipe=evil"], tmp_path, monkeypatch)


@pytest.mark.parametrize("word", ["deviations=['${${cell}:HOME}']", "deviations=['${oc.${cell}:HOME}']"])
def test_secrets_on_the_command_line(word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused({"model/x.yaml": "cell: elman\n"}, [word, "cell=oc.env"], tmp_path, monkeypatch)


@pytest.mark.parametrize(
    "content",
    [{"token": "hf_abc"}, {"a": {"authtoken": "x"}}, {"accessTokens": ["x"]}, {"tokens": {"a": "x"}}, {"TOKEN": 10**10},
     {"num_tokens": "512"}, {"password": 1234}, {"api_key": None}, {"secrets": True}],
)  # fmt: skip
def test_keys_of_secrets(content: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="looks like a secret"):
        check_values(content)


def test_a_number_of_tokens_is_no_secret() -> None:
    check_values(
        {"num_tokens": 512, "model": {"token_dim": 64, "token_dropout": 0.1, "tokenize": True, "tokens": None}}
    )


@pytest.mark.parametrize(
    "option", ["--experimental-re=x.pickle", "--experimental-rerun=x.pickle", "--config-pa=x", "--config-na=x", "-cp=x"]
)
def test_options_that_read_elsewhere(option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused({"model/x.yaml": "cell: elman\n"}, [option], tmp_path, monkeypatch)
