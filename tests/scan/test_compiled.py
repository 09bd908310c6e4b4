"""Kernels compiled for GPUs that are not here, Triton's and CUDA's: none may spill a register."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from subprocess import PIPE
from threading import Timer

import pytest

from orthobench.scan.cuda import launch, program
from orthobench.scan.cuda.layout import REGISTERS, best
from orthobench.scan.gpu.costs import MATRICES
from orthobench.scan.native.compiler import CompileError
from tests.conftest import REPO

pytestmark = pytest.mark.skipif(
    os.environ.get("TRITON_INTERPRET") != "1" or find_spec("triton") is None,
    reason="needs the package triton and TRITON_INTERPRET=1: make test-kernels",
)
MODRELU, GATED = (), ("GATED=true", 'ACTIVATION="relu"')
BEFORE, NONE = ('RESET="before"', "LATE=false"), ('RESET="none"', "LATE=false")
HERE = [
    ("elman", 50, MODRELU),
    ("elman", 128, MODRELU),
    ("elman", 190, MODRELU),
    ("elman", 256, MODRELU),
    ("elman", 190, GATED),
    ("elman", 256, GATED),
    ("gru", 50, MODRELU),
    ("gru", 96, MODRELU),
    ("gru", 128, MODRELU),
    ("gru", 128, BEFORE),
    ("gru", 64, NONE),
    *(("lstm", n, ()) for n in (1, 21, 32, 50, 63, 64, 65, 96, 97, 113, 128)),
    ("lstm", 128, ("KEPT=false",)),
    ("complex_elman", 50, ()),
    ("complex_elman", 128, ()),
    ("diagonal", 128, ()),
    ("diagonal", 128, ("COMPLEX=true",)),
    ("diagonal", 128, ("COMPLEX=true", "STEADY=true")),
    *(("matrix", n, settings) for n in (16, 32, 64) for settings in ((), ("CHANNELS=true",), ("ERASE=false",))),
]
ELSEWHERE = [
    ("elman", 128, MODRELU),
    ("elman", 190, MODRELU),
    ("gru", 128, MODRELU),
    ("diagonal", 128, ()),
    ("diagonal", 128, ("COMPLEX=true",)),
    *(("matrix", 64, settings) for settings in ((), ("CHANNELS=true",))),
    *(("lstm", n, ()) for n in (21, 50, 64, 96, 97, 113, 128)),
]
CASES = [*((90, *case) for case in HERE), *((arch, *case) for arch in (80, 100) for case in ELSEWHERE)]


@pytest.fixture(scope="module")
def compiler() -> Iterator[subprocess.Popen[str]]:
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    words = [sys.executable, "-m", "tests.scan.compiled_kernels"]
    with subprocess.Popen(words, cwd=REPO, env=environment, stdin=PIPE, stdout=PIPE, text=True) as process:
        yield process
        process.communicate(timeout=60)


def compiled(compiler: subprocess.Popen[str], *words: str | int) -> dict[str, dict[str, int]]:
    """What the forward and the backward kernel use."""
    assert compiler.stdin
    assert compiler.stdout
    compiler.stdin.write(" ".join(map(str, words)) + "\n")
    compiler.stdin.flush()
    limit = Timer(300, compiler.kill)
    limit.start()
    answer = compiler.stdout.readline()
    limit.cancel()
    assert answer, "the compiler's process ended, or took longer than five minutes"
    found = json.loads(answer)
    error = found.get("error", "")
    if words[0] == 100 and "sm_100" in error and "not defined for option" in error:
        pytest.skip("sm_100 needs ptxas of CUDA 12.8, which this triton does not bring")
    assert not error, error[-2000:]
    return found


@pytest.mark.parametrize(("arch", "family", "n", "settings"), CASES)
def test_a_kernel_keeps_everything_in_registers(
    arch: int, family: str, n: int, settings: tuple[str, ...], compiler: subprocess.Popen[str]
) -> None:
    for way, used in compiled(compiler, arch, family, n, *settings).items():
        assert used["stack"] == 0, f"{way}: {used}"
        assert used["registers"] <= 255
        allowed = 32 if family == "matrix" else 2
        assert used["shared"] <= allowed << 10, "only what the sums over threads need, and tiles of a product"


CHOSEN = [("elman", 50, 50), ("elman", 128, 50), ("elman", 190, 50), ("elman", 128, 500), ("elman", 190, 500),
          ("elman", 512, 50), ("gru", 128, 50), ("gru", 190, 50), ("lstm", 50, 50), ("lstm", 128, 50)]  # fmt: skip


def missing_nvrtc() -> str | None:
    """Why no kernel can be compiled here; None where NVRTC is found."""
    try:
        program.nvrtc()
    except CompileError as error:
        return f"{error}: make test-kernels"
    return None


@pytest.mark.skipif(missing_nvrtc() is not None, reason=str(missing_nvrtc()))
@pytest.mark.parametrize(("family", "n", "sequences"), CHOSEN)
def test_a_cuda_kernel_keeps_everything_in_registers(
    family: str, n: int, sequences: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the layouts that are chosen for one run and for ten; and a block of them fits into a multiprocessor."""
    layout, logs, read = best(n, MATRICES[family], sequences), list[str](), program._read
    assert layout is not None
    monkeypatch.setattr(
        program, "_read", lambda p, what: (logs.append(read(p, "ProgramLog").decode()), read(p, what))[1]
    )
    macros = launch.macros(layout, {"ACTIVATION": "modrelu", "RESET": "after", "LATE": True, "KEPT": family != "elman"})
    program._compile(program.source(family), [*program._options(macros, (9, 0)), "--ptxas-options=-v"])
    found = [re.findall(pattern, logs[0]) for pattern in (r"(\d+) bytes spill stores", r"Used (\d+) registers")]
    assert found[0] == ["0", "0"]
    assert all(int(registers) * layout.threads <= REGISTERS for registers in found[1])
