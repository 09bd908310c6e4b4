"""Runs made elsewhere are checked before they are brought here: digest, identity, form, and the files beside."""

import io
import json
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest

import orthobench
from orthobench.errors import StorageError
from orthobench.recording.collect import Collected, collect
from orthobench.recording.digest import write_sealed
from orthobench.verbs.collect import main
from tests.conftest import write
from tests.faults import runs

WORDS = ("model=rnn", "task=adding", *runs.SIZES, "trainer.max_steps=4", "trainer.val_check_interval=2")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run, which tests copy."""
    root = tmp_path_factory.mktemp("made")
    record = orthobench.build(*WORDS, f"runs_root={root}").run()
    return root / record["run_id"]


@pytest.fixture
def away(made: Path, tmp_path: Path) -> Path:
    """That run in a runs folder of another machine."""
    return Path(shutil.copytree(made, tmp_path / "away" / made.name))


def brought(place: Path, here: Path) -> list[Collected]:
    return list(collect(place, here, "data"))


def tarred(path: Path, folder: Path, name: str | None = None, mode: Literal["w", "w:gz"] = "w:gz") -> Path:
    with tarfile.open(path, mode) as archive:
        archive.add(folder, name or f"some/{folder.name}")
    return path


def program(path: Path, how: str, *words: Any) -> Path:
    """What the program `tar` makes."""
    subprocess.run(["tar", how, path, *words], check=True)
    return path


def zipped(path: Path, folder: Path, prefix: str = "runs") -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for one in folder.rglob("*"):
            archive.write(one, f"{prefix}/{folder.name}/{one.relative_to(folder)}")
    return path


PLACES: dict[str, Callable[[Path, Path], Path]] = {
    "a runs folder": lambda away, tmp: away.parent,
    "one run": lambda away, tmp: away,
    "tar": lambda away, tmp: tarred(tmp / "a.tar.gz", away),
    "zip": lambda away, tmp: zipped(tmp / "a.zip", away),
    "tar, not compressed": lambda away, tmp: tarred(tmp / "a.tar", away, mode="w"),
    "tar of .": lambda away, tmp: program(tmp / "a.tar", "-cf", "-C", away.parent, "."),
    "tar of ., compressed": lambda away, tmp: program(tmp / "a.tgz", "-czf", "-C", away.parent, "."),
    "tar of . in the run's folder": lambda away, tmp: program(tmp / "a.tar", "-cf", "-C", away, "."),
    "zip with ./": lambda away, tmp: zipped(tmp / "a.zip", away, "./x/."),
}


@pytest.mark.parametrize("kind", PLACES)
def test_a_finished_run_is_brought_once(away: Path, tmp_path: Path, kind: str) -> None:
    place, here = PLACES[kind](away, tmp_path), tmp_path / "here"
    assert [(one.run_id, one.status) for one in brought(place, here)] == [(away.name, "brought")]
    for name in ("record.json", "config.yaml", "metrics.csv", "checkpoints/last.ckpt", "checkpoints/best.ckpt"):
        assert (here / away.name / name).read_bytes() == (away / name).read_bytes()
    assert orthobench.load(here / away.name).record["run_id"] == away.name
    assert [one.status for one in brought(place, here)] == ["here"]
    assert [path.name for path in here.iterdir()] == [away.name]


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))


def digit(path: Path) -> None:
    """Another epoch, which no point of a record has."""
    text = path.read_text()
    assert ",0,val/loss" in text
    path.write_text(text.replace(",0,val/loss", ",9,val/loss", 1))


def change(folder: Path, **values: Any) -> None:
    """A record whose digest is right."""
    path = folder / "record.json"
    write_sealed(path, {**json.loads(path.read_text()), **values})


FAULTS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "a flipped bit in the record": (lambda run: flip(run / "record.json"), "record.json is damaged"),
    "a flipped bit in the weights": (lambda run: flip(run / "checkpoints/last.ckpt"), "last.ckpt is damaged"),
    "a torn curve": (lambda run: (run / "metrics.csv").write_text("step,epoch,name,value\n"), "metrics.csv is damaged"),
    "another digit of a curve": (lambda run: digit(run / "metrics.csv"), "metrics.csv is damaged"),
    "no curve": (lambda run: (run / "metrics.csv").unlink(), "metrics.csv is missing"),
    "no settings": (lambda run: (run / "config.yaml").unlink(), "config.yaml is missing"),
    "another identity": (lambda run: change(run, identity="0" * 64), "its settings are those of"),
    "another name": (lambda run: change(run, run_id="adding-rnn-0123456789"), "its settings are those of"),
    "another form": (lambda run: change(run, schema=3), "has the form 3"),
    "no configuration": (lambda run: change(run, config={}), "do not suit this version"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_damaged_is_refused_and_leaves_nothing(away: Path, tmp_path: Path, fault: str) -> None:
    spoil, reason = FAULTS[fault]
    spoil(away)
    (one,) = brought(away.parent, tmp_path / "here")
    assert one.status == "refused"
    assert reason in one.reason
    assert list((tmp_path / "here").iterdir()) == []


def test_a_run_under_another_name_is_refused(away: Path, tmp_path: Path) -> None:
    away.rename(away.with_name("adding-rnn-0123456789"))
    (one,) = brought(away.parent, tmp_path / "here")
    assert (one.status, one.reason) == ("refused", f"it is the record of {away.name}")


def test_what_is_not_finished_stays_where_it_is(away: Path, tmp_path: Path) -> None:
    change(away, status="stopped")
    assert [one.status for one in brought(away.parent, tmp_path / "here")] == ["unfinished"]
    assert list((tmp_path / "here").iterdir()) == []


def test_other_code_is_said_to_be_stale(away: Path, tmp_path: Path) -> None:
    change(away, code={"version": "0.0.1", "git": "f" * 40, "dirty": False})
    (one,) = brought(away.parent, tmp_path / "here")
    assert one.status == "brought"
    assert "made by other code" in one.reason


def test_a_record_that_is_here_is_kept(away: Path, tmp_path: Path) -> None:
    brought(away.parent, tmp_path / "here")
    before = (tmp_path / "here" / away.name / "record.json").read_bytes()
    change(away, steps=5)
    (one,) = brought(away.parent, tmp_path / "here")
    assert (one.status, one.reason) == ("here", "with another record, which is kept")
    assert (tmp_path / "here" / away.name / "record.json").read_bytes() == before


@pytest.mark.parametrize("name", ["../x/record.json", "/x/record.json", "a/../../record.json", "C:/x/record.json"])
@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_an_archive_whose_paths_lead_outside_is_refused(tmp_path: Path, name: str, kind: str) -> None:
    path, content = tmp_path / f"a.{kind}", b"{}"
    if kind == "tar":
        with tarfile.open(path, "w") as archive:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    else:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(name, content)
    with pytest.raises(StorageError, match="leads outside"):
        brought(path, tmp_path / "here")
    assert not (tmp_path / "x").exists()


def test_a_link_is_not_followed(away: Path, tmp_path: Path) -> None:
    (away / "metrics.csv").unlink()
    (away / "metrics.csv").symlink_to("/etc/passwd")
    (one,) = brought(tarred(tmp_path / "a.tar", away), tmp_path / "here")
    assert (one.status, one.reason) == ("refused", "metrics.csv is no plain file")
    with pytest.raises(StorageError, match="is a link"):
        brought(away.parent, tmp_path / "here")


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04broken", None])
def test_what_is_no_archive_or_a_torn_one_is_named(away: Path, tmp_path: Path, content: bytes | None) -> None:
    path = tarred(tmp_path / "a.tar", away)
    path.write_bytes(path.read_bytes()[:-200] if content is None else content)
    with pytest.raises(StorageError, match=r"a\.tar cannot be collected"):
        brought(path, tmp_path / "here")


@pytest.mark.parametrize("how", ["a name", "a line", "damaged"])
def test_one_run_that_cannot_be_read_keeps_no_other_from_being_brought(
    away: Path, tmp_path: Path, how: str, capsys: pytest.CaptureFixture[str]
) -> None:
    other = {"a name": "x" * 300, "a line": "x\nadding brought here"}.get(how, "a-run")
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(f"{other}/record.json", b"read by nobody")
        for path in sorted(away.rglob("*.*")):
            archive.write(path, f"{away.name}/{path.relative_to(away)}")
    if how == "damaged":
        content = (tmp_path / "a.zip").read_bytes()
        (tmp_path / "a.zip").write_bytes(content.replace(b"by nobody", b"by none.."))
    assert main([str(tmp_path / "a.zip"), f"runs_root={tmp_path / 'here'}"]) == 6
    told = capsys.readouterr()
    assert "refused: record.json" in told.err or how == "a name"
    assert len(told.err.splitlines()) == 1
    assert f"{away.name}: brought here" in told.out


def test_the_verb_counts_and_names_what_it_refuses(
    away: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here = f"runs_root={tmp_path / 'here'}"
    assert main([str(away.parent), here]) == 0
    assert "1 brought here" in capsys.readouterr().out
    assert main([str(away.parent), here]) == 0
    assert "1 here already" in capsys.readouterr().out
    shutil.rmtree(tmp_path / "here")
    flip(away / "record.json")
    assert main([str(away.parent), here]) == 6
    assert "record.json is damaged" in capsys.readouterr().err


def test_a_record_of_an_earlier_version_is_unsealed(
    away: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = json.loads((away / "record.json").read_text())
    write_sealed(away / "record.json", {key: value for key, value in record.items() if key != "metrics_csv"})
    assert main([str(away.parent), f"runs_root={tmp_path / 'here'}"]) == 0
    out = capsys.readouterr().out
    assert f"{away.name}: brought here, stale, unsealed" in out or f"{away.name}: brought here, unsealed" in out
    assert "1 unsealed" in out


@pytest.mark.parametrize("kind", ["zip", "tar", "folder"])
def test_a_place_without_a_run_is_an_error(tmp_path: Path, kind: str) -> None:
    write(tmp_path, {"empty/x/metrics.csv": ""})
    place = {"zip": zipped, "tar": tarred}.get(kind, lambda path, folder: folder)(tmp_path / "a", tmp_path / "empty")
    with pytest.raises(StorageError, match="holds no run"):
        brought(place, tmp_path / "here")


def test_a_record_at_the_top_of_an_archive_names_its_folder(away: Path, tmp_path: Path) -> None:
    change(away, run_id="../elsewhere")
    with pytest.raises(StorageError, match="names no run"):
        brought(program(tmp_path / "a.tar", "-cf", "-C", away, "."), tmp_path / "here")
