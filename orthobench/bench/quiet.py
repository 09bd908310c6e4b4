"""Check that no other process used the CPU during a measurement."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from orthobench.errors import ConfigError, Stopped

STAT = Path("/proc/stat")
BUSY = ("user", "nice", "system", "irq", "softirq", "steal")
FIELDS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
OTHERS, OWN = 0.1, 0.95  # of a core: the most that others may have, and the least that a program of one thread needs
TICKS = 3  # of the kernel's clock, by which a count may be off


@dataclass(frozen=True)
class Load:
    """Load of the cores that this program may use in some time.

    Attributes:
        wall_s: how long it was.
        others_s: core seconds of other programs.
        own_s: core seconds of this one.
    """

    wall_s: float
    others_s: float
    own_s: float

    @property
    def others(self) -> float:
        """The cores that other programs had, 0.5 being half of one; what the kernel's clock cannot tell is none."""
        return max(self.others_s - TICKS / _ticks(), 0.0) / self.wall_s

    @property
    def problem(self) -> str | None:
        """Why a time measured meanwhile is not that of a quiet machine; None where it is."""
        if self.others > OTHERS:
            return f"other programs had {self.others:.0%} of a core, and {OTHERS:.0%} is allowed"
        own = (self.own_s + TICKS / _ticks()) / self.wall_s
        return None if own >= OWN else f"this program got {own:.0%} of a core, and needs {OWN:.0%}"


def watched(work: Callable[[], object]) -> Load:
    """Do the work, and see who had the cores meanwhile.

    Raises:
        ConfigError: the system does not tell.
    """
    busy, own, wall = busy_s(), time.process_time(), time.perf_counter()
    work()
    wall, own = time.perf_counter() - wall, time.process_time() - own
    return Load(wall, max(busy_s() - busy - own, 0.0), own)


def refuse_if_busy(seconds: float = 1.0) -> None:
    """Look for a moment at what other programs do, before any work.

    Raises:
        ConfigError: the system does not tell.
        Stopped: they keep a core busy.
    """
    others = watched(lambda: time.sleep(seconds)).others
    if others > OTHERS:
        raise Stopped(
            f"this machine is not quiet: other programs have {others:.0%} of a core, and {OTHERS:.0%} is allowed; "
            "nothing was measured, and the same command resumes when nothing else runs."
        )


def busy_s() -> float:
    """Core seconds of all programs since the start of the system, on the cores that this program may use.

    Raises:
        ConfigError: the system does not tell.
    """
    try:
        lines = [line.split() for line in STAT.read_text().splitlines()]
        cores = {f"cpu{number}" for number in os.sched_getaffinity(0)}
        counts = [dict(zip(FIELDS, map(int, numbers), strict=False)) for name, *numbers in lines if name in cores]
        assert counts
    except (OSError, ValueError, AttributeError, AssertionError) as error:
        raise ConfigError(
            f"bench --record needs Linux, whose {STAT} tells what other programs do; here it cannot be told."
        ) from error
    return sum(count.get(name, 0) for count in counts for name in BUSY) / _ticks()


def _ticks() -> int:
    return os.sysconf("SC_CLK_TCK")
