"""`prepare`: downloading the real data sets, proving that they are the published ones, and putting them in place.

Everything is fetched and checked in a separate folder inside `data_root` and moved into place at the end, so that a
failure leaves nothing behind. Two data sets must be obtained by hand: the whole of TIMIT, which the Linguistic Data
Consortium licenses (LDC93S1; its TRAIN and TEST folders go under `data_root/timit`), and UCR's archive of 2015, which
is no longer published. Data sets whose TRAIN and TEST the 2018 archive exchanged are exchanged back when they are read.
"""

import contextlib
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from orthobench.common.schema import did_you_mean
from orthobench.common.terminal import say
from orthobench.datasets import har, mnist, ptb, timit, ucr
from orthobench.datasets.fetching import fetch
from orthobench.datasets.files import File, find, read_published
from orthobench.datasets.tars import read_tar
from orthobench.datasets.ucr_table import ENTRIES
from orthobench.datasets.zips import member, open_zip
from orthobench.errors import ConfigError, DataError, StorageError

EXAMPLES = "http://www.fit.vutbr.cz/~imikolov/rnnlm/simple-examples.tgz"
TIMIT_SAMPLE = "https://raw.githubusercontent.com/nltk/nltk_data/gh-pages/packages/corpora/timit.zip"
TIMIT_BLOB = "git:a003a55358ae9239cb5f91d6f92aea288c461d1d"
MIB = 1 << 20


@dataclass(frozen=True)
class Source:
    """Source of a data set.

    Attributes:
        folder: its folder in `data_root`.
        licence: the line that is shown before anything is fetched.
        there: tells whether `data_root` has the whole data set already.
        build: puts the verified files into an empty folder laid out like `data_root`.
    """

    folder: str
    licence: str
    there: Callable[[Path], object]
    build: Callable[[Path], None]


def prepare(name: str, data_root: Path) -> Path:
    """Download, verify and put in place one data set; returns its folder.

    Raises:
        ConfigError: the name is not known.
        DataError: the download failed, or its content is not the published data; nothing was left behind.
        StorageError: `data_root` cannot be written.
    """
    source = SOURCES.get(TASKS.get(name, name))
    if source is None:
        raise ConfigError(f"prepare {name}: there is no such data set; {did_you_mean(name, [*SOURCES, *TASKS])}")
    root = Path(data_root)
    home = root / source.folder
    say(f"{name}: {source.licence}")
    if _is_there(source, root):
        say(f"{name}: all there already, in {home}")
        return home
    with _staging(root) as stage:
        source.build(stage)
        count = _move(stage, root)
    say(f"{name}: {count} files verified, in {home}")
    return home


def _is_there(source: Source, root: Path) -> bool:
    try:
        return bool(source.there(root))
    except DataError:
        return False


@contextlib.contextmanager
def _staging(root: Path) -> Iterator[Path]:
    """A temporary folder inside `root`, removed afterwards together with the parents made for it that are empty."""
    made = [folder for folder in (root, *root.parents) if not folder.exists()]
    try:
        root.mkdir(parents=True, exist_ok=True)
        stage = Path(tempfile.mkdtemp(prefix=".prepare-", dir=root))
    except OSError as error:
        raise StorageError(
            f"data_root={root} cannot be written: {error.strerror}; name another folder by data_root=."
        ) from error
    try:
        yield stage
    except OSError as error:
        raise StorageError(
            f"{error.filename or root} cannot be written: {error.strerror or error}; name another folder by data_root=."
        ) from error
    finally:
        shutil.rmtree(stage, ignore_errors=True)
        for folder in made:
            with contextlib.suppress(OSError):
                folder.rmdir()


def _move(stage: Path, root: Path) -> int:
    """Move every file of `stage` to the same place under `root`, each by one rename; returns their number."""
    files = [path for path in stage.rglob("*") if path.is_file()]
    for path in files:
        target = root / path.relative_to(stage)
        target.parent.mkdir(parents=True, exist_ok=True)
        path.replace(target)
    return len(files)


def _folder(stage: Path, name: str) -> Path:
    folder = stage / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _verified(root: Path, folder: str, files: tuple[File, ...]) -> bool:
    paths = find(root, folder, files, folder)
    return all(read_published(path, file.sha256) for path, file in zip(paths, files, strict=True))


def _fetch_files(folder: Path, files: tuple[File, ...]) -> None:
    for file in files:
        fetch(file.urls, folder / file.name, f"sha256:{file.sha256}", 64 * MIB)


def _build_mnist(stage: Path) -> None:
    _fetch_files(_folder(stage, "mnist"), mnist.FILES)


def _build_ptb(stage: Path) -> None:
    """Write the word files from a mirror or else from Mikolov's archive, and derive the character files from them."""
    home = _folder(stage, "ptb")
    try:
        _fetch_files(home, ptb.WORDS)
    except DataError as error:
        say(f"ptb: {error}")
        packed = fetch((EXAMPLES,), stage / "simple-examples.tgz", None, 64 * MIB)
        names = {f"./simple-examples/data/{file.name}": file.name for file in ptb.WORDS}
        for name, content in read_tar(packed, names, 16 * MIB, 512 * MIB).items():
            (home / names[name]).write_bytes(content)
        packed.unlink()
    for words, characters in zip(ptb.WORDS, ptb.CHARACTERS, strict=True):
        content = read_published(home / words.name, words.sha256)
        (home / characters.name).write_bytes(ptb.spelt_out(content, home / words.name))
        read_published(home / characters.name, characters.sha256)


def _build_timit(stage: Path) -> None:
    fetch((TIMIT_SAMPLE,), _folder(stage, "timit") / timit.ARCHIVE, TIMIT_BLOB, 64 * MIB)
    _has_sample(stage)
    say(f"timit: this is the free sample; {timit.HOW}.")


def _has_sample(root: Path) -> bool:
    found, expected = len(timit.utterances(root)), sum(timit.UTTERANCES["sample"].values())
    if found < expected:
        raise DataError(
            f"{root / 'timit'} holds {found} recordings of SI and SX sentences, not {expected} or more; fetch it again."
        )
    return True


def _build_har(stage: Path) -> None:
    fetch(har.URLS, _folder(stage, "har") / f"{har.TOP}.zip", None, 128 * MIB)
    har.load(stage)


def _build_ucr(stage: Path) -> None:
    """Write the data sets that the papers use; the archive's password is printed in its authors' briefing document."""
    packed = fetch(ucr.URLS, stage / "UCRArchive_2018.zip", None, 512 * MIB)
    with open_zip(packed.read_bytes(), packed) as archive:
        archive.setpassword(ucr.PASSWORD)
        for entry in ENTRIES:
            folder = _folder(stage, f"ucr/{ucr.TOPS[0]}/{entry.name}")
            for part in ("TRAIN", "TEST"):
                name = f"{entry.name}_{part}.tsv"
                content = member(archive, f"{ucr.TOPS[0]}/{entry.name}/{name}", 64 * MIB, packed)
                (folder / name).write_bytes(content)
            ucr.load(stage, entry.name)
    packed.unlink()


SOURCES = {
    "mnist": Source("mnist", mnist.LICENCE, lambda root: _verified(root, "mnist", mnist.FILES), _build_mnist),
    "ptb": Source("ptb", ptb.LICENCE, lambda root: _verified(root, "ptb", ptb.WORDS + ptb.CHARACTERS), _build_ptb),
    "timit": Source("timit", timit.LICENCE, _has_sample, _build_timit),
    "har": Source("har", har.LICENCE, har.load, _build_har),
    "ucr": Source(
        "ucr",
        ucr.LICENCE,
        lambda root: all(ucr.find(root / "ucr", entry.name, entry, "archive") for entry in ENTRIES),
        _build_ucr,
    ),
}
TASKS = {
    "pmnist": "mnist",
    "mnist_flat": "mnist",
    "ptb_word": "ptb",
    "ptb_char": "ptb",
    "har2": "har",
}
