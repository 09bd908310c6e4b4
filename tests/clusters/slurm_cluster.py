"""A real Slurm of one node with two processors on this machine, as root and without systemd.

    python -m tests.clusters.slurm_cluster FOLDER      starts it, and ends it when its standard input closes
    python -m tests.clusters.slurm_cluster --check     installs what it needs, or says why it cannot

Everything is in FOLDER: configuration, keys, logs and sockets; a Slurm of the machine's own is not touched.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.clusters.processes import descendants, free_port

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "scancel")
CONFIGURATION = """\
ClusterName=orthobench
SlurmctldHost={host}
SlurmctldPort={port}
SlurmdPort={node_port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,sched_min_interval=0,bf_interval=1
JobRequeue=1
ReturnToService=2
SlurmdTimeout=10
SlurmctldTimeout=10
KillWait=20
MinJobAge={age}
InactiveLimit=0
MaxJobCount={most}
MpiDefault=none
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 RealMemory=2000 State=UNKNOWN
PartitionName=low Nodes={host} Default=YES MaxTime=INFINITE State=UP PriorityTier=1 PreemptMode=REQUEUE GraceTime=15
PartitionName=high Nodes={host} MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=OFF
"""


def lacking() -> str | None:
    """Why there can be no Slurm here, in one sentence; None where there can."""
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        return f"{', '.join(missing)} not installed: apt-get install slurm-wlm munge"
    return None if os.geteuid() == 0 else "slurmd needs root"


class SlurmCluster:
    """The cluster's daemons.

    Args:
        folder: for all that they write; its path must be short, because it holds a socket.
        most: how many jobs Slurm holds, those that have ended among them.
        age: seconds for which it holds one that has ended.
    """

    def __init__(self, folder: Path, most: int = 10000, age: int = 300) -> None:
        self.folder, self.host = folder, socket.gethostname().partition(".")[0]
        self.daemons: dict[str, subprocess.Popen[bytes]] = {}
        for name in ("state", "spool"):
            (folder / name).mkdir(parents=True)
        self.configuration = folder / "slurm.conf"
        ports = {"port": free_port(), "node_port": free_port()}
        text = CONFIGURATION.format(host=self.host, folder=folder, most=most, age=age, **ports)
        self.configuration.write_text(text)
        self.environment = {**os.environ, "SLURM_CONF": str(self.configuration)}

    def start(self) -> None:
        """Start the daemons, and wait until the node is idle."""
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        self.folder.chmod(0o755)
        self._start(
            "munged", "--foreground", "--force", f"--key-file={key}", f"--socket={self.folder}/munge.socket",
            f"--pid-file={self.folder}/munged.pid", f"--log-file={self.folder}/munged.log",
            f"--seed-file={self.folder}/munged.seed",
        )  # fmt: skip
        _until((self.folder / "munge.socket").exists, "munged does not answer")
        self.start_controller()
        self.start_node()

    def start_controller(self) -> None:
        """Start slurmctld, and wait until it answers."""
        self._start("slurmctld", "-D", "-f", str(self.configuration))
        _until(lambda: self.ask("scontrol", "ping") is not None, "slurmctld does not answer")

    def start_node(self) -> None:
        """Start slurmd, and wait until its node can be used."""
        self._start("slurmd", "-D", "-f", str(self.configuration))
        _until(lambda: (self.ask("sinfo", "-h", "-o", "%T") or "").startswith(("idle", "mixed", "alloc")), "no node")

    def kill(self, name: str) -> None:
        """Kill a daemon."""
        daemon = self.daemons.pop(name)
        daemon.kill()
        daemon.wait()

    def kill_node(self) -> None:
        """Let the node die: slurmd, its step daemons, and all that they have started."""
        parents = {self.daemons["slurmd"].pid, *_step_daemons(self.folder)}
        doomed = descendants(parents)
        self.kill("slurmd")
        for pid in doomed:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue

    def ask(self, *words: str) -> str | None:
        """What one of Slurm's commands prints; None where it fails."""
        done = subprocess.run(words, env=self.environment, capture_output=True, text=True)
        return done.stdout if done.returncode == 0 else None

    def stop(self) -> None:
        """End all jobs and daemons."""
        if "slurmctld" in self.daemons:
            self.ask("scancel", "--user=root", "--signal=KILL", "--full")
            self.ask("scancel", "--user=root")
        doomed = descendants(_step_daemons(self.folder))
        for daemon in self.daemons.values():
            daemon.terminate()
        for daemon in self.daemons.values():
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        for pid in doomed:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.daemons = {}

    def _start(self, name: str, *words: str) -> None:
        program = shutil.which(name)
        assert program is not None
        with (self.folder / f"{name}.out").open("ab") as out:
            self.daemons[name] = subprocess.Popen(
                [program, *words], env=self.environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out
            )


def _step_daemons(folder: Path) -> set[int]:
    """The slurmstepd of this cluster, whose parent is not slurmd."""
    found = set()
    for path in Path("/proc").glob("[0-9]*"):
        try:
            ours = f"SLURM_CONF={folder}/slurm.conf".encode() in (path / "environ").read_bytes()
            if ours and (path / "comm").read_text().startswith("slurmstepd"):
                found.add(int(path.name))
        except OSError:
            continue
    return found


def _until(true: Callable[[], bool], otherwise: str) -> None:
    end = time.monotonic() + 60
    while not true():
        if time.monotonic() > end:
            raise TimeoutError(otherwise)
        time.sleep(0.2)


def _check() -> None:
    """Install what is lacking, where apt-get can, or end with the reason."""
    if lacking() and os.geteuid() == 0 and shutil.which("apt-get"):
        subprocess.run(
            ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "slurm-wlm", "munge"], check=False
        )
    reason = lacking()
    if reason:
        sys.exit(f"there can be no Slurm here: {reason}")


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        _check()
        sys.exit(0)
    cluster = SlurmCluster(Path(sys.argv[1]).absolute())
    try:
        cluster.start()
        sys.stdout.write(f"export SLURM_CONF={cluster.configuration}\n")
        sys.stdout.flush()
        sys.stdin.read()
    finally:
        cluster.stop()
