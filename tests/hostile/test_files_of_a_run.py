"""Every file in the folder of a run may be something else, or lead elsewhere: nothing outside is touched."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from orthobench.__main__ import main
from orthobench.study.catalogue import SHIPPED

WORDS = ("model=rnn", "task=copying", "T=5", "recipe=none", "model.hidden_size=4", "trainer.max_steps=1")
SIZES = ("task.val_size=2", "task.test_size=2")
NAMES = ("record.json", "config.yaml", "metrics.csv", "claim.json", "checkpoints", "checkpoints/last.ckpt",
         "checkpoints/best.ckpt", "checkpoints/last.ckpt.previous", "evaluations", "claim.0123456789ab",
         ".record.json.0.tmp")  # fmt: skip
OUTSIDE = "what lies elsewhere\n"


def _cut(path: Path) -> None:
    content = path.read_bytes() if path.is_file() else b"half of "
    _clear(path)
    path.write_bytes(content[: len(content) // 2])


def _clear(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _socket(path: Path) -> None:
    import socket

    home = Path.cwd()
    os.chdir(path.parent)  # a socket's name is short
    try:
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(path.name)
    finally:
        os.chdir(home)


def _vast(path: Path) -> None:
    path.touch()
    os.truncate(path, 1 << 40)


LINKS: dict[str, Callable[[Path, Path], None]] = {
    "a link to a file": lambda path, outside: path.symlink_to(outside / "file"),
    "a link to nothing": lambda path, outside: path.symlink_to(outside / "new"),
    "a link to a folder": lambda path, outside: path.symlink_to(outside),
    "a link to itself": lambda path, outside: path.symlink_to(path.name),
    "a link upwards": lambda path, outside: path.symlink_to(".."),
}
OTHERS: dict[str, Callable[[Path], None]] = {
    "a pipe": os.mkfifo,
    "a socket": _socket,
    "a folder": lambda path: path.mkdir(),
    "empty": lambda path: path.touch(),
    "bytes": lambda path: path.write_bytes(bytes(range(256))) and None,
    "zeros": lambda path: path.write_bytes(bytes(4096)) and None,
    "other JSON": lambda path: path.write_text('[{"x": 1}]') and None,
    "of a terabyte": _vast,
    "of a terabyte of text": lambda path: (path.write_text("# a a\n{"), os.truncate(path, 1 << 40))[1],
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("made")
    assert main([*WORDS, *SIZES, f"runs_root={home}"]) == 0
    return home


@pytest.fixture
def own(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "runs")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_text(OUTSIDE)
    return SHIPPED.settings([*WORDS, *SIZES, f"runs_root={tmp_path / 'runs'}"]).folder


def used(own: Path, *, final: bool) -> str:
    """Every verb that reads a run, and the run asked for again, as a finished one and as one without a record."""
    codes = [main(["eval", str(own)]), main(["compare", str(own.parent)])]
    if not final:
        (own / "record.json").unlink(missing_ok=True) if not (own / "record.json").is_dir() else None
    codes += [main([*WORDS, *SIZES, f"runs_root={own.parent}"])]
    codes += [main(["collect", str(own.parent), f"runs_root={own.parent.parent / 'brought'}"])]
    assert set(codes) <= {0, 2, 6}
    return " ".join(map(str, codes))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", LINKS)
@pytest.mark.parametrize("name", [*NAMES, "."])
def test_a_link(name: str, kind: str, own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outside = own.parent.parent / "outside"
    _clear(own / name)
    LINKS[kind](own / name, outside)
    used(own, final=True)
    assert main(["eval", str(own)]) in (2, 6)
    assert [path.name for path in outside.iterdir()] == ["file"]
    assert (outside / "file").read_text() == OUTSIDE


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", OTHERS)
@pytest.mark.parametrize("name", NAMES)
def test_what_is_another_file(name: str, kind: str, own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _clear(own / name)
    OTHERS[kind](own / name)
    used(own, final=name == "record.json")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", NAMES[:8])
def test_a_file_that_is_cut(name: str, own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _cut(own / name)
    used(own, final=name == "record.json")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("share", range(0, 100, 4))
@pytest.mark.parametrize("kind", ["zip", "tar", "gztar"])
def test_an_archive_with_a_wrong_byte(kind: str, share: int, own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(shutil.make_archive(str(own.parent.parent / "packed"), kind, own.parent))
    content = bytearray(path.read_bytes())
    content[len(content) * share // 100] ^= 0xFF
    path.write_bytes(content)
    brought = own.parent.parent / "brought"
    assert main(["collect", str(path), f"runs_root={brought}"]) in (0, 6)
    assert not list(brought.glob(".collect-*"))
    again = [*WORDS, *SIZES, f"runs_root={brought}"]
    assert main(again) == 0
