import contextlib
import gzip
import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orthobench.datasets.tars import MEMBERS, read_tar
from orthobench.errors import DataError

WANTED = "./data/text.txt"
CONTENT = b"no it was n't black monday\n"
Build = Callable[[tarfile.TarFile], None]


def plain(archive: tarfile.TarFile, name: str, content: bytes = CONTENT) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    archive.addfile(info, io.BytesIO(content))


def special(archive: tarfile.TarFile, name: str, kind: bytes, target: str = "") -> None:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    archive.addfile(info)


def packed(path: Path, build: Build) -> Path:
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        build(archive)
    return path


def tree(root: Path) -> list[str]:
    return sorted(str(path) for path in root.rglob("*"))


def hostile(archive: tarfile.TarFile) -> None:
    for name in ("../evil", "/tmp/evil", "C:\\evil", "data/../../evil", "./data/TEXT.TXT", "con", "a\nb"):
        plain(archive, name, b"evil")
    special(archive, "link", tarfile.SYMTYPE, "/etc")
    plain(archive, "link/evil", b"evil")
    special(archive, "hard", tarfile.LNKTYPE, "/etc/passwd")
    for kind in (tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.DIRTYPE):
        special(archive, f"special{kind!r}", kind)


def test_wanted_members_are_read_and_hostile_ones_are_never_touched(tmp_path: Path) -> None:
    def build(archive: tarfile.TarFile) -> None:
        hostile(archive)
        plain(archive, WANTED)
        hostile(archive)

    path = packed(tmp_path / "x.tgz", build)
    before = tree(tmp_path.parent)
    assert read_tar(path, [WANTED], 1000, 1 << 20) == {WANTED: CONTENT}
    assert tree(tmp_path.parent) == before
    assert not Path("/tmp/evil").exists()


def twice(archive: tarfile.TarFile) -> None:
    plain(archive, WANTED)
    plain(archive, WANTED, b"other")


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda a: plain(a, "data/text.txt"), r"lacks \./data/text\.txt"),
        (lambda a: plain(a, "./DATA/TEXT.TXT"), "lacks"),
        (lambda a: plain(a, "/data/text.txt"), "lacks"),
        (twice, "occurs twice"),
        (lambda a: special(a, WANTED, tarfile.SYMTYPE, "/etc/passwd"), "not a plain file"),
        (lambda a: special(a, WANTED, tarfile.LNKTYPE, "/etc/passwd"), "not a plain file"),
        (lambda a: special(a, WANTED, tarfile.FIFOTYPE), "not a plain file"),
        (lambda a: special(a, WANTED, tarfile.CHRTYPE), "not a plain file"),
        (lambda a: special(a, WANTED, tarfile.DIRTYPE), "not a plain file"),
        (lambda a: plain(a, WANTED, bytes(1001)), "larger than 1000 bytes"),
        (lambda a: plain(a, "bomb", bytes(4 << 20)), "unpacks to more bytes than it should"),
        (lambda a: [plain(a, f"{i}", b"") for i in range(MEMBERS + 1)], "more than 10000 members"),
    ],
)
def test_archives_that_are_not_what_they_should_be(tmp_path: Path, build: Build, sentence: str) -> None:
    path = packed(tmp_path / "x.tgz", build)
    with pytest.raises(DataError, match=sentence) as caught:
        read_tar(path, [WANTED], 1000, 1 << 24 if "members" in sentence else 1 << 20)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert tree(tmp_path) == [str(path)]


def test_of_a_bomb_no_more_is_unpacked_than_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = packed(tmp_path / "bomb.tgz", lambda a: plain(a, "bomb", bytes(32 << 20)))
    read, sizes = gzip.GzipFile.read, []

    def counted(self: gzip.GzipFile, size: int | None = -1) -> bytes:
        content = read(self, size)
        sizes.append(len(content))
        return content

    monkeypatch.setattr(gzip.GzipFile, "read", counted)
    with pytest.raises(DataError, match="unpacks to more bytes than it should"):
        read_tar(path, [WANTED], 1000, 1 << 20)
    assert sum(sizes) <= (1 << 20) + 1


WHOLE = io.BytesIO()
with tarfile.open(fileobj=WHOLE, mode="w:gz") as _archive:
    plain(_archive, WANTED)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 300), st.integers(0, 255)), max_size=4), st.integers(0, 300))
def test_any_bytes_are_read_or_refused(tmp_path: Path, changes: list[tuple[int, int]], length: int) -> None:
    content = bytearray(WHOLE.getvalue())
    for place, value in changes:
        content[place % len(content)] = value
    path = tmp_path / "x.tgz"
    path.write_bytes(content[:length])
    with contextlib.suppress(DataError):
        assert read_tar(path, [WANTED], 1000, 1 << 20) == {WANTED: CONTENT}
