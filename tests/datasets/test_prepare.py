import hashlib
import io
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from orthobench.datasets import download, fetching, har, mnist, ptb, timit, ucr
from orthobench.datasets.download import SOURCES, TASKS, prepare
from orthobench.datasets.files import File
from orthobench.errors import ConfigError, DataError, StorageError
from tests.conftest import zipped
from tests.datasets.serving import Server, serving

TEXTS = {"train": b"no it was n't\nblack monday\n", "valid": b"no it\n", "test": b"monday\n"}


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(fetching, "PAUSE_S", 0.0)
    for load in (ptb.load, mnist.load, har.load, ucr.load, timit.load):
        load.cache_clear()
    with serving() as mirror:
        yield mirror


def published(name: str, content: bytes, *urls: str) -> File:
    return File(name, hashlib.sha256(content).hexdigest(), urls)


def tree(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def tar(members: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return file.getvalue()


@pytest.fixture
def small_ptb(mirror: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """Penn Treebank's files with other texts."""
    words, characters = [], []
    for part, text in TEXTS.items():
        words.append(published(f"ptb.{part}.txt", text, mirror.url(f"ptb.{part}.txt")))
        characters.append(published(f"ptb.char.{part}.txt", ptb.spelt_out(text, Path("x"))))
    monkeypatch.setattr(ptb, "WORDS", tuple(words))
    monkeypatch.setattr(ptb, "CHARACTERS", tuple(characters))
    monkeypatch.setattr(download, "EXAMPLES", mirror.url("simple-examples.tgz"))
    return mirror


def offer_words(mirror: Server) -> None:
    for part, text in TEXTS.items():
        mirror.offer(f"ptb.{part}.txt", text)


def archive_of_words() -> bytes:
    return tar({f"./simple-examples/data/ptb.{part}.txt": text for part, text in TEXTS.items()})


@pytest.mark.parametrize("source", ["mirror", "archive"])
def test_ptb_comes_from_the_mirror_or_the_archive(small_ptb: Server, tmp_path: Path, source: str) -> None:
    if source == "mirror":
        offer_words(small_ptb)
    else:
        small_ptb.offer("simple-examples.tgz", archive_of_words())
    root = tmp_path / "some" / "data"
    assert prepare("ptb", root) == root / "ptb"
    assert sorted(tree(root)) == sorted(f"ptb/{file.name}" for file in ptb.WORDS + ptb.CHARACTERS)
    assert ptb.load(root, "word").tokens
    assert ptb.load(root, "char").tokens


def test_what_is_there_is_not_fetched_again_and_what_is_damaged_is(
    small_ptb: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    offer_words(small_ptb)
    prepare("ptb", tmp_path)
    small_ptb.asked.clear()
    prepare("ptb_char", tmp_path)
    assert small_ptb.asked == []
    assert "all there already" in capsys.readouterr().out
    (tmp_path / "ptb" / "ptb.char.test.txt").write_bytes(b"damaged")
    prepare("ptb", tmp_path)
    assert len(small_ptb.asked) == 3
    assert ptb.load(tmp_path, "char").tokens


def test_the_licence_is_shown_first(small_ptb: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(DataError):
        prepare("ptb", tmp_path)
    assert capsys.readouterr().out.startswith(f"ptb: {ptb.LICENCE}\n")


@pytest.mark.parametrize(
    "archive",
    [
        None,
        b"<html>moved</html>",
        archive_of_words()[:-20],
        tar({"../ptb.train.txt": TEXTS["train"], "/tmp/ptb.valid.txt": TEXTS["valid"]}),
        tar({f"./simple-examples/data/ptb.{part}.txt": b"other\n" for part in TEXTS}),
    ],
    ids=["absent", "a web page", "cut short", "other names", "other content"],
)
@pytest.mark.parametrize("existing", [False, True])
def test_failures_leave_nothing_behind(
    small_ptb: Server, tmp_path: Path, archive: bytes | None, existing: bool
) -> None:
    root = tmp_path / "some" / "data"
    if existing:
        (root / "ptb").mkdir(parents=True)
        (root / "ptb" / "ptb.test.txt").write_bytes(b"mine")
    if archive is not None:
        small_ptb.offer("simple-examples.tgz", archive)
    before, outside = tree(tmp_path), sorted(path.name for path in tmp_path.parent.iterdir())
    with pytest.raises(DataError) as caught:
        prepare("ptb", root)
    assert tree(tmp_path) == before
    assert existing or not (tmp_path / "some").exists()
    assert sorted(path.name for path in tmp_path.parent.iterdir()) == outside
    assert "\n" not in str(caught.value)


def test_mnist_s_mirrors(mirror: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = b"not really images"
    url = mirror.offer("images.gz", content)
    monkeypatch.setattr(mnist, "FILES", (published("images.gz", content, mirror.url("gone.gz"), url),))
    prepare("pmnist", tmp_path)
    assert tree(tmp_path) == {"mnist/images.gz": content}
    assert mirror.asked == ["/gone.gz", "/images.gz"]


SAMPLE = (*timit.SAMPLE_TRAINING, *timit.SAMPLE_VALIDATION, *timit.SAMPLE_TEST)
SENTENCES = ("sa1", "si1", "si2", "si3", "sx1", "sx2", "sx3", "sx4", "sx5")


def offer_sample(mirror: Server, monkeypatch: pytest.MonkeyPatch, names: list[str]) -> None:
    content = zipped(dict.fromkeys(names, b"RIFF"))
    monkeypatch.setattr(download, "TIMIT_SAMPLE", mirror.offer("timit.zip", content))
    blob = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
    monkeypatch.setattr(download, "TIMIT_BLOB", f"git:{blob}")


def test_timit_s_sample_stays_packed(
    mirror: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [f"timit/dr1-{speaker}/{sentence}.wav" for speaker in SAMPLE for sentence in SENTENCES]
    offer_sample(mirror, monkeypatch, [*names, "../evil", "/tmp/evil"])
    prepare("timit", tmp_path)
    assert list(tree(tmp_path)) == ["timit/timit.zip"]
    assert timit.corpus_name(tmp_path) == "sample"
    assert "LDC93S1" in capsys.readouterr().out
    mirror.asked.clear()
    prepare("timit", tmp_path)
    assert mirror.asked == []


def test_another_zip_in_the_place_of_timit_s_is_refused(
    mirror: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer_sample(mirror, monkeypatch, ["timit/dr1-fvmh0/si1.wav"])
    with pytest.raises(DataError, match="holds 1 recordings"):
        prepare("timit", tmp_path)
    monkeypatch.setattr(download, "TIMIT_BLOB", "git:" + "0" * 40)
    with pytest.raises(DataError, match=r"git \w{12}... instead of 000000000000"):
        prepare("timit", tmp_path)
    assert tree(tmp_path) == {}


def test_har_s_archive_is_kept_as_it_came_and_compared(
    mirror: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {f"{har.TOP}/train/{kind}_train.txt": b"1\n" for kind in ("y", "subject")}
    signals = {f"{har.TOP}/train/Inertial Signals/{channel}_train.txt": b" 1.0" * 128 for channel in har.CHANNELS}
    outer = zipped({f"{har.TOP}.zip": zipped(files | signals), "../evil": b""})
    monkeypatch.setattr(har, "URLS", (mirror.url("gone.zip"), mirror.offer("har.zip", outer)))
    with pytest.raises(
        DataError, match=r"body_acc_x_train\.txt is damaged or not the published one: md5:.* instead of"
    ):
        prepare("har2", tmp_path)
    assert tree(tmp_path) == {}
    monkeypatch.setattr(har, "load", lambda root: None)
    prepare("har2", tmp_path)
    assert tree(tmp_path) == {f"har/{har.TOP}.zip": outer}


def test_ucr_s_sets_are_unpacked_by_name_and_compared(
    mirror: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sets = [entry.name for entry in download.ENTRIES]
    files = [f"UCRArchive_2018/{name}/{name}_{part}.tsv" for name in sets for part in ("TRAIN", "TEST")]
    members = {name: b"1\t0.5\n%d" % place for place, name in enumerate(files)}
    monkeypatch.setattr(ucr, "URLS", (mirror.offer("ucr.zip", zipped({**members, "../evil": b"evil"})),))
    with pytest.raises(
        DataError, match=r"FiftyWords_TRAIN\.tsv is damaged or not the published one: sha256:.* instead"
    ):
        prepare("ucr", tmp_path)
    assert tree(tmp_path) == {}
    monkeypatch.setattr(ucr, "load", lambda root, name: None)
    prepare("ucr", tmp_path)
    assert tree(tmp_path) == {f"ucr/{name}": content for name, content in members.items()}
    mirror.asked.clear()
    prepare("ucr", tmp_path)
    assert mirror.asked == []


def test_names_of_tasks_lead_to_their_data_and_others_are_refused(tmp_path: Path) -> None:
    assert set(TASKS.values()) <= SOURCES.keys()
    assert not TASKS.keys() & SOURCES.keys()
    for name in ("mnits", "imagenet", ""):
        with pytest.raises(ConfigError, match="there is no such data set"):
            prepare(name, tmp_path)


def test_a_root_that_cannot_be_written(mirror: Server, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for root in (tmp_path / "file" / "data", Path("/proc/nowhere")):
        with pytest.raises(StorageError, match="cannot be written"):
            prepare("mnist", root)
    assert mirror.asked == []


@pytest.mark.data
@pytest.mark.parametrize(("module", "name"), [(ptb, "WORDS"), (mnist, "FILES")])
def test_the_real_files_pass(mirror: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module, name) -> None:
    folder = module.__name__.rpartition(".")[2]
    home = Path(os.environ["ORTHOBENCH_DATA"]) / folder
    files = getattr(module, name)
    offered = [File(f.name, f.sha256, (mirror.offer(f.name, (home / f.name).read_bytes()),)) for f in files]
    monkeypatch.setattr(module, name, tuple(offered))
    prepare(folder, tmp_path)
    assert tree(tmp_path / folder) == tree(home)
