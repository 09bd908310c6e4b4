"""Damaged copies of published data are refused by name; `data.verify=false` reads them as they are."""

import gzip
import os
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from orthobench.__main__ import main
from orthobench.datasets import har, timit, ucr
from orthobench.errors import DataError
from tests.conftest import Refused, write

DATA = Path(os.environ.get("ORTHOBENCH_DATA", "data"))
SETS = ("Coffee", "ItalyPowerDemand")
PUBLISHED = "ucr/UCRArchive_2018"
DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "a digit": lambda content: content.replace(b"7", b"8", 1),
    "a sign": lambda content: content.replace(b"\t-", b"\t", 1),
    "a label": lambda content: bytes([content[0] ^ 3]) + content[1:],
    "two rows exchanged": lambda content: b"".join(_swapped(content.splitlines(keepends=True))),
    "a row twice": lambda content: content.splitlines(keepends=True)[0] + content,
    "a row less": lambda content: b"".join(content.splitlines(keepends=True)[1:]),
    "half": lambda content: content[: len(content) // 2],
    "empty": lambda content: b"",
    "zeros in the middle": lambda content: content[:5000] + bytes(512) + content[5512:],
    "another line end": lambda content: content.replace(b"\n", b"\r\n"),
    "a blank at the end": lambda content: content + b" ",
    "a mark at the beginning": lambda content: b"\xef\xbb\xbf" + content,
}

pytestmark = pytest.mark.data


def _swapped(lines: list[bytes]) -> list[bytes]:
    return [lines[1], lines[0], *lines[2:]]


def copied(root: Path, name: str) -> dict[str, Path]:
    folder = root / PUBLISHED / name
    shutil.copytree(DATA / PUBLISHED / name, folder)
    return {part: folder / f"{name}_{part}.tsv.gz" for part in ("TRAIN", "TEST")}


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("part", ["TRAIN", "TEST"])
@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("damage", DAMAGES)
def test_ucr(damage: str, name: str, part: str, packed: bool, tmp_path: Path) -> None:
    path = copied(tmp_path, name)[part]
    content = DAMAGES[damage](gzip.decompress(path.read_bytes()))
    path.write_bytes(gzip.compress(content))
    if not packed:
        path.unlink()
        path = path.with_suffix("")
        path.write_bytes(content)
    with pytest.raises(DataError, match=rf"{name}_{part}\.tsv.* is damaged or not the published one"):
        ucr.load(tmp_path, name)


@pytest.mark.parametrize("place", range(3, 96, 4))
def test_a_flipped_bit_of_a_packed_file(place: int, tmp_path: Path) -> None:
    path = copied(tmp_path, "Coffee")["TEST"]
    content = bytearray(path.read_bytes())
    content[len(content) * place // 100] ^= 1 << place % 8
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"Coffee_TEST\.tsv\.gz is "):
        ucr.load(tmp_path, "Coffee")


@pytest.fixture(scope="module")
def recordings() -> bytes:
    return (DATA / "har" / har.NPZ).read_bytes()


@pytest.mark.parametrize("place", [1, 20, 48, 49, 97, 99])
def test_har(place: int, recordings: bytes, tmp_path: Path) -> None:
    at = len(recordings) * place // 100
    write(tmp_path / "har", {har.NPZ: recordings[:at] + bytes([recordings[at] ^ 4]) + recordings[at + 1 :]})
    with pytest.raises(DataError, match=r"uci_har_inertial\.npz is damaged or not the published one"):
        har.load(tmp_path)


@pytest.fixture
def speech(tmp_path: Path) -> Path:
    with zipfile.ZipFile(DATA / "timit" / timit.ARCHIVE) as archive:
        archive.extractall(tmp_path / "timit")
    return tmp_path


@pytest.mark.parametrize("place", range(5, 99, 10))
def test_timit(place: int, speech: Path) -> None:
    pytest.importorskip("soundfile", reason="the extra `audio` is not installed")
    path = next(path for path in sorted((speech / "timit").rglob("*.wav")) if path.name.startswith("si"))
    content = bytearray(path.read_bytes())
    content[len(content) * place // 100] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match=rf"{path.name} is damaged or not the published one"):
        timit.load(speech, "sample")


WORDS = ["model=rnn", "task=ucr", "task.dataset=Coffee", "recipe=none", "model.hidden_size=4", "trainer.max_steps=1"]


def test_the_program_and_data_that_are_taken_as_they_are(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = copied(here / "data", "Coffee")["TRAIN"]
    path.write_bytes(gzip.compress(DAMAGES["a digit"](gzip.decompress(path.read_bytes()))))
    given = [*WORDS, f"data_root={here / 'data'}"]
    assert main(given) == 3
    assert str(path) in capsys.readouterr().err
    assert main([*given, "data.verify=false"]) == 0
    assert main([*given, "data.verify=false"]) == 0, "it is done"
    assert main(given) == 2, "the same run, of data that nobody has compared with the published ones"
    assert "data.verify, which was false" in capsys.readouterr().err
    assert len([path for path in (here / "runs").glob("*/record.json")]) == 1


def test_a_table_takes_no_such_data(tmp_path: Path, refused: Refused) -> None:
    words = ["reproduce", "spectral_rnn/table4", f"results_root={tmp_path}", "data.verify=false"]
    refused(words, "a table holds numbers of published data")


def test_it_does_not_change_the_run() -> None:
    import orthobench

    words = ("model=rnn", "task=ucr", "task.dataset=Coffee")
    assert orthobench.build(*words).run_id == orthobench.build(*words, "data.verify=false").run_id


@pytest.mark.parametrize("unequal", ["refuse", "pad"])
def test_other_sets_are_read(unequal: ucr.Unequal, tmp_path: Path) -> None:
    for part, first in (("TRAIN", "0.5"), ("TEST", "0.25")):
        write(tmp_path / "ucr" / "Mine", {f"Mine_{part}.tsv": f"0\t{first}\t1\n1\t2\t3\n"})
    train, _ = ucr.load(tmp_path, "Mine", unequal=unequal)
    assert np.array_equal(train.values, [[0.5, 1], [2, 3]])
