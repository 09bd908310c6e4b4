"""The CUDA kernels on a CPU: compiled by a C++ compiler with `cuda_on_cpu.h` in place of device.cuh, in float64."""

import ctypes
import shutil
import subprocess
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from torch import Tensor

from orthobench.scan.cuda import program

COMPILER = shutil.which("g++") or shutil.which("clang++")


def start(
    kernel: str,
    macros: program.Macros,
    grid: tuple[int, int],
    threads: int,
    shared: int,
    values: list[Tensor | int | None],
) -> None:
    """See `program.start`."""
    numbers = [v if isinstance(v, int) else 0 if v is None else v.data_ptr() for v in values]
    cluster = int(dict(macros)["CLUSTER"])
    library(kernel, macros).run((ctypes.c_longlong * len(numbers))(*numbers), grid[0] // cluster, grid[1])


@cache
def library(kernel: str, macros: program.Macros) -> Any:
    folder = Path(mkdtemp())
    stand_in = (Path(__file__).parent / "cuda_on_cpu.h").read_text()
    device = (program.FOLDER / "device.cuh").read_text()
    text = program.source(kernel.split("_")[0]).replace(device.replace("#pragma once", ""), stand_in)
    (folder / "kernel.cpp").write_text(f"{text}\nEXPORT({kernel})\n")
    defines = [f"-D{name}={value}" for name, value in macros]
    words = [COMPILER, "-std=c++20", "-O1", "-w", "-shared", "-fPIC", "-pthread", *defines]
    subprocess.run([*words, "kernel.cpp", "-o", "kernel.so"], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "kernel.so"))
