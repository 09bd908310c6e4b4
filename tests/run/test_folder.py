"""The contract of `python -m orthobench.run FOLDER`: the folder says all, and what is wrong with it is refused."""

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import orthobench
from orthobench.errors import ConfigError, StorageError
from orthobench.recording.claim import Claim
from orthobench.recording.run_folder import begin, read
from orthobench.run.__main__ import main
from orthobench.study.catalogue import SHIPPED, Catalogue
from tests.conftest import RECALL, write

BEFORE = Path(__file__).parents[1] / "made_before" / "recall-rnn-5613bd3813"


def begun(root: Path, *words: str, folders: tuple[Path, ...] = ()) -> Path:
    """The folder of a tiny run, written."""
    return begin(Catalogue(folders).settings([*RECALL, *words, f"runs_root={root}"]))


def record(folder: Path) -> dict[str, object]:
    return json.loads((folder / "record.json").read_text())


def test_a_folder_is_all_that_a_process_needs(tmp_path: Path) -> None:
    """Moved to another place, and without the folder of configuration files that it was written from."""
    write(tmp_path, {"conf/model/mine.yaml": "cell: elman\nactivation: relu\n"})
    written = begun(tmp_path / "one", "model=mine", folders=(tmp_path / "conf",))
    digests = dict(read(written).foreign)
    shutil.rmtree(tmp_path / "conf")
    shutil.move(tmp_path / "one", tmp_path / "two")
    folder = tmp_path / "two" / written.name
    done = subprocess.run(
        [sys.executable, "-m", "orthobench.run", folder.name],
        cwd=folder.parent,
        env={**os.environ, "PYTHONSAFEPATH": "1"},
    )
    assert done.returncode == 0
    made = record(folder)
    assert (made["status"], made["run_id"]) == ("done", written.name)
    assert digests
    assert made["sources"]["yaml"] == digests  # type: ignore[index]
    assert not (tmp_path / "one").exists()


@pytest.mark.parametrize("name", ["token_mixer", "secret/password"])
def test_a_file_of_configuration_may_have_any_name(name: str, tmp_path: Path) -> None:
    path = tmp_path / "conf" / "model" / f"{name}.yaml"
    path.parent.mkdir(parents=True)
    path.write_text("cell: elman\nactivation: relu\n")
    written = begun(tmp_path, f"model={name}", folders=(tmp_path / "conf",))
    assert [file for file, _ in read(written).foreign] == [f"model/{name}.yaml"]
    assert written.parent == tmp_path, "where all that reads runs looks for them"


def test_the_numbers_are_those_of_the_words(tmp_path: Path) -> None:
    assert main([str(begun(tmp_path / "a"))]) == 0
    alone = orthobench.build(*RECALL, f"runs_root={tmp_path / 'b'}").run()
    made = record(next((tmp_path / "a").glob("recall-*")))
    assert made["metrics"] == alone["metrics"]
    assert made["config"] == alone["config"] | {"runs_root": str(tmp_path / "a")}


def test_several_are_done_one_after_another_whatever_comes_of_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [begun(tmp_path, f"seed={seed}") for seed in (1, 2)]
    assert main([str(folders[0]), str(tmp_path / "nowhere"), str(folders[1])]) == 2
    assert f"{tmp_path / 'nowhere'}/config.yaml is not there" in capsys.readouterr().err
    assert [record(folder)["status"] for folder in folders] == ["done", "done"]
    assert main(list(map(str, folders))) == 0


def test_a_folder_of_an_earlier_version_is_gone_on_with(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = Path(shutil.copytree(BEFORE, tmp_path / "runs" / BEFORE.name))
    (folder / "record.json").unlink()
    assert main([str(folder)]) == 0
    assert "resuming at step 2" in capsys.readouterr().out
    assert record(folder)["identity"] == read(folder).digest


def edit(old: str, new: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / "config.yaml"
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))

    return change


def link(folder: Path) -> None:
    (folder / "config.yaml").rename(folder.parent / "elsewhere")
    (folder / "config.yaml").symlink_to(folder.parent / "elsewhere")


@pytest.mark.parametrize(
    ("harm", "code", "sentence"),
    [
        (lambda folder: (folder / "config.yaml").unlink(), 2, "config.yaml is not there"),
        (lambda folder: (folder / "config.yaml").write_text("a: [b"), 6, "is not valid YAML"),
        (lambda folder: (folder / "config.yaml").write_text("a: b"), 2, "cannot be used by this version"),
        (edit("hidden_size: 4", "hidden_size: 5"), 6, "write it again by `orthobench plan"),
        (edit("hidden_size: 4", "hidden_size: 4\n  warp: 9"), 2, "KEY=VALUE ... --folders`: model.warp does not"),
        (edit("hidden_size: 4", "hidden_size: four"), 2, "model.hidden_size='four' has the wrong type"),
        (edit("seed: 1", "_target_: os.system"), 2, "may not name code to run"),
        (edit("# ", "# not by us, "), 6, "its first line has the digest no run's"),
        (link, 6, "is a link"),
    ],
)
def test_what_is_wrong_is_one_sentence_and_a_code(
    harm: Callable[[Path], None], code: int, sentence: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = begun(here / "runs")
    harm(folder)
    assert main([str(folder)]) == code
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("orthobench: ")
    assert sentence in line
    assert not (folder / "record.json").exists()


def test_a_folder_under_another_name_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = begun(tmp_path)
    assert main([str(folder.rename(tmp_path / "mine"))]) == 6
    assert f"mine holds the settings of {folder.name}: give the folder this name" in capsys.readouterr().err


def test_one_that_another_process_holds_is_left_to_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = begun(tmp_path)
    before = (folder / "config.yaml").read_bytes()
    with Claim(folder):
        assert main([str(folder)]) == 75
        assert "is running elsewhere: process" in capsys.readouterr().out
        begun(tmp_path, "timeout=9")
        assert (folder / "config.yaml").read_bytes() == before
    begun(tmp_path, "timeout=9")
    assert read(folder).run["timeout"] == 9


def test_a_driver_writes_into_no_folder_of_another_run(tmp_path: Path) -> None:
    made = SHIPPED.settings([*RECALL, f"runs_root={tmp_path}"])
    config = begin(made) / "config.yaml"
    for digest, error in ((made.digest[:10] + 54 * "0", ConfigError), (64 * "0", StorageError)):
        config.write_text(f"# {digest} {digest}\n")
        with pytest.raises(error, match="another run"):
            begin(made)
        assert config.read_text() == f"# {digest} {digest}\n"


def test_a_run_to_start_from_is_found_from_anywhere(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = begun(Path("first"))
    assert main([str(first)]) == 0
    second = begun(Path("second"), f"init_from=first/{first.name}", "seed=2")
    assert second.name == SHIPPED.settings([*RECALL, f"init_from={first.name}", "seed=2"]).run_id
    (here / "away").mkdir()
    monkeypatch.chdir(here / "away")
    assert main([str(second)]) == 0


def test_data_that_have_another_place_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = begun(tmp_path / "runs", f"data_root={tmp_path / 'there'}")
    monkeypatch.setenv("ORTHOBENCH_DATA", str(tmp_path / "here"))
    assert read(folder).run["data_root"] == str(tmp_path / "here")
    (tmp_path / "there").mkdir()
    assert read(folder).run["data_root"] == str(tmp_path / "there")


@pytest.mark.parametrize(
    ("number", "inside", "fix"),
    [
        (errno.EIO, True, "make room, or set runs_root= to another folder"),
        (errno.ENOSPC, False, "make room, or set runs_root= to another folder"),
        (errno.ENOENT, False, "put that file there, or make it readable"),
        (errno.EACCES, False, "put that file there, or make it readable"),
    ],
)
def test_a_file_that_a_task_cannot_read_is_no_lack_of_room(
    number: int, inside: bool, fix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exp = orthobench.build(*RECALL, f"runs_root={tmp_path / 'runs'}")
    path = (exp.settings.folder if inside else tmp_path) / "rows.bin"

    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number), str(path))

    monkeypatch.setattr(type(exp.task), "batch", fail)
    with pytest.raises(StorageError, match=f"{path}: {os.strerror(number)}; {fix}"):
        exp.run()
