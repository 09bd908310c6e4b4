"""The program on a system without what only POSIX has, as on Windows."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from orthobench.common import system
from tests.conftest import REPO

MODULES = ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog", "readline", "curses")
OF_OS = (
    "fork", "forkpty", "register_at_fork", "geteuid", "getuid", "getgid", "getegid", "getpgid", "setsid", "killpg",
    "sysconf", "getloadavg", "sched_getaffinity", "pidfd_open", "fchdir", "fchown", "chown", "mkfifo", "uname",
    "O_NOFOLLOW", "O_DIRECTORY", "O_NONBLOCK", "O_CLOEXEC", "O_ACCMODE", "O_PATH",
)  # fmt: skip
OF_SIGNAL = (
    "SIGKILL", "SIGUSR1", "SIGUSR2", "SIGHUP", "SIGALRM", "SIGCHLD", "SIGPIPE", "SIGQUIT", "SIGSTOP", "SIGCONT",
    "alarm", "pidfd_send_signal", "pthread_sigmask", "sigwait",
)  # fmt: skip
# Other packages are imported first: they have their own ways on Windows, which are not to be had here.
WITHOUT = f"""
import importlib, os, signal, subprocess, sys, threading
for name in ("torch", "torch.utils.data", "torch._dynamo", "lightning.pytorch", "hydra", "hydra.main", "omegaconf",
             "numpy", "scipy.stats", "pandas", "matplotlib.figure", "rich.live", "jinja2", "optuna"):
    importlib.import_module(name)
ours = [name for name in sys.modules if name.startswith("orthobench")]
assert not ours, ours
sys.modules.update(dict.fromkeys({MODULES}))
for module, names in ((os, {OF_OS}), (signal, {OF_SIGNAL})):
    for name in names:
        if hasattr(module, name):
            delattr(module, name)
os.supports_fd.discard(os.utime)
opened = os.open
def open_file(path, flags, *rest, **more):
    if os.path.isdir(path):
        raise PermissionError(13, "Permission denied", str(path))
    return opened(path, flags, *rest, **more)
os.open = open_file
"""
MAIN = "from orthobench.__main__ import main\nsys.exit(main())"
TINY = ("model=scornn", "task=copying", "T=5", "model.hidden_size=4", "task.val_size=4", "trainer.max_steps=2")


def run(folder: Path, code: str, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run Python code after WITHOUT, from another folder."""
    command = [sys.executable, "-c", WITHOUT + code, *words]
    env = {**os.environ, "PYTHONPATH": str(REPO), "PYTHONSAFEPATH": "1", "ORTHOBENCH_RUNS": str(folder / "runs")}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)


def test_a_run_without_posix_says_that_there_are_no_locks(tmp_path: Path) -> None:
    done = run(tmp_path, MAIN, *TINY)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(system.NO_LOCKS) == 1
    (record,) = tmp_path.glob("runs/copying-scornn-*/record.json")
    assert b"\r" not in record.read_bytes()


@pytest.mark.slow
def test_the_compiled_loops_are_refused_in_words_where_nobody_owns_a_file(tmp_path: Path) -> None:
    refused = run(tmp_path, MAIN, *TINY[:-1], "trainer.max_steps=3", "engine=native")
    assert refused.returncode == 2
    assert "it is built on Linux and macOS alone" in refused.stderr


@pytest.mark.slow
def test_doctor_says_what_the_system_has_not(tmp_path: Path) -> None:
    done = run(tmp_path, MAIN, "doctor")
    assert done.returncode == 0, done.stderr
    assert [line.split(": ")[0].split("no ")[1] for line in done.stdout.splitlines() if line.startswith("system ")] == [
        "locks", "forks", "figure of memory"
    ]  # fmt: skip
    assert system.lacking() == []  # of Linux


@pytest.mark.slow
def test_every_module_can_be_imported_without_posix(tmp_path: Path) -> None:
    names = [
        ".".join(path.relative_to(REPO).with_suffix("").parts).removesuffix(".__init__")
        for path in sorted((REPO / "orthobench").rglob("*.py"))
        if path.name != "__main__.py" and not re.search(r"triton|ray_|slurm|onnx", path.as_posix())
    ]
    assert len(names) > 100
    code = "for name in sys.argv[1:]: importlib.import_module(name)"
    done = run(tmp_path, code, *names)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_sweep_and_its_table_need_no_posix(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(WITHOUT)  # for each run's interpreter too
    env = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{REPO}", "PYTHONSAFEPATH": "1"}
    words = ["-m", *TINY, "seed=1,2", "hydra/launcher=local", "hydra.launcher.n_jobs=2"]
    command = [sys.executable, "-m", "orthobench", *words]
    swept = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert swept.returncode == 0, swept.stderr
    logs = [path.read_text() for path in (tmp_path / "runs" / ".launched").glob("*.log")]
    assert [log.count(system.NO_LOCKS) for log in logs] == [1, 1]
    assert all("engine=native is left out" in log for log in logs)
    compared = run(tmp_path, MAIN, "compare", "runs")
    assert compared.returncode == 0, compared.stderr
    assert "scornn" in compared.stdout
