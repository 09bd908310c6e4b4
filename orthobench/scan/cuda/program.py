"""CUDA kernels compiled at run time by NVRTC, which torch's CUDA wheels bring along, and started by the driver.

The files of this folder are one program for each family of cells; its constants are given as macros. Compiled programs
are kept in the user's cache, named by a hash of everything that they were made from.
"""

import ctypes
from contextlib import suppress
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from orthobench.scan.native.compiler import CompileError, kept_bytes

FOLDER = Path(__file__).parent
SHARED_FILES = ("device.cuh", "scan.cuh", "activations.cuh")
DYNAMIC_SHARED_MEMORY = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
Macros = tuple[tuple[str, str], ...]


def source(family: str) -> str:
    """The whole program of a family: elman, gru or lstm."""
    files = (*SHARED_FILES, f"{family}.cuh")
    return "\n".join((FOLDER / name).read_text(encoding="utf-8").replace("#pragma once", "") for name in files)


def compiled(family: str, macros: Macros, capability: tuple[int, int]) -> bytes:
    """The machine code of a family's kernels for a compute capability.

    Raises:
        CompileError: there is no NVRTC, or it failed; the sentence gives the reason.
    """
    text, options = source(family), _options(macros, capability)
    key = (text, *options, str(_version()))
    return kept_bytes(f"{family}-cuda", key, lambda: _compile(text, options))


def start(
    kernel: str, macros: Macros, grid: tuple[int, int], threads: int, shared: int, values: list[Tensor | int | None]
) -> None:
    """Start a kernel on torch's current stream.

    Args:
        kernel: such as elman_forward.
        macros: the constants that its program is compiled with.
        grid: blocks and members.
        threads: of a block.
        shared: bytes of shared memory.
        values: tensors on the current device, None for a pointer that is not read, and numbers of 32 bits.
    """
    function = _function(kernel, macros, torch.cuda.current_device(), shared)
    own = [
        ctypes.c_int(v) if isinstance(v, int) else ctypes.c_void_p(None if v is None else v.data_ptr()) for v in values
    ]
    pointers = (ctypes.c_void_p * len(own))(*(ctypes.addressof(value) for value in own))
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    _ask(_driver().cuLaunchKernel(function, *grid, 1, threads, 1, 1, shared, stream, pointers, None))


@cache
def _function(kernel: str, macros: Macros, device: int, shared: int) -> ctypes.c_void_p:
    family = kernel.split("_")[0]
    code = compiled(family, macros, torch.cuda.get_device_capability(device))
    torch.cuda.current_stream()  # makes torch's context of the device, which the driver's calls need
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    _ask(_driver().cuModuleLoadData(ctypes.byref(module), code))
    _ask(_driver().cuModuleGetFunction(ctypes.byref(function), module, kernel.encode()))
    _ask(_driver().cuFuncSetAttribute(function, DYNAMIC_SHARED_MEMORY, shared))
    return function


def _options(macros: Macros, capability: tuple[int, int]) -> list[str]:
    major, minor = capability
    defines = [f"-D{name}={value}" for name, value in macros]
    return [f"--gpu-architecture=sm_{major}{minor}", "--std=c++17", *defines]


def _compile(text: str, options: list[str]) -> bytes:
    library, program = nvrtc(), ctypes.c_void_p()
    given = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"orthobench.cu", 0, None, None)
    try:
        if library.nvrtcCompileProgram(program, len(options), given):
            log = _read(program, "ProgramLog").decode(errors="replace")
            said = next((line for line in log.splitlines() if "error" in line), "it said nothing")
            raise CompileError(f"NVRTC failed: {said}")
        return _read(program, "CUBIN")
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _read(program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    getattr(nvrtc(), f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    room = ctypes.create_string_buffer(size.value)
    getattr(nvrtc(), f"nvrtcGet{what}")(program, room)
    return room.raw


@lru_cache
def nvrtc() -> Any:
    """NVRTC of torch's CUDA version: the system's, or the one that pip has installed beside torch.

    Raises:
        CompileError: it cannot be loaded.
    """
    version = (torch.version.cuda or "").split(".")[0]
    wanted = f"libnvrtc.so.{version}".rstrip(".")
    for name in (wanted, "libnvrtc.so", *_of_pip(version)):
        try:
            return ctypes.CDLL(str(name))
        except OSError:
            continue
    raise CompileError(f"the library {wanted} cannot be loaded")


def _of_pip(version: str) -> list[Path]:
    """NVRTC of NVIDIA's wheels, which the loader does not look for; what it opens by name is loaded here."""
    spec = find_spec("nvidia")
    folders = [Path(place) for place in (spec.submodule_search_locations or ())] if spec else []
    found = [path for folder in folders for path in folder.glob(f"*/lib/libnvrtc.so.{version or '*'}")]
    for own in (own for path in found for own in path.parent.glob("libnvrtc-builtins.so.*")):
        with suppress(OSError):
            ctypes.CDLL(str(own), ctypes.RTLD_GLOBAL)
    return found


def _version() -> tuple[int, int]:
    major, minor = ctypes.c_int(), ctypes.c_int()
    nvrtc().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return major.value, minor.value


@lru_cache
def _driver() -> Any:
    return ctypes.CDLL("libcuda.so.1")


def _ask(result: int) -> None:
    """Raise what a call of the driver says where it failed."""
    if result:
        said = ctypes.c_char_p()
        _driver().cuGetErrorString(result, ctypes.byref(said))
        raise RuntimeError(f"CUDA's driver says: {(said.value or b'unknown error').decode()}")
