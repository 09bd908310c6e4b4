"""The cache of compiled libraries, and what happens without a compiler."""

import ctypes
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from orthobench.cells.elman import Elman
from orthobench.cells.lstm import LSTM
from orthobench.errors import ConfigError
from orthobench.scan import choose
from orthobench.scan.native import compiler, engine
from orthobench.scan.native import library as native_library
from orthobench.scan.native.compiler import CompileError, library
from tests.making import random_cell
from tests.scan.test_engines import ENGINES

pytestmark = list(ENGINES[1].marks)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "orthobench"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "answer.c"
    path.write_text("int answer(void) { return ANSWER; }\n")
    return path


@pytest.fixture
def _forget() -> Iterator[None]:
    """What this process knows about compilers is found out anew, before and after the test."""
    functions = (native_library.load, native_library.missing, engine.warn_once)
    for function in functions:
        function.cache_clear()
    yield
    for function in functions:
        function.cache_clear()


def answer(path: Path) -> int:
    return ctypes.CDLL(str(path)).answer()


def test_compiles_once_and_a_changed_source_or_definition_again(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = library(source, "ANSWER=1"), library(source, "ANSWER=2")
    assert [answer(first), answer(second)] == [1, 2]
    with monkeypatch.context() as patch:
        patch.setattr(compiler, "_compile", lambda *_: pytest.fail("compiled again"))
        assert library(source, "ANSWER=1") == first
    source.write_text("int answer(void) { return 10 * ANSWER; }\n")
    assert answer(library(source, "ANSWER=1")) == 10


@pytest.mark.parametrize("what", ["_cpu", "_version"])
def test_another_machine_or_compiler_gets_a_library_of_its_own(
    source: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = library(source, "ANSWER=1")
    monkeypatch.setattr(compiler, what, lambda *_: "other" if what == "_cpu" else b"other")
    assert library(source, "ANSWER=1") != path
    assert path.exists()


@pytest.mark.parametrize("damage", [b"", b"not a library", b"\x7fELF"])
def test_survives_a_damaged_file(source: Path, damage: bytes) -> None:
    path = library(source, "ANSWER=5")
    path.write_bytes(damage + path.read_bytes()[len(damage) : 200] if damage else damage)
    assert answer(library(source, "ANSWER=5")) == 5


@pytest.mark.slow
def test_processes_that_start_together(source: Path, cache: Path) -> None:
    code = (
        "import ctypes, pathlib, sys; from orthobench.scan.native.compiler import library; "
        "sys.exit(ctypes.CDLL(str(library(pathlib.Path(sys.argv[1]), 'ANSWER=7'))).answer())"
    )
    started = [subprocess.Popen([sys.executable, "-c", code, str(source)]) for _ in range(4)]
    assert [process.wait(120) for process in started] == [7] * 4
    assert [sorted(file.name for file in made.iterdir()) for made in cache.iterdir()] == [["library.so", "sha256"]]


def test_a_cache_that_cannot_be_written(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert answer(library(source, "ANSWER=9")) == 9


def test_a_source_that_does_not_compile(source: Path) -> None:
    source.write_text("this is not C\n")
    with pytest.raises(CompileError, match=r"failed: .*answer\.c"):
        library(source)


def test_the_cache_is_private(source: Path, cache: Path) -> None:
    library(source, "ANSWER=1")
    assert cache.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("how", ["writable", "a link", "in a writable folder", "without its digest"])
def test_a_planted_library_is_not_loaded(source: Path, how: str, tmp_path: Path) -> None:
    """With a digest that fits: whoever can write the library can write that too."""
    path, other = library(source, "ANSWER=5"), tmp_path / "other.c"
    other.write_text("int answer(void) { return 666; }\n")
    planted = library(other).read_bytes()
    path.write_bytes(planted)
    (path.parent / "sha256").write_text(compiler._digest(planted))
    if how == "writable":
        path.chmod(0o777)
    elif how == "a link":
        path.rename(tmp_path / "elsewhere.so")
        path.symlink_to(tmp_path / "elsewhere.so")
    elif how == "in a writable folder":
        path.parent.chmod(0o777)
    else:
        (path.parent / "sha256").unlink()
    assert answer(library(source, "ANSWER=5")) == 5


def test_a_cache_of_another_user_is_not_used(source: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.mkdir(parents=True)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    path = library(source, "ANSWER=9")
    assert answer(path) == 9
    assert cache not in path.parents


@pytest.mark.parametrize("sleeps_at", ["--version", " -c ", "-shared"])
def test_a_compiler_that_hangs(source: Path, sleeps_at: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is given longer until it has begun to hang, as it may begin late where other programs run."""
    fake, begun, limit = tmp_path / "bin" / "cc", tmp_path / "pid", 0.5
    fake.parent.mkdir()
    fake.write_text(f'#!/bin/sh\ncase "$*" in *"{sleeps_at}"*) sleep 3600 & echo $! > {begun}; wait;; esac\n')
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}{os.pathsep}/usr/bin{os.pathsep}/bin")
    while not begun.exists() or not begun.read_text().strip():
        monkeypatch.setattr(compiler, "TIME_LIMIT_S", limit)
        monkeypatch.setattr(compiler, "VERSION_LIMIT_S", limit)
        with pytest.raises(CompileError, match=rf"took more than {limit:g} s and was stopped"):
            library(source)
        limit *= 2
    state, until = Path(f"/proc/{begun.read_text().strip()}/stat"), time.monotonic() + 20
    while state.exists() and state.read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < until, "what the compiler started goes on"
        time.sleep(0.05)


@pytest.mark.usefixtures("_forget")
def test_without_a_compiler_auto_takes_fused_and_says_so_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert [choose(random_cell(Elman))[0] for _ in range(3)] == ["fused"] * 3
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "no C compiler" in said
    with pytest.raises(ConfigError, match=r"engine=native cannot run Elman .*no C compiler"):
        choose(random_cell(Elman), "native")


@pytest.mark.usefixtures("_forget")
def test_nothing_is_said_where_no_compiler_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert choose(random_cell(LSTM, peephole=True))[0] == "reference"
    assert choose(random_cell(Elman), "reference")[0] == "reference"
    assert not capsys.readouterr().err


@pytest.mark.usefixtures("_forget")
def test_a_compiler_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "cc"
    fake.write_text("#!/bin/sh\necho broken >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/usr/bin{os.pathsep}/bin")
    assert choose(random_cell(Elman))[0] == "fused"
    assert "broken" in str(native_library.missing(random_cell(Elman).U.dtype))
