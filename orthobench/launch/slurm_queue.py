"""Answers of Slurm's own commands about jobs, and how to end these."""

import shutil
import subprocess

from orthobench.common.terminal import complain
from orthobench.errors import ConfigError

PATIENCE_S = 60.0
AT_ONCE = 500  # jobs named on one command line
COMMANDS = ("sbatch", "srun", "squeue")  # that submit an array, begin its tasks and follow them


def check() -> None:
    """Refuse a machine that can submit nothing.

    Raises:
        ConfigError: it lacks a command of Slurm's.
    """
    for name in COMMANDS:
        if shutil.which(name) is None:
            raise _lacks(name)


def queued() -> dict[str, tuple[str, str]] | None:
    """The state and name of every queued, running or ending job of this user, tasks of arrays apart, by its id.

    None where Slurm does not answer, which says nothing about any job.
    """
    text = _ask("squeue", "--noheader", "--me", "--array", "--format=%i|%T|%j")
    if text is None:
        return None
    lines = [line.strip().split("|") for line in text.splitlines() if line.count("|") == 2]
    return {job: (state, name) for job, state, name in lines}


def state(job: str) -> str | None:
    """The state of a job that has ended not long ago, such as `CANCELLED`; None where Slurm has forgotten it."""
    text = _ask("scontrol", "--oneliner", "show", "job", job)
    words = [word for line in (text or "").splitlines()[:1] for word in line.split()]
    return next((word.partition("=")[2] for word in words if word.startswith("JobState=")), None)


def stop(jobs: list[str]) -> None:
    """Ask jobs to save their state and stop: what runs gets SIGUSR1, what waits is taken out of the queue."""
    for some in _parts(jobs):
        _ask("scancel", "--state=PENDING", *some)
        _ask("scancel", "--signal=USR1", *some)


def end(jobs: list[str]) -> None:
    """End jobs."""
    for some in _parts(jobs):
        _ask("scancel", *some)


def requeue(job: str) -> bool:
    """Put a job back into the queue; whether Slurm does."""
    return _ask("scontrol", "requeue", job) is not None


def _parts(jobs: list[str]) -> list[list[str]]:
    return [jobs[start : start + AT_ONCE] for start in range(0, len(jobs), AT_ONCE)]


def _ask(*words: str) -> str | None:
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S)
    except FileNotFoundError as error:
        raise _lacks(words[0]) from error
    except subprocess.TimeoutExpired:
        complain(f"orthobench: {words[0]} has not answered for {PATIENCE_S:.0f} s")
        return None
    return done.stdout if done.returncode == 0 else None


def _lacks(name: str) -> ConfigError:
    return ConfigError(f"{name} is not on this machine: the Slurm launcher needs a submitting host.")
