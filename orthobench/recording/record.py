"""Parts of record.json: the code, environment, hardware and memory of a run."""

import os
import platform
import subprocess
import sys
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orthobench.common.version import __version__
from orthobench.recording.code_name import code_name

if TYPE_CHECKING:
    import torch

PACKAGES = ("orthobench", "torch", "lightning", "hydra-core", "omegaconf", "numpy")

OF_A_HOOK = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR")  # set by git, and of another repository


@lru_cache(maxsize=1)
def code() -> dict[str, Any]:
    """The version, the checkout's commit, and whether files other than results differ from it.

    Outside a checkout, as in a wheel, the last two are null, and so is what git does not tell.
    """
    here = Path(__file__).resolve().parents[2]
    around = {name: value for name, value in os.environ.items() if name not in OF_A_HOOK}

    def git(*words: str) -> str | None:
        asked = ["git", "--no-optional-locks", "-C", str(here), *words]  # a lock would be in the way of a commit
        try:
            done = subprocess.run(asked, capture_output=True, text=True, timeout=10, env=around)
        except (OSError, subprocess.SubprocessError):
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    if not (here / ".git").exists():
        return {"version": __version__, "git": None, "dirty": None, "reason": "not run from a checkout"}
    commit, changed = git("rev-parse", "HEAD"), git("status", "--porcelain", "-uno", ":(exclude)results")
    told = {} if commit else {"reason": "git does not tell the commit of the checkout"}
    return {"version": __version__, "git": commit, "dirty": None if changed is None else bool(changed), **told}


def other_code(record: dict[str, Any]) -> str | None:
    """The code that made a record, in words, where it is not this one; of changed files nobody knows."""
    made, own = dict(record.get("code") or {}), code()
    made.setdefault("version", (record.get("env") or {}).get("orthobench"))
    same = made.get("git") == own["git"] and (own["git"] or made["version"] == own["version"])
    return None if same and not made.get("dirty") else code_name(made)


def environment() -> dict[str, Any]:
    """Versions of Python and of the packages that decide the numbers."""
    import torch

    versions: dict[str, Any] = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = None
    return {**versions, "platform": sys.platform, "threads": torch.get_num_threads()}


def hardware(device: "torch.device") -> dict[str, Any]:
    """The type of the device, and the names of the processor and of the GPU, which is null on a CPU."""
    import torch

    cpu = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        cpu = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    gpu = torch.cuda.get_device_name(device) if device.type == "cuda" else None
    return {"device": device.type, "cpu": cpu, "gpu": gpu}


def peak_bytes(device: "torch.device") -> int | None:
    """Peak memory of this process in bytes: of tensors on a GPU, of everything on a CPU; None where it is unknown.

    It is not `ru_maxrss`, which a child process inherits from its parent.
    """
    if device.type == "cuda":
        import torch

        return torch.cuda.max_memory_allocated(device)
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), None)
