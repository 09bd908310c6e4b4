"""A finished or begun run whose plug-ins or data have changed is refused, and so is what was copied from another."""

import importlib
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orthobench import load
from orthobench.errors import ConfigError, DataError, StorageError
from orthobench.recording.digest import read_sealed, write_sealed
from orthobench.run.evaluate import evaluate
from orthobench.run.run import Run
from orthobench.study.catalogue import Catalogue
from orthobench.study.sweep import sweep
from tests.conftest import REPO, write
from tests.pages import blocks

WORDS = (
    "model=mgu", "task=mine", "model.hidden_size=4", "trainer.max_steps=4", "trainer.val_check_interval=2",
    "logger=none",
)  # fmt: skip
PAGES = ("tutorials/your-own-cell", "how-to/add-a-task")
FILES = [block for page in PAGES for block in blocks(REPO / "docs" / f"{page}.md") if block.kind == "file"]
Ask = Callable[..., dict[str, Any]]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The files of two pages about a user's own cell and task, a helper module of the cell, and data."""
    write(tmp_path, {block.name: block.text for block in FILES})
    cells = tmp_path / "my_cells.py"
    cells.write_text(cells.read_text().replace("import torch\n", "import torch\nfrom my_helper import SCALE\n", 1))
    write(tmp_path, {"my_helper.py": "SCALE = 1.0\n"})
    (tmp_path / "my_data").mkdir()
    _data(tmp_path, 1.0)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("ORTHOBENCH_PLUGINS", "my_cells,my_tasks")
    monkeypatch.setenv("ORTHOBENCH_DATA", str(tmp_path / "my_data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    yield tmp_path
    _forget()


@pytest.fixture
def ask(home: Path) -> Ask:
    """Asks for a run as a new process would, which has imported no plug-in."""

    def run(*words: str) -> dict[str, Any]:
        _forget()
        return Run.fitted(
            Catalogue((home / "my_conf",)).settings((*WORDS, f"data_root={home / 'my_data'}", *words))
        ).run()

    return run


def _forget() -> None:
    for name in ("my_cells", "my_tasks", "my_helper"):
        sys.modules.pop(name, None)
    importlib.invalidate_caches()


def _data(home: Path, scale: float) -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(200, 30, 2))
    np.savez(home / "my_data" / "mine.npz", x=x * scale, y=x[:, 20, 0] > 1)


def _change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    os.utime(path, (1, 1))  # so that no cache of byte code takes it for the old one


def test_a_record_says_what_it_is_made_of(ask: Ask) -> None:
    found = ask()["sources"]
    assert set(found["plugins"]) == {"my_cells", "my_tasks", "my_helper"}
    assert set(found["yaml"]) == {"model/mgu.yaml", "task/mine.yaml"}
    assert set(found["data"]) == {"mine.npz"}
    assert {len(digest) for kind in found.values() for digest in kind.values()} == {64}


def test_the_same_again_is_found(ask: Ask, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = ask()
    for file in (home / "my_cells.py", home / "my_data" / "mine.npz"):
        os.utime(file, (1, 1))  # the same content with another time is the same
    assert ask() == first
    assert "is done already" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("my_cells.py", "torch.tanh", "torch.sin", "the plug-in my_cells"),
        ("my_tasks.py", '"f1": 2 * hits', '"f1": 3 * hits', "the plug-in my_tasks"),
        ("my_helper.py", "1.0", "2.0", "the plug-in my_helper"),
    ],
)
@pytest.mark.sampled(1)
def test_a_changed_module_is_refused(
    ask: Ask, home: Path, file: str, old: str, new: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = ask()
    _change(home / file, old, new)
    with pytest.raises(ConfigError, match=f"is stale: it was made before a change of {said}; undo that"):
        ask()
    path = next((home / "runs").glob("mine-*/record.json"))
    assert read_sealed(path) == before, "nothing is overwritten"
    assert sweep([*WORDS, f"data_root={home / 'my_data'}"], Catalogue((home / "my_conf",))) == 2
    assert f"before a change of {said}" in capsys.readouterr().err
    with pytest.raises(ConfigError, match=f"it was trained before a change of {said}"):
        load(path.parent).model  # noqa: B018
    _change(home / file, new, old)
    assert ask() == before, "what was undone is no change"


def test_changed_data_are_refused(ask: Ask, home: Path) -> None:
    before = ask()
    _data(home, 100.0)
    with pytest.raises(ConfigError, match=r"is stale: it was made before a change of the data in mine\.npz"):
        ask()
    assert ask(f"runs_root={home / 'others'}")["sources"]["data"] != before["sources"]["data"]
    (home / "my_data" / "mine.npz").unlink()
    assert ask() == before, "a finished run needs no data"


def test_an_evaluation_of_a_run_whose_data_have_changed_is_refused(ask: Ask, home: Path) -> None:
    ask()
    (folder,) = (home / "runs").glob("mine-*")
    first, again = (evaluate(load(folder), eval_batch_size=7)[0] for _ in range(2))
    assert (first["found"], again["found"]) == (False, True)
    assert first["metrics"] == again["metrics"]
    assert again["sources"].keys() == {"plugins", "yaml", "data"}
    _data(home, 100.0)
    for asked in ({}, {"eval_batch_size": 7}):
        with pytest.raises(ConfigError, match=rf"{folder.name} is stale: it was trained before .* data in mine\.npz"):
            evaluate(load(folder), **asked)
    (home / "my_data" / "mine.npz").unlink()
    with pytest.raises(DataError, match=r"are not where they were, .*mine\.npz"):
        evaluate(load(folder))


def test_a_changed_yaml_file_of_the_same_settings_is_told(
    ask: Ask, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = ask()
    _change(home / "my_conf" / "model" / "mgu.yaml", "gate_bias: 1.0", "gate_bias: 2.0")
    assert ask()["run_id"] != before["run_id"], "another setting is another run"
    capsys.readouterr()
    assert ask("model.gate_bias=1.0") == before
    assert "model/mgu.yaml has changed, but none of its settings" in capsys.readouterr().out


def test_a_record_without_these_keys_is_found(ask: Ask, home: Path) -> None:
    ask()
    path = next((home / "runs").glob("mine-*/record.json"))
    old = {key: value for key, value in (read_sealed(path) or {}).items() if key != "sources"}
    written = write_sealed(path, old)
    assert ask() == written


def test_a_begun_run_does_not_go_on_with_other_data(ask: Ask, home: Path) -> None:
    ask()
    next((home / "runs").glob("mine-*/record.json")).unlink()  # as if it had been killed before its test
    _data(home, 100.0)
    with pytest.raises(ConfigError, match=r"it was begun before a change of the data in mine\.npz"):
        ask()


def test_the_record_of_another_run_is_refused(ask: Ask, home: Path) -> None:
    ask()
    (first,) = (home / "runs").glob("mine-*")
    other = Catalogue((home / "my_conf",)).settings((*WORDS, f"data_root={home / 'my_data'}", "seed=2")).folder
    other.mkdir(parents=True)
    shutil.copy(first / "record.json", other)
    with pytest.raises(
        StorageError, match=rf"record\.json is another run's, {first.name}: its settings have the digest"
    ):
        ask("seed=2")
    shutil.rmtree(other)
    assert ask("seed=2")["status"] == "done"


LAST, BEST = "checkpoints/last.ckpt", "checkpoints/best.ckpt"


@pytest.mark.parametrize("names", [("config.yaml",), (LAST,), (BEST,), (LAST, BEST)])
@pytest.mark.sampled(2)
def test_what_is_another_runs_is_refused(ask: Ask, home: Path, names: tuple[str, ...]) -> None:
    ask()
    (first,) = (home / "runs").glob("mine-*")
    ask("seed=2")
    (second,) = set((home / "runs").glob("mine-*")) - {first}
    (second / "record.json").unlink()
    for name in names:
        shutil.copy(first / name, second / name)
    with pytest.raises(StorageError, match=rf"{Path(names[0]).name} is another run's"):
        ask("seed=2")
