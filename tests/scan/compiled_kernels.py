"""What kernels compile to, without a GPU: `echo 90 lstm 64 | python -m tests.scan.compiled_kernels`.

For every line ARCH FAMILY N [KEY=VALUE...] that it reads it prints a JSON object with registers, stack bytes and
shared memory of the forward and the backward kernel, or the error. It is a process of its own, because kernels that
were imported for the interpreter cannot be compiled, and one for many lines, because most of the time is its start.
"""

import json
import re
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from orthobench.scan.triton import diagonal, matrix_state
from orthobench.scan.triton.launch import kernel, layout

OWN = {
    "ACTIVATION": "modrelu",
    "SLOPE": 0.1,
    "GATED": False,
    "RESET": "after",
    "LATE": True,
    "KEPT": True,
    "EPSILON": 1e-5,
    "OUTSIDE": True,
    "COMPLEX": False,
    "STEADY": False,
}
MATRICES = {"elman": 1, "gru": 3, "lstm": 4, "complex_elman": 2}
CUOBJDUMP = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"


def usage(kernel: Any, arch: int, sizes: dict[str, Any], own: dict[str, Any]) -> dict[str, int]:
    """Registers per thread, bytes of stack per thread, and bytes of shared memory of one kernel."""
    options = {key: sizes[key] for key in ("num_warps", "num_stages")}
    constants = {key: value for key, value in {**sizes, **own}.items() if key in kernel.arg_names}
    integers = [p.name for p in kernel.params if p.do_not_specialize]
    kinds = {**dict.fromkeys(integers, "i32"), **dict.fromkeys(constants, "constexpr")}
    signature = {key: kinds.get(key, "*fp32") for key in kernel.arg_names}
    aligned = {  # what Triton assumes of a fresh tensor's address, as it would for a launch
        (p.num,): [["tt.divisibility", 16]]
        for p in kernel.params
        if signature[p.name] == "*fp32" and not p.do_not_specialize_on_alignment
    }
    source = ASTSource(kernel, signature, constexprs=constants, attrs=aligned)
    compiled = triton.compile(source, target=GPUTarget("cuda", arch, 32), options=options)
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(compiled.asm["cubin"])
        file.flush()
        said = subprocess.run([CUOBJDUMP, "--dump-resource-usage", file.name], capture_output=True, text=True).stdout
    found = {key: re.search(rf"{key}:(\d+)", said) for key in ("REG", "STACK")}
    registers, stack = (int(match[1]) for match in found.values() if match)
    return {"registers": registers, "stack": stack, "shared": compiled.metadata.shared}


def measured(arch: str, family: str, n: str, *settings: str) -> dict[str, dict[str, int]]:
    """What the kernels of a family use."""
    own = {**OWN, **{key: json.loads(value) for key, value in (setting.split("=") for setting in settings)}}
    if family == "diagonal":
        kernels = {"forward": diagonal.diagonal_forward, "backward": diagonal.diagonal_backward}
        sizes = {way: {"N": int(n), **diagonal.layout(way, own["COMPLEX"])} for way in kernels}
        return {way: usage(kernel, int(arch), sizes[way], own) for way, kernel in kernels.items()}
    if family == "matrix":
        sizes = matrix_state.shape(int(n), int(n), own.pop("CHANNELS", False), own.pop("ERASE", True))
        found = {}
        for way in ("prepare", "forward", "backward", "gradients"):
            options = {**sizes, "num_warps": matrix_state.warps(way, int(n))}
            found[way] = usage(matrix_state.KERNELS[way], int(arch), options, own)
        return found
    sizes = layout(int(n), MATRICES[family])
    return {way: usage(kernel(f"{family}_{way}"), int(arch), sizes, own) for way in ("forward", "backward")}


def main() -> None:
    """Answer every line of the standard input with one."""
    for line in sys.stdin:
        try:
            answer: Any = measured(*line.split())
        except Exception:  # whatever the compiler raises, the test that asked tells it
            answer = {"error": traceback.format_exc()}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
