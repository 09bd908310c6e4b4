import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

REPO = Path(__file__).resolve().parents[2]
LONG = bool(os.environ.get("LONG"))
Count = Callable[..., None]


class Server:
    """Starts runs by forking, see server.py."""

    def __init__(self) -> None:
        env = {
            **os.environ,
            "PYTHONPATH": str(REPO),
            "OMP_NUM_THREADS": "1",
            "ORTHOBENCH_PLUGINS": "tests.faults.plugin",
        }
        for name in ("ORTHOBENCH_RUNS", "WANDB_API_KEY", "WANDB_MODE"):
            env.pop(name, None)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=env,
            cwd=REPO,
        )
        assert self._read() == "ready"

    def ask(self, order: dict[str, Any]) -> Any:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(order).encode() + b"\n")
        self.process.stdin.flush()
        return self._read()

    def _read(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline() or "null")

    def spawn(self, home: Path, *words: str, **order: Any) -> "Child":
        """Start a command whose working folder and runs are in `home`."""
        home.mkdir(parents=True, exist_ok=True)
        output = home / "output.txt"
        if any(word in ("task=small_text", "task=failing") for word in words):
            words = (*words, "--config-dir", str(REPO / "tests" / "faults" / "conf"))
        env = {"ORTHOBENCH_RUNS": str(home / "runs"), **order.pop("env", {})}
        order = {"words": list(words), "cwd": str(home), "output": str(output), "env": env, **order}
        return Child(self, self.ask({"spawn": order}), output)

    def run(self, home: Path, *words: str, **order: Any) -> int:
        """Run a command to its end; its exit code, negative for a signal."""
        child = self.spawn(home, *words, **order)
        code = child.wait()
        assert code is not None, "it hangs: " + child.output.read_text()[-2000:]
        return code

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


class Child:
    def __init__(self, server: Server, pid: int, output: Path) -> None:
        self.server, self.pid, self.output = server, pid, output

    def wait(self, timeout: float = 120) -> int | None:
        code = self.server.ask({"wait": self.pid, "timeout": timeout})
        if code is None:
            self.kill()
        return code

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """One for the whole session."""
    server = Server()
    yield server
    server.close()


@pytest.fixture
def count(record_property: Callable[[str, object], None]) -> Count:
    """Adds to a figure that is printed at the end."""

    def add(name: str, number: float = 1) -> None:
        record_property(f"figure {name}", number)

    return add


def pytest_terminal_summary(terminalreporter: Any) -> None:
    figures: Counter[str] = Counter()
    for report in terminalreporter.stats.get("passed", []):
        for name, number in report.user_properties:
            if name.startswith("figure "):
                if "seconds" in name or "of a run" in name:
                    figures[name] = max(figures[name], number)
                else:
                    figures[name] += number
    if figures:
        terminalreporter.section("figures")
        for name, number in sorted(figures.items()):
            terminalreporter.write_line(f"{name.removeprefix('figure ')}: {number:,.4g}" if isinstance(number, float)
                                        else f"{name.removeprefix('figure ')}: {number:,}")  # fmt: skip
