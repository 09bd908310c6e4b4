"""What a newcomer meets: an old Python, missing packages, and a system without what only POSIX has."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from orthobench.__main__ import main
from orthobench.common import packages, system
from tests.conftest import REPO

PROJECT = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def install() -> ModuleType:
    spec = importlib.util.spec_from_file_location("install", REPO / "scripts" / "install.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", "the disk is full"),
        ("WARNING: Retrying ... ProxyError('Cannot connect to proxy.', OSError(...))\n"
         "ERROR: No matching distribution found for torch>=2.11", "get through the proxy cache.example.org: set HTTPS"),
        ("Retrying ... NewConnectionError('...: Failed to establish a new connection: [Errno -2] Name or service not "
         "known')\nERROR: No matching distribution found for torch>=2.11", "the package index cannot be reached"),
        ("SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED]", "PIP_CERT=FILE"),
        ("ERROR: Could not find a version that satisfies the requirement torch>=2.11 (from versions: none)\n"
         "ERROR: No matching distribution found for torch>=2.11", "there is no wheel of torch for Python 3."),
        ("ERROR: No matching distribution found for torchtext==0.6.0", "there is no torchtext==0.6.0 for Python"),
        ("ERROR: Package 'orthobench' requires a different Python: 3.10.13 not in '>=3.11'", "needs Python 3.11"),
        ("error: command 'gcc' failed: No such file or directory", "needs a C compiler"),
        ("error: Microsoft Visual C++ 14.0 or greater is required.", "needs a C compiler"),
        ("unable to execute 'x86_64-linux-gnu-gcc': No such file or directory", "needs a C compiler"),
        ("error: externally-managed-environment", "python -m venv .venv"),
        ("ERROR: Could not install packages due to an OSError: [Errno 13] Permission denied", "python -m venv .venv"),
    ],
)  # fmt: skip
def test_a_failed_installation_is_one_sentence(
    output: str, sentence: str, install: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("https_proxy", "http://me:secret@cache.example.org:3128")
    found = install.cause(output)
    assert sentence in found
    assert "\n" not in found
    assert "secret" not in found


def test_an_unknown_failure_is_left_to_pip(install: ModuleType) -> None:
    assert install.cause("ERROR: something else") is None


OLD = [path for name in ("3.8", "3.9", "3.10") if (path := shutil.which(f"python{name}"))]


@pytest.mark.parametrize("words", [["-m", "orthobench", "doctor"], [str(REPO / "scripts" / "install.py")]])
@pytest.mark.skipif(not OLD, reason="there is no python3.8, python3.9 or python3.10 on the PATH")
def test_an_old_python_is_one_sentence(words: list[str]) -> None:
    for python in OLD:
        done = subprocess.run([python, "-B", *words], cwd=REPO, capture_output=True, text=True, check=False)
        if "pyenv" in done.stderr:  # a shim without a Python behind it
            continue
        assert done.returncode == 2
        assert "orthobench needs Python 3.11 or newer, and this is 3." in done.stderr
        assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("path", ["orthobench/__init__.py", "scripts/install.py"])
def test_an_old_python_can_read_the_file_that_refuses_it(path: str) -> None:
    import ast

    ast.parse((REPO / path).read_text(encoding="utf-8"), feature_version=(3, 7))


def test_every_package_and_every_extra_has_a_purpose() -> None:
    assert {packages.name_of(one) for one in PROJECT["dependencies"]} == set(packages.PURPOSES)
    assert set(PROJECT["optional-dependencies"]) == set(packages.EXTRAS)
    assert set(packages.CORE) <= set(packages.PURPOSES)
    assert packages.wanted() == {"": PROJECT["dependencies"], **PROJECT["optional-dependencies"]}


def test_an_installed_package_says_what_it_wants(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(packages, "__file__", str(tmp_path / "a" / "b" / "c.py"))
    listed = ["torch>=2.11", "optuna<6,>=4; extra == 'tune'", 'ray<3,>=2.40; python_version > "3" and extra == "ray"']
    monkeypatch.setattr(metadata, "requires", lambda name: listed)
    assert packages.wanted() == {"": ["torch>=2.11"], "tune": ["optuna<6,>=4"], "ray": ["ray<3,>=2.40"]}


def test_an_extra_is_installed_from_the_checkout_or_by_its_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(packages, "__file__", str(tmp_path / "my code" / "b" / "c" / "d.py"))
    assert packages.install("tune") == "pip install 'orthobench[tune]'"
    root = tmp_path / "my code"
    root.mkdir()
    (root / "pyproject.toml").write_text("")
    assert packages.install("tune") == f"pip install -c '{root}/constraints.txt' -e '{root}[tune]'"
    monkeypatch.chdir(root)
    assert packages.install("tune") == "pip install -c constraints.txt -e '.[tune]'"


@pytest.mark.parametrize(
    ("lacking", "code", "told"),
    [
        ("torch", 2, "package     torch is missing; it is for every run: python -m pip install 'torch>=2.11'"),
        ("rich", 0, "package     rich is missing; it is for the live table of sweep, tune and reproduce"),
        ("optuna", 0, "optional    tune, for tune: optuna is missing: " + packages.install("tune")),
    ],
)
def test_doctor_says_what_is_missing_for_what(
    lacking: str, code: int, told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    version = metadata.version

    def known(name: str) -> str:
        if name == lacking:
            raise metadata.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(metadata, "version", known)
    assert main(["doctor"]) == code
    out = capsys.readouterr().out
    assert told in out
    assert out.endswith("a run can start\n" if not code else f"a run cannot start: {lacking} is missing\n")


def test_doctor_names_a_proxy_without_its_password_and_a_disk_that_is_nearly_full(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("https_proxy", "http://me:secret@cache.example.org:3128")
    monkeypatch.setattr(shutil, "disk_usage", lambda place: SimpleNamespace(free=1 << 28))
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert "proxy       https through cache.example.org" in out
    assert "secret" not in out
    assert "0.2 GiB free, which is little: set runs_root=" in out
    assert "compiler    none: engine=native cannot be built" in out


def test_a_package_that_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "version", lambda name: "1.26.4")
    assert packages.trouble("numpy>=2.0") == "1.26.4 is not >=2.0"
    assert packages.trouble("numpy>=1.0") == ""


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("torch", "torch, which is needed for every run, is not installed in this Python"),
        ("hydra.core", "python -m pip install 'hydra-core>=1.3.8,<1.4'"),
        ("optuna.samplers", packages.install("tune")),
        ("jaxlib", "jaxlib is not installed in this Python"),
        ("orthobench.nothing", None),
    ],
)
def test_a_module_that_is_not_found(name: str, sentence: str | None) -> None:
    found = packages.not_found(ModuleNotFoundError(name=name))
    assert found is None if sentence is None else found is not None and sentence in found


def test_a_run_without_torch_is_one_sentence(tmp_path: Path) -> None:
    code = "import sys; sys.modules['torch'] = None\nfrom orthobench.__main__ import main\nsys.exit(main(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", code, "model=rnn", "task=adding", f"runs_root={tmp_path}"],
        capture_output=True, text=True, check=False, env=os.environ | {"PYTHONPATH": str(REPO)},
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("orthobench: torch, which is needed for every run, is not installed")
    assert len(done.stderr.splitlines()) == 1


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
