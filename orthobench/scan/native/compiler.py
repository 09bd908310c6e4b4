"""Compiling C into the user's cache, once per source, compiler and CPU.

A library has a folder of its own, named by a hash of everything that it was made from, with a file that holds the hash
of the library's bytes. A changed source, or another machine with the same home directory, therefore gets a library of
its own, and a damaged file is noticed before it is loaded. The folder appears by an atomic rename: processes that start
together may all compile, and each of them finds a complete library. Loading a library runs it: what another user owns
or can write is never loaded.
"""

import contextlib
import hashlib
import os
import platform
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path

from orthobench.common import system

COMPILERS = ("cc", "gcc", "clang")
OPTIONS = ("-O3", "-std=gnu11", "-fPIC", "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math")
# The first that the compiler knows. Compilers prefer half of an AVX-512 register unless told otherwise.
MACHINES = ("-march=native -mprefer-vector-width=512", "-march=native", "-mcpu=native", "")
TIME_LIMIT_S, VERSION_LIMIT_S = 300, 5  # a busy machine takes ten times as long as a quiet one
LIBRARY, DIGEST = "library.so", "sha256"


class CompileError(Exception):
    """There is no compiler, or it failed to compile this source."""


def library(source: Path, *defines: str) -> Path:
    """The shared library made of `source` with `-D` defines, from the cache when it is there.

    Args:
        source: a C file, or a folder of C files and their headers.
        *defines: such as `REAL=float`.

    Raises:
        CompileError: there is no compiler or it failed; the sentence gives the reason.
    """
    compiler = next(filter(None, map(shutil.which, COMPILERS)), None)
    if compiler is None:
        raise CompileError("there is no C compiler (cc, gcc or clang) on the PATH")
    text = [path.read_bytes() for path in sources(source, "*.[ch]")]
    key = _digest(*text, _version(compiler), _cpu().encode(), " ".join((*OPTIONS, *MACHINES, *defines)).encode())
    own = _folder() / f"{source.stem}-{key}"
    if not _whole(own):
        with tempfile.TemporaryDirectory(dir=own.parent) as scratch:
            made = _compile(compiler, source, defines, Path(scratch) / "new" / LIBRARY)
            (made.parent / DIGEST).write_text(_digest(made.read_bytes()))
            (made.parent / DIGEST).chmod(0o600)
            _put(made.parent, own)
    return own / LIBRARY


def kept_bytes(name: str, key: tuple[str, ...], make: Callable[[], bytes]) -> bytes:
    """Return what `make` returns, from the cache when it is there; `key` is everything that it depends on."""
    own = _folder() / f"{name}-{_digest(*(part.encode() for part in key))}"
    if not _whole(own):
        with tempfile.TemporaryDirectory(dir=own.parent) as scratch:
            new = Path(scratch) / "new"
            new.mkdir(mode=0o700)
            for file, content in ((LIBRARY, made := make()), (DIGEST, _digest(made).encode())):
                (new / file).write_bytes(content)
                (new / file).chmod(0o600)
            _put(new, own)
            return made
    return (own / LIBRARY).read_bytes()


def _whole(own: Path) -> bool:
    """Return True if a library is there, undamaged, and nobody else's."""
    try:
        return all(map(_ours, (own, own / LIBRARY, own / DIGEST))) and _digest((own / LIBRARY).read_bytes()) == (
            own / DIGEST
        ).read_text(errors="replace")
    except OSError:
        return False


def _ours(path: Path) -> bool:
    """Return True if this user alone can write a file or folder, which is no link."""
    found = path.lstat()
    kind = stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)
    return kind and found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _put(new: Path, own: Path) -> None:
    """Move a new library to its place, unless another process has just put a whole one there."""
    try:
        new.rename(own)
    except OSError as error:
        if _whole(own):
            return
        damaged = new.parent / "damaged"
        try:
            own.rename(damaged)
            new.rename(own)
        except OSError:
            if not _whole(own):
                raise CompileError(f"{own} cannot be replaced: {error.strerror}") from error


def sources(source: Path, pattern: str = "*.c") -> list[Path]:
    """`source` itself, or the files in it that match `pattern` where it is a folder."""
    return sorted(source.glob(pattern)) if source.is_dir() else [source]


def _compile(compiler: str, source: Path, defines: tuple[str, ...], target: Path) -> Path:
    """Compile every file by itself, as many at once as there are cores, and link them."""
    said, files = "", sources(source)
    objects = [target.parent.parent / f"{path.stem}.o" for path in files]
    target.parent.mkdir(mode=0o700)
    for machine in MACHINES:
        options = [compiler, *OPTIONS, *machine.split(), *(f"-D{define}" for define in defines)]
        compiling = [[*options, "-c", str(path), "-o", str(made)] for path, made in zip(files, objects, strict=True)]
        linking = [*options, "-shared", *map(str, objects), "-o", str(target), "-lm"]
        failed = _first_failure(compiling) or _first_failure([linking])
        if failed is None and target.exists():
            target.chmod(0o700)
            return target
        said = said or (failed or b"").decode(errors="replace").strip()
    raise CompileError(f"{compiler} failed: {said.splitlines()[0] if said else 'it said nothing'}")


def _first_failure(commands: list[list[str]]) -> bytes | None:
    """Message of the first command that fails; None where all succeed."""
    with ThreadPoolExecutor(system.cores()) as together:
        answers = list(together.map(lambda command: _run(command, TIME_LIMIT_S), commands))
    return next((error for code, error in answers if code), None)


def _folder() -> Path:
    """Folder of the libraries: $XDG_CACHE_HOME/orthobench, else ~/.cache/orthobench, else one of this process.

    Raises:
        CompileError: the system does not tell whose a file is, as Windows.
    """
    if not hasattr(os, "geteuid"):
        raise CompileError("it is built on Linux and macOS alone, which tell whose a file is")
    with contextlib.suppress(OSError, RuntimeError):
        root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        folder = Path(root) / "orthobench"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
        with tempfile.TemporaryFile(dir=folder):
            if _ours(folder):
                return folder
    return Path(_temporary().name)


@lru_cache
def _temporary() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix="orthobench-")


def _version(compiler: str) -> bytes:
    return _run([compiler, "--version"], VERSION_LIMIT_S, output=True)[1]


def _run(command: list[str], limit_s: float, output: bool = False) -> tuple[int, bytes]:
    """The exit code of a compiler and what it said, on standard output or standard error.

    It and all that it started end with the limit, and with this process's wait for it.
    """
    streams = (subprocess.PIPE, subprocess.DEVNULL) if output else (subprocess.DEVNULL, subprocess.PIPE)
    try:
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=streams[0], stderr=streams[1], start_new_session=True
        ) as process:
            try:
                said = process.communicate(timeout=limit_s)[0 if output else 1]
            except BaseException:
                system.kill_group(process)
                raise
    except subprocess.TimeoutExpired as error:
        raise CompileError(f"{command[0]} took more than {limit_s:g} s and was stopped") from error
    except OSError as error:
        raise CompileError(f"{command[0]} could not be run: {error}") from error
    return process.returncode, said


def _cpu() -> str:
    """The instruction sets of this CPU, as far as the system reports them."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith(("flags", "Features")):
                return f"{platform.machine()} {line}"
    return f"{platform.machine()} {platform.processor()}"


def _digest(*parts: bytes) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]
