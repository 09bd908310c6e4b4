"""The C files of this folder, compiled at first use and called through ctypes, which releases Python's global lock.

The rows of the batch are divided among torch's threads once for the whole sequence.
"""

import ctypes
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from orthobench.scan.native.compiler import CompileError, library

SOURCE = Path(__file__).parent
REALS = {torch.float32: "float", torch.float64: "double"}
INTEGERS = {"signs": torch.int8, "plan": torch.int64, "tokens": torch.int64}
SMALLEST_SHARE = 4  # rows below which a thread is not worth starting

long, pointer = ctypes.c_int64, ctypes.c_void_p


class Struct(ctypes.Structure):
    """Arguments of a loop: numbers, and pointers to tensors.

    Attributes:
        real: pointers to real numbers, also where the states are complex.
        apart: pointers to tensors (T, B) or (T, B, ...) whose rows may be anywhere, with their strides in `NAME_time`
            and `NAME_row`; all others are contiguous.
        unit: sequences in each of the rows that are shared out.
    """

    real: ClassVar[frozenset[str]] = frozenset()
    apart: ClassVar[frozenset[str]] = frozenset()
    unit = 1

    def run(self, loop: str, rows: int, like: Tensor, scratch: int = 0, **tensors: Tensor | None) -> None:
        """Call a loop for all rows, shared out over threads.

        Args:
            loop: the function of the compiled library.
            rows: how many there are.
            like: a tensor of the states' dtype, on a CPU.
            scratch: how many real numbers of scratch memory every thread needs.
            **tensors: by the names of the pointers; None where there is none.

        Raises:
            ValueError: C would misread a tensor.
        """
        for name, tensor in tensors.items():
            if tensor is not None:
                self._point(name, tensor, like.dtype)
        dtype = like.dtype.to_real()
        lib = load(dtype)
        compiled = getattr(lib, loop)
        more = (pointer,) if scratch else ()
        compiled.restype, compiled.argtypes = None, (ctypes.POINTER(type(self)), long, long, *more)

        def share(first: int, last: int) -> None:
            room = [like.new_empty(scratch, dtype=dtype)] if scratch else []
            compiled(self, first, last, *(tensor.data_ptr() for tensor in room))

        share_out(share, rows, lib, -(-SMALLEST_SHARE // self.unit))

    def scratch(self, loops: str, way: str, dtype: torch.dtype) -> int:
        """Numbers of scratch memory that the loop `LOOPS_WAY` needs, as far as the fields of numbers tell."""
        needed = getattr(load(dtype), f"{loops}_scratch")
        needed.restype, needed.argtypes = long, (ctypes.POINTER(type(self)), long)
        return needed(self, way == "backward")

    def _point(self, name: str, tensor: Tensor, dtype: torch.dtype) -> None:
        check_memory(name, tensor, INTEGERS.get(name, dtype.to_real() if name in self.real else dtype))
        readable = tensor.is_contiguous()
        if name in self.apart:
            numbers = 2 if tensor.is_complex() else 1
            setattr(self, f"{name}_time", numbers * tensor.stride(0))
            setattr(self, f"{name}_row", numbers * tensor.stride(1))
            readable = tensor.dim() < 3 or tensor.stride(-1) == 1 or tensor.shape[-1] == 1 or not tensor.numel()
        if not readable:
            raise ValueError(f"engine=native reads contiguous memory, which {name} is not: use engine=reference.")
        setattr(self, name, tensor.data_ptr())


class Scan(Struct):
    """The struct of the same name in scan.h."""

    real = frozenset(
        ("b", "beta", "late", "db", "dbeta", "K", "X", "S", "factors", "tables", "dfactors", "x", "U", "dx", "dU")
    )
    apart = frozenset(("dH", "x", "tokens"))
    _fields_ = (
        *((name, long) for name in ("T", "B", "N", "activation", "reset", "dH_time", "dH_row")),
        ("slope", ctypes.c_double),
        *((name, pointer) for name in ("h0", "P", "H", "K", "X", "b", "beta", "late")),
        ("weights", pointer * 2),
        *((name, pointer) for name in ("signs", "dH", "dZ", "G", "S", "db", "dbeta")),
        ("parameters", long),
        *((name, pointer) for name in ("plan", "factors", "tables", "dfactors")),
        *((name, long) for name in ("I", "x_time", "x_row", "tokens_time", "tokens_row")),
        *((name, pointer) for name in ("x", "U", "tokens", "dx", "dU")),
    )


@lru_cache
def load(dtype: torch.dtype) -> ctypes.CDLL:
    """The compiled loops for a dtype.

    Raises:
        CompileError: there is no compiler, or compiling or loading failed.
    """
    try:
        lib = ctypes.CDLL(str(library(SOURCE, f"REAL={REALS[dtype]}")))
    except OSError as error:
        raise CompileError(f"the compiled library could not be used: {error}") from error
    lib.worthwhile.restype, lib.worthwhile.argtypes = long, ()
    lib.packed_size.restype, lib.packed_size.argtypes = long, (long, long)
    lib.outer_scratch.restype, lib.outer_scratch.argtypes = long, (long,)
    lib.pack.restype, lib.pack.argtypes = None, (pointer, *(long,) * 4, pointer)
    lib.add_outer.restype = None
    lib.add_outer.argtypes = (pointer, long, pointer, *(long,) * 3, pointer, pointer, long, long)
    lib.long_product.restype = None
    lib.long_product.argtypes = (pointer, long, pointer, pointer, long, pointer, long, long)
    lib.prefer_large_pages.restype, lib.prefer_large_pages.argtypes = None, (pointer, long)
    lib.lanes.restype, lib.lanes.argtypes = long, ()
    lib.flush_denormals.restype, lib.flush_denormals.argtypes = long, ()
    lib.restore_denormals.restype, lib.restore_denormals.argtypes = None, (long,)
    return lib


@lru_cache
def missing(dtype: torch.dtype) -> str | None:
    """Why there are no compiled loops for a dtype; None when there are."""
    if dtype not in REALS:
        return f"there is none for {dtype}"
    try:
        load(dtype)
    except CompileError as error:
        return str(error)
    return None


def pack(W: Tensor) -> Tensor:
    """A matrix W (K, J) of any strides, packed in the order in which the loops for h W read it."""
    W = W.resolve_neg()  # a real part of a conjugate is negated lazily, which its memory does not show
    K, J = W.shape
    lib = load(W.dtype)
    packed = W.new_empty(lib.packed_size(K, J))
    lib.pack(W.data_ptr(), K, J, *W.stride(), packed.data_ptr())
    return packed


def call(
    name: str,
    like: Tensor,
    settings: dict[str, Any],
    weights: tuple[Tensor, ...],
    scratch: int = 0,
    unit: int = 1,
    **tensors: Tensor | None,
) -> None:
    """Run a loop over all rows of the batch.

    Args:
        name: such as `elman_forward`.
        like: a tensor (T, B, N), complex where the states are.
        settings: values for the number fields of `Scan`, by name.
        weights: packed matrices.
        scratch: how many numbers of scratch memory every thread needs.
        unit: rows that a thread gets together.
        **tensors: tensors for the pointer fields of `Scan`, by name.

    Raises:
        ValueError: C would misread one of them.
    """
    T, B, N = like.shape
    for key in ("b", "late"):
        vector = tensors.get(key)
        if vector is not None and vector.shape != (N,):
            raise ValueError(
                f"engine=native reads {N} numbers of a bias, and one has the shape {tuple(vector.shape)}: use "
                "engine=reference."
            )
    scan = Scan(T=T, B=B, N=N, **settings)
    scan.unit = unit
    for i, packed in enumerate(weights):
        check_memory(f"weight {i}", packed, like.dtype.to_real())
        scan.weights[i] = packed.data_ptr()
    scan.run(name, -(-B // unit), like, scratch, **tensors)


def long_product(x: Tensor, W: Tensor, bias: Tensor | None, out: Tensor) -> None:
    """Write x (R, K) @ W (K, J) + bias (J,) into `out` (R, J); made for many rows.

    Raises:
        ValueError: shapes or dtypes that do not fit each other.
    """
    (R, K), W, start = x.shape, W.resolve_neg(), None if bias is None else bias.resolve_neg().contiguous()
    if len(W) != K or (start is not None and start.shape != W.shape[1:]):
        shape = None if start is None else tuple(start.shape)
        raise ValueError(f"inputs {tuple(x.shape)}, a matrix {tuple(W.shape)} and a bias {shape} do not fit.")
    for name, tensor in (("the input", x), ("the matrix of inputs", W), ("the bias", start)):
        if tensor is not None:
            check_memory(name, tensor, x.dtype)
    packed, lib, first = pack(W), load(x.dtype), None if start is None else start.data_ptr()
    given = x.data_ptr(), K, first, packed.data_ptr(), W.shape[1], out.data_ptr()
    share_out(lambda *rows: lib.long_product(*given, *rows), R, lib)


def room(like: Tensor, width: int | None = None) -> Tensor:
    """An empty tensor of the shape of `like`, with `width` as its last size if given, in large pages where possible."""
    made = like.new_empty(like.shape if width is None else (*like.shape[:-1], width))
    load(like.dtype.to_real()).prefer_large_pages(made.data_ptr(), made.nbytes)
    return made


def lanes(dtype: torch.dtype) -> int:
    """Number of values that a vector register holds in the compiled loops."""
    return load(dtype).lanes()


def outer_room(N: int, dtype: torch.dtype) -> int:
    """Numbers of scratch memory that an outer product of rows of N numbers needs in C."""
    return load(dtype).outer_scratch(N)


def whole_vectors(count: int, dtype: torch.dtype) -> int:
    """The length of a row of `count` numbers in scratch memory, which is made of whole vectors: `whole` in rows.h."""
    return -(-count // lanes(dtype)) * lanes(dtype)


def check_memory(name: str, tensor: Tensor, dtype: torch.dtype) -> None:
    """Refuse a tensor that C would misread.

    Raises:
        ValueError: it is of another dtype, on another device than a CPU, or its memory holds other numbers.
    """
    if tensor.dtype != dtype or tensor.device.type != "cpu":
        raise ValueError(
            f"engine=native reads {dtype} on the CPU here, and {name} is {tensor.dtype} on {tensor.device}: a "
            "parametrization returns its matrix in the type of its parameters; or use engine=reference."
        )
    if tensor.is_neg() or tensor.is_conj():
        raise ValueError(
            f"engine=native reads memory, and {name} is a lazy conjugate or negative: use engine=reference."
        )


def weight_gradient(dZ: Tensor, H: Tensor, h0: Tensor) -> Tensor:
    """sum_t dz_t h_{t-1}^T, (M, N), for dZ (T, B, M) with any stride between rows, H (T, B, N) and h0 (B, N)."""
    dW = H.new_zeros(dZ.shape[-1], H.shape[-1])
    add_outer(dZ[:1], h0[None], dW)
    add_outer(dZ[1:], H, dW)
    return dW


def add_outer(D: Tensor, H: Tensor, out: Tensor) -> None:
    """Add to out (M, N) the sum over all rows d of D (T, B, M) of d h^T; h is the row of H in the same place.

    The rows of D, and those of H, are each at one distance.
    """
    (T, B, M), N = D.shape, H.shape[-1]
    lib, axis = load(H.dtype), 1 if B > 1 else 0  # the stride of an axis of length one may be anything
    rows = D.data_ptr(), D.stride(axis), H.data_ptr(), H.stride(axis), T * B, N, out.data_ptr()

    def share(first: int, last: int) -> None:
        scratch = H.new_empty(outer_room(N, H.dtype))
        lib.add_outer(*rows, scratch.data_ptr(), first, last)

    share_out(share, M, lib)


def share_out(work: Callable[[int, int], None], rows: int, lib: ctypes.CDLL, smallest: int = SMALLEST_SHARE) -> None:
    """Call `work(first, last)` for parts of the rows, on as many threads as torch uses, this one included.

    A thread gets `smallest` rows at least. Denormal numbers count as zero while `work` runs.
    """
    threads = max(min(torch.get_num_threads(), rows // smallest), 1)
    edges = [rows * i // threads for i in range(threads + 1)]

    def flushed(first: int, last: int) -> None:
        before = lib.flush_denormals()
        try:
            work(first, last)
        finally:
            lib.restore_denormals(before)

    others = [_helpers(threads - 1).submit(flushed, *share) for share in pairwise(edges[1:])]
    flushed(edges[0], edges[1])
    for other in others:
        other.result()


@lru_cache
def _helpers(count: int) -> ThreadPoolExecutor:
    """Threads that are kept: a new thread starts on the core of its creator and would be moved to another too late."""
    return ThreadPoolExecutor(count, "orthobench-scan")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_helpers.cache_clear)  # threads do not survive a fork


def readable(dH: Tensor | None) -> Tensor | None:
    """The gradient of the hidden states as `with_rows` gives it; None where there is none."""
    return None if dH is None else with_rows(dH)


def with_rows(tensor: Tensor) -> Tensor:
    """The tensor with contiguous rows, written out where it is conjugated or negated lazily."""
    tensor = tensor.resolve_conj().resolve_neg()
    return tensor if tensor.stride(-1) == 1 or tensor.shape[-1] == 1 else tensor.contiguous()
