import io
import itertools
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

REPO = Path(__file__).resolve().parents[1]
DATA = os.environ.get("ORTHOBENCH_DATA")

_TESTS = itertools.count()

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["WANDB_MODE"] = "offline"

Run = Callable[..., "subprocess.CompletedProcess[str]"]
RECALL = (
    "model=rnn", "task=recall", "recipe=none", "T=5", "model.hidden_size=4", "task.val_size=2", "task.test_size=2",
    "task.batch_size=2", "logger=none", "trainer.max_steps=2",
)  # fmt: skip
Refused = Callable[[list[str], str], None]


def write(folder: Path, files: dict[str, Any]) -> Path:
    """Write files by their names: text and bytes as they are, and all else as YAML."""
    for name, content in files.items():
        text = content if isinstance(content, str | bytes) else yaml.safe_dump(content)
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


def zipped(members: Mapping[str, bytes]) -> bytes:
    """A zip archive of files by their names."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


@pytest.hookimpl(tryfirst=True)  # before `-m` looks at the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that need what this machine lacks are skipped, each with its reason; of sampled ones most are slow."""
    _sample(items)
    for item in items:
        if item.get_closest_marker("data") and not DATA:
            item.add_marker(pytest.mark.skip(reason="$ORTHOBENCH_DATA is not set: no real data sets here"))
        if item.get_closest_marker("gpu"):
            import torch

            if not torch.cuda.is_available():
                item.add_marker(pytest.mark.skip(reason="no CUDA device here"))


def _sample(items: list[pytest.Item]) -> None:
    """Mark all but n cases of every test with `sampled(n)` as slow."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sampled"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for found in cases.values():
        kept = found[0].get_closest_marker("sampled").args[0]  # type: ignore[union-attr]
        for place, item in enumerate(found):
            if place * kept // len(found) == (place - 1) * kept // len(found):
                item.add_marker("slow")


@pytest.fixture(autouse=True)
def _own_roots(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No test writes runs outside a folder of its own, which is made where one is written."""
    if "tmp_path" in request.fixturenames:
        own = request.getfixturevalue("tmp_path")
    else:
        own = tmp_path_factory.getbasetemp() / f"test-{next(_TESTS)}"
    monkeypatch.setenv("ORTHOBENCH_RUNS", str(own / "runs"))
    monkeypatch.delenv("ORTHOBENCH_PLUGINS", raising=False)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder in which the program is called."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Refused:
    """Call the program with words that it must refuse, with 2 and the sentence in the last line."""
    from orthobench.__main__ import main

    def check(words: list[str], sentence: str) -> None:
        capsys.readouterr()
        assert main(words) == 2
        assert sentence in capsys.readouterr().err.splitlines()[-1]

    return check


@pytest.fixture
def cli(tmp_path: Path) -> Run:
    """Run the program as a user does, in a process of its own and an empty folder."""

    def run(
        *words: str, cwd: Path | None = None, timeout: float = 300, **env: str
    ) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "orthobench", *words],
            cwd=cwd or tmp_path,
            env={**os.environ, **env},
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    return run
