"""Files of one's own that somebody else's configuration or run names are not read."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from orthobench.__main__ import main
from orthobench.config import recorded
from orthobench.config.places import NAMES, placed_words
from orthobench.datasets import corpus
from orthobench.errors import ConfigError
from orthobench.recording.digest import owned, seal
from orthobench.recording.file_digest import digest_of_file
from orthobench.study.catalogue import Catalogue
from tests.conftest import write

SECRET = "machine api login user password very-secret-word\n" * 10
WORDS = ["model=lstm", "task=text", "task.by=words", "T=2", "task.val_share=0.3", "task.test_share=0.3"]
SIZES = ["task.batch_size=1", "task.eval_batch_size=1", "model.hidden_size=8", "trainer.max_steps=2"]
TABLE = (
    "track: published\nseeds: [1]\nmargin: {{test/loss: 0.1}}\npresets: {{smoke: {{seeds: 1, overrides: [{smoke}]}}}}\n"
)
TABLE += "common: [{common}]\ncells: {{a: [model=lstm, task=text, {cell}]}}\ngrid: {{x: {{b: [{grid}]}}}}\n"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a secret, a configuration folder with data, and links from it to the secret."""
    (tmp_path / "secret.txt").write_text(SECRET)
    write(tmp_path / "conf" / "data", {"mine.txt": SECRET.replace("secret", "public"), "beside/x.txt": "x"})
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ORTHOBENCH_DATA", str(tmp_path / "elsewhere"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


OUTSIDE = ("{home}/secret.txt", "../secret.txt", "data/../../secret.txt", "~/secret.txt", "~root/x", "$HOME/secret.txt",
           "${{data_root}}/secret.txt", "/etc/passwd", "/", "..")  # fmt: skip


def table(home: Path, place: str, word: str) -> None:
    words = {name: json.dumps(word) if name == place else "" for name in ("smoke", "common", "cell", "grid")}
    write(home, {"conf/experiment/x/t.yaml": TABLE.format(**words)})


@pytest.mark.sampled(8)
@pytest.mark.parametrize("place", ["smoke", "common", "cell", "grid"])
@pytest.mark.parametrize("value", OUTSIDE)
def test_a_table(value: str, place: str, home: Path) -> None:
    table(home, place, f"task.path='{value.format(home=home)}'")
    with pytest.raises(ConfigError, match="outside of its folder"):
        Catalogue((home / "conf",)).table("x/t")


@pytest.mark.parametrize(
    "word",
    [
        "init_from=/somewhere/copying-lstm-0123456789",
        "+task.path=/etc/passwd",
        "++task.path=/etc/passwd",
        'task.path="/etc/passwd"',
        "task.path=/etc/passwd,/etc/group",
        "task.path=[/etc/passwd]",
        "stopping={path: /etc/passwd}",
        "task.my_file=/etc/passwd",
        "model.weights_dir=/etc",
    ],
)
def test_a_table_in_other_words(word: str, home: Path) -> None:
    table(home, "cell", word)
    with pytest.raises(ConfigError, match=r"outside of its folder|is no path|by itself"):
        Catalogue((home / "conf",)).table("x/t")


@pytest.mark.parametrize("value", ["data/mine.txt", "{home}/conf/data/mine.txt", "data/beside/../mine.txt"])
def test_data_in_the_folder_are_read(value: str, home: Path) -> None:
    table(home, "cell", f"task.path={value.format(home=home)}")
    words = [f"--config-dir={home / 'conf'}", "experiment=x/t", *WORDS[2:], *SIZES, "runs_root=runs"]
    assert main([f"--config-dir={home / 'conf'}", *words[1:]]) == 0
    (record,) = (json.loads(path.read_text()) for path in (home / "runs").glob("*/record.json"))
    assert "public" in (home / "conf" / "data" / "mine.txt").read_text()
    assert Path(record["config"]["task"]["path"]).resolve() == home / "conf" / "data" / "mine.txt"


def test_the_command_line_may_name_any_file(home: Path) -> None:
    table(home, "cell", "task.path=data/mine.txt")
    words = ["experiment=x/t", f"task.path={home / 'secret.txt'}", *WORDS[2:], *SIZES]
    made = Catalogue((home / "conf",)).settings(words)
    assert made.task["path"] == str(home / "secret.txt")


YAML: dict[str, dict[str, str]] = {
    "task": {"task/mine": "name: text\npath: {value}\n"},
    "recipe": {"recipe/lstm/text": "# @package _global_\ntask: {{path: {value}}}\n"},
    "recipe by a reference": {"recipe/r": "# @package _global_\ncell: {value}\ntask: {{path: '${{cell}}'}}\n"},
    "run": {"recipe/r": "# @package _global_\ninit_from: {value}\n"},
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("kind", ["recipe by a reference", "run", "recipe"])
@pytest.mark.parametrize("value", OUTSIDE)
def test_yaml(value: str, kind: str, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in YAML[kind].items():
        content = text.format(value=json.dumps(value.format(home=home)))
        write(home, {f"conf/{name.replace('lstm/text', 'r')}.yaml": content})
    code = main([f"--config-dir={home / 'conf'}", *WORDS, *SIZES, "recipe=r", "runs_root=runs"])
    assert code == 2, capsys.readouterr().err
    assert "very-secret-word" not in capsys.readouterr().out


@pytest.mark.parametrize(
    "place", ["model", "experiment", "published", "data/x.yaml", "model/x.yaml", "data/beside/new"]
)
def test_links_out_of_the_folder(place: str, home: Path) -> None:
    path = home / "conf" / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(home / "secret.txt" if "." in place else home)
    table(home, "cell", "task.path=data/beside/x.txt") if place != "experiment" else None
    with pytest.raises(ConfigError, match=r"leads out of|outside of its folder"):
        Catalogue((home / "conf",)).settings(["experiment=x/t"])


def test_names_that_are_paths() -> None:
    assert all(NAMES.fullmatch(name) for name in ("path", "my_path", "file", "init_from", "data_root", "weights_dir"))
    assert not any(NAMES.fullmatch(name) for name in ("paths_kept", "rooted", "profile", "hidden_size"))
    assert placed_words(["model.profile=x", "cell=path"], (Path("/"),), "") == ("model.profile=x", "cell=path")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of a text."""
    home = tmp_path_factory.mktemp("trained")
    (home / "mine.txt").write_text(SECRET.replace("secret", "public"))
    assert main([*WORDS, *SIZES, f"task.path={home / 'mine.txt'}", f"runs_root={home / 'runs'}"]) == 0
    (run,) = (path.parent for path in home.glob("runs/*/record.json"))
    return run


def forged(trained: Path, path: Path, sources: Any) -> Path:
    """The same run as one of another file, whole in all its digests."""
    content = yaml.safe_load((trained / "config.yaml").read_text())
    content["task"]["path"], content["runs_root"] = str(path), "runs"
    own = path.read_text() if path.exists() else None
    path.write_text(SECRET)  # the settings need a text
    made = recorded.settings(content)
    path.unlink() if own is None else path.write_text(own)
    folder = path.parent / "runs" / made.run_id
    shutil.copytree(trained, folder)
    (folder / "config.yaml").write_text(owned(yaml.safe_dump(content), made.digest))
    record = json.loads((folder / "record.json").read_text())
    record |= {"config": content, "run_id": made.run_id, "identity": made.digest, "sources": sources}
    (folder / "record.json").write_text(json.dumps(seal(record)))
    return folder


SOURCES: dict[str, Callable[[Path], Any]] = {
    "none": lambda path: None,
    "no data": lambda path: {"plugins": {}, "yaml": {}, "data": {}},
    "another digest": lambda path: {"plugins": {}, "yaml": {}, "data": {str(path): "0" * 64}},
    "the digest of an empty file": lambda path: {
        "data": {str(path): "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}
    },
}
VERBS = (["export"], ["eval"], ["generate"], ["inspect"], ["eval", "T=3"], ["compare"], ["best"], ["collect"])


@pytest.mark.sampled(8)
@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
@pytest.mark.parametrize("kind", SOURCES)
def test_a_run(
    kind: str, verb: list[str], trained: Path, home: Path, capfd: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    path = home / "secret.txt"
    folder = forged(trained, path, SOURCES[kind](path))
    read: list[str] = []
    monkeypatch.setattr(corpus, "load", lambda path, *_: read.append(path))
    here = [f"runs_root={home / 'here'}"] if verb == ["collect"] else []
    assert main([verb[0], str(folder), *verb[1:], *here]) in (0, 2, 6)
    told = capfd.readouterr()
    assert "is not read" in told.out + told.err or "is stale" in told.out + told.err
    assert not read
    assert not [one for one in home.rglob("*") if one.is_file() and one != path and b"very-secret" in one.read_bytes()]


@pytest.mark.parametrize("kind", ["pipe", "folder", "device", "link to a device"])
def test_a_run_of_no_plain_file(kind: str, trained: Path, home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = home / "other.txt"
    folder = forged(trained, path, None)
    {
        "pipe": lambda: os.mkfifo(path),
        "folder": path.mkdir,
        "device": lambda: path.symlink_to("/dev/zero"),
        "link to a device": lambda: path.symlink_to("/dev/stdin"),
    }[kind]()
    assert main(["export", str(folder)]) == 2
    assert "is not read" in capfd.readouterr().err


def test_a_run_of_the_recorded_file_is_opened(trained: Path, home: Path) -> None:
    path = home / "conf" / "data" / "mine.txt"
    folder = forged(trained, path, {"data": {"wherever it was": digest_of_file(path)}})
    assert main(["export", str(folder)]) == 0


@pytest.mark.parametrize("key", ["task.path", "task.my_file"])
def test_a_home_is_known_where_it_leads_into_the_folder(key: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(home))
    inside = home / "conf" / "mine.npz"
    inside.write_bytes(b"")
    found = placed_words([f"{key}='~/conf/mine.npz'"], (home / "conf",), "t.yaml: ")
    assert found[0].replace("'", "").replace('"', "") == f"{key}={inside}"
    with pytest.raises(ConfigError, match="outside of its folder"):
        placed_words([f"{key}='~/secret.txt'"], (home / "conf",), "t.yaml: ")
