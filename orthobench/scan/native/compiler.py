"""Compiling C into the user's cache, once per source, compiler and CPU.

A library's file name holds a hash of everything that it was made from and a hash of its own bytes. A changed source, or
another machine with the same home directory, therefore gets a library of its own, and a damaged file is noticed before
it is loaded. The file appears by an atomic rename: processes that start together may all compile, and each of them
finds a complete file.
"""

import contextlib
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path

COMPILERS = ("cc", "gcc", "clang")
OPTIONS = ("-O3", "-std=gnu11", "-shared", "-fPIC", "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math")
MACHINES = ("-march=native", "-mcpu=native", "")
TIME_LIMIT_S = 120


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
    folder = _folder()
    for path in folder.glob(f"{source.stem}-{key}-*.so"):
        if _digest(path.read_bytes()) == path.stem.rpartition("-")[2]:
            return path
        path.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        made = _compile(compiler, source, defines, Path(scratch) / "made.so")
        return made.replace(folder / f"{source.stem}-{key}-{_digest(made.read_bytes())}.so")


def sources(source: Path, pattern: str = "*.c") -> list[Path]:
    """`source` itself, or the files in it that match `pattern` where it is a folder."""
    return sorted(source.glob(pattern)) if source.is_dir() else [source]


def _compile(compiler: str, source: Path, defines: tuple[str, ...], target: Path) -> Path:
    said = ""
    for machine in MACHINES:
        options = [*OPTIONS, *filter(None, [machine]), *(f"-D{define}" for define in defines)]
        command = [compiler, *options, *map(str, sources(source)), "-o", str(target), "-lm"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=TIME_LIMIT_S)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CompileError(f"{compiler} could not be run: {error}") from error
        if done.returncode == 0 and target.exists():
            return target
        said = said or done.stderr.strip()
    raise CompileError(f"{compiler} failed: {said.splitlines()[0] if said else 'it said nothing'}")


def _folder() -> Path:
    """Where libraries are kept: $XDG_CACHE_HOME/orthobench, else ~/.cache/orthobench, else a folder of this process."""
    with contextlib.suppress(OSError, RuntimeError):
        root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        folder = Path(root) / "orthobench"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    return Path(_temporary().name)


@lru_cache
def _temporary() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix="orthobench-")


def _version(compiler: str) -> bytes:
    try:
        return subprocess.run([compiler, "--version"], capture_output=True, timeout=TIME_LIMIT_S).stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CompileError(f"{compiler} could not be run: {error}") from error


def _cpu() -> str:
    """The instruction sets of this CPU, as far as the system reports them."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith(("flags", "Features")):
                return f"{platform.machine()} {line}"
    return f"{platform.machine()} {platform.processor()}"


def _digest(*parts: bytes) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]
