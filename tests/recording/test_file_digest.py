"""Digests of files: those of large ones are kept, and made anew where size or time has changed."""

import hashlib
import json
import os
from pathlib import Path

import pytest

from orthobench.recording.file_digest import LARGE, digest_of_file


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "orthobench" / "digests.json"


def _file(path: Path, content: bytes, when: int) -> str:
    path.write_bytes(content)
    os.utime(path, (when, when))
    return hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize("size", [0, 1, LARGE - 1, LARGE, LARGE + 1])
def test_it_is_that_of_the_content(size: int, tmp_path: Path) -> None:
    expected = _file(tmp_path / "a", bytes(size), 1)
    assert [digest_of_file(tmp_path / "a") for _ in range(2)] == [expected, expected]


def test_a_kept_one_is_used_until_size_or_time_change(tmp_path: Path, kept: Path) -> None:
    path = tmp_path / "a"
    _file(path, bytes(LARGE), 1)
    digest_of_file(path)
    known = json.loads(kept.read_text())
    kept.write_text(json.dumps({name: [*stamp[:4], "kept"] for name, stamp in known.items()}))
    assert digest_of_file(path) == "kept"
    for content, when in ((b"1" * LARGE, 2), (b"1" * (LARGE + 1), 2)):
        assert _file(path, content, when) == digest_of_file(path)


def test_a_file_that_has_just_changed_is_not_kept(tmp_path: Path, kept: Path) -> None:
    (tmp_path / "a").write_bytes(bytes(LARGE))
    digest_of_file(tmp_path / "a")
    assert not kept.exists()


@pytest.mark.parametrize("content", ["", "[]", '{"a": 1}', "\xff"])
def test_a_damaged_cache_is_no_harm(content: str, tmp_path: Path, kept: Path) -> None:
    kept.parent.mkdir(parents=True)
    kept.write_text(content, encoding="latin-1")
    assert _file(tmp_path / "a", bytes(LARGE), 1) == digest_of_file(tmp_path / "a")
