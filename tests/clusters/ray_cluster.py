"""A real Ray cluster on this machine: a head without processors and two worker nodes of one each.

python -m tests.clusters.ray_cluster FOLDER      starts it, and ends it when its standard input closes
"""

import os
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

from tests.clusters.processes import descendants, free_port

STORE = 100 << 20  # bytes; Ray's least is 75 MiB


def lacking() -> str | None:
    """Why there can be no Ray here, in one sentence; None where there can."""
    return None if find_spec("ray") else "ray is not installed: pip install 'orthobench[ray]'"


class RayCluster:
    """Three raylets, each in a session of its own.

    Args:
        folder: for what they write; its path must be short, because it holds sockets.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.nodes: dict[str, subprocess.Popen[bytes]] = {}
        settings = {"RAY_worker_niceness": "0", "RAY_USAGE_STATS_ENABLED": "0", "RAY_DISABLE_IMPORT_WARNING": "1"}
        faults = {"RAY_health_check_period_ms": "1000", "RAY_health_check_failure_threshold": "3"}
        self.environment = {**os.environ, **settings, **faults}
        self.environment.pop("RAY_ADDRESS", None)

    def start(self, workers: int = 2) -> None:
        """Start the head and the workers, and wait until all of them are there."""
        self.folder.mkdir(parents=True, exist_ok=True)
        head = ("--head", f"--port={self.port}", "--num-cpus=0", "--include-dashboard=false")
        self._start("head", *head, f"--temp-dir={self.folder}/ray")
        for number in range(1, workers + 1):
            self.start_worker(f"worker{number}")

    def start_worker(self, name: str) -> None:
        """Start a worker node of one processor."""
        self._start(name, f"--address={self.address}", "--num-cpus=1")

    def kill(self, name: str) -> None:
        """Let a node die: its raylet and all that this has started, at once."""
        node = self.nodes.pop(name)
        for pid in sorted(descendants({node.pid}) | _grand_children(node.pid)):
            _kill(pid)
        node.wait()

    def kill_raylet(self, name: str) -> None:
        """Kill a node's raylet alone, with SIGKILL."""
        pids = descendants({self.nodes[name].pid})
        for pid in pids:
            try:
                if (Path("/proc") / str(pid) / "comm").read_text().startswith("raylet"):
                    _kill(pid)
            except OSError:
                continue

    def stop(self) -> None:
        """End all nodes."""
        doomed = descendants({node.pid for node in self.nodes.values()})
        for node in self.nodes.values():
            node.terminate()
        end = time.monotonic() + 10
        for node in self.nodes.values():
            try:
                node.wait(max(end - time.monotonic(), 0.1))
            except subprocess.TimeoutExpired:
                node.kill()
                node.wait()
        for pid in doomed:
            _kill(pid)
        self.nodes = {}

    def _start(self, name: str, *words: str) -> None:
        ray = Path(sys.executable).parent / "ray"
        with (self.folder / f"{name}.out").open("ab") as out:
            self.nodes[name] = subprocess.Popen(
                [str(ray), "start", "--block", f"--object-store-memory={STORE}", *words],
                env=self.environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
            )  # fmt: skip
        end = time.monotonic() + 120
        while "Ray runtime started" not in (self.folder / f"{name}.out").read_text():
            if self.nodes[name].poll() is not None or time.monotonic() > end:
                raise TimeoutError(f"ray start failed, see {self.folder / name}.out")
            time.sleep(0.2)


def _grand_children(pid: int) -> set[int]:
    """Processes of the node's session, whose parents may have gone."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(path.read_text().rpartition(")")[2].split()[3]) == pid:
                found.add(int(path.parent.name))
        except OSError:
            continue
    return found


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


if __name__ == "__main__":
    cluster = RayCluster(Path(sys.argv[1]).absolute())
    try:
        cluster.start()
        sys.stdout.write(f"export RAY_ADDRESS={cluster.address}\n")
        sys.stdout.flush()
        sys.stdin.read()
    finally:
        cluster.stop()
