"""What a launcher costs for each run, on this machine's own Slurm and Ray of two processors.

    python -m tests.clusters.cost [LAUNCHER...]

The commands import what a run imports and then sleep for 1 s or 20 s, so that they need no processor meanwhile; the
overhead is the wall time of a processor slot for each command, less its sleep. On a machine that does other work, too,
it is an upper bound.
"""

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from orthobench.launch.processes import Job, Pool
from orthobench.launch.workers import Command, Launcher

SLOTS = 2
JOBS = {1: 24, 20: 6}


class Sleeping(Job):
    """A job that sleeps."""

    def command(self) -> Command:
        seconds = self.folders[0].name.partition("-")[0]
        return Command("tests.clusters.sleeper", [seconds], self.log, self.folders[0].name, fork=True)


@contextmanager
def place(name: str, folder: Path) -> Iterator[Launcher | None]:
    """A launcher, with its cluster."""
    from orthobench.study.launcher import launcher_of

    if name == "slurm":
        from tests.clusters.slurm_cluster import SlurmCluster

        slurm = SlurmCluster(folder / "c")
        slurm.start()
        os.environ["SLURM_CONF"] = slurm.environment["SLURM_CONF"]
        try:
            yield launcher_of("slurm", ["hydra.launcher.poll_s=1", "hydra.launcher.partition=low"], folder)
        finally:
            slurm.stop()
    elif name == "ray":
        from tests.clusters.ray_cluster import RayCluster

        ray = RayCluster(folder)
        try:
            ray.start()
            yield launcher_of("ray", [f"hydra.launcher.address={ray.address}"], folder)
        finally:
            ray.stop()
    else:
        yield launcher_of(name, ["hydra.launcher.n_jobs=2"], folder)


def measure(launcher: Launcher | None, seconds: int, count: int, folder: Path) -> tuple[float, float]:
    """Wall time of `count` commands and the processor time of this process, in seconds."""
    runs = [Sleeping([folder / f"{seconds}-{i}"], folder / f"{i}.log") for i in range(count)]
    pool = Pool(max(launcher.at_once if launcher else SLOTS, SLOTS), lambda: False, place=launcher)
    begun, own = time.monotonic(), time.process_time()
    codes = [code for some in pool.run(list(runs)) for _, code in some]
    assert codes == [0] * count, codes
    return time.monotonic() - begun, time.process_time() - own


def report(name: str, home: Path) -> None:
    """Measure one launcher, and write a line for each length of its commands."""
    with place(name, home) as launcher:
        measure(launcher, 0, SLOTS, home)  # what is started once
        for seconds, count in JOBS.items():
            wall, own = measure(launcher, seconds, count, home)
            each, hourly = SLOTS * wall / count - seconds, 3600 * count / wall
            sys.stdout.write(
                f"{name} {seconds} s: {hourly:.0f} runs/h, {each:.2f} s overhead each, "
                f"driver {own / count:.3f} s of CPU each, load {os.getloadavg()[0]:.1f}\n"
            )
            sys.stdout.flush()


if __name__ == "__main__":
    for name in sys.argv[1:] or ["local", "slurm", "ray"]:
        with tempfile.TemporaryDirectory(prefix="cost-", dir="/tmp", ignore_cleanup_errors=True) as home:
            report(name, Path(home))
