"""Paired timing: the variants of a case take turns, so that other work on the machine slows all of them alike.

A ratio is the median over rounds of (baseline / variant) in the same round: above one, the variant is faster. On a CPU
the thread's own time is measured as well as wall time, because only it is fair on a machine that others use.
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

Work = Callable[[], object]
SHORTEST_MS = 5.0  # shorter work is repeated within one timing, after an untimed call that warms the caches


@dataclass(frozen=True)
class Row:
    """Variant of a case: times in milliseconds are medians over `rounds`; `value` holds any other number."""

    group: str
    case: str
    variant: str
    baseline: str = ""
    ratio: float | None = None
    wall_ratio: float | None = None
    spread: float | None = None
    cpu_ms: float | None = None
    wall_ms: float | None = None
    rounds: int = 0
    value: float | None = None
    unit: str = ""


@dataclass(frozen=True)
class Bench:
    """The device and the duration of the measurements.

    Attributes:
        device: cpu or cuda.
        seconds: about how long one case may take, warm-up included.
        least, most: bounds of the number of rounds.
        quick: whether to leave out the large sizes.
    """

    device: torch.device
    seconds: float
    least: int
    most: int
    quick: bool

    def compare(self, group: str, case: str, works: dict[str, Work]) -> list[Row]:
        """Time every variant against the first one."""
        start = time.perf_counter()
        repeats = {}
        for name, work in works.items():
            work()
            repeats[name] = max(round(SHORTEST_MS / max(self._time(work, 1)[1], 1e-3)), 1)
        rounds: list[dict[str, tuple[float, float]]] = []
        while len(rounds) < self.most and (
            len(rounds) < self.least or time.perf_counter() - start < self.seconds * (1 + 1 / (len(rounds) + 1))
        ):
            rounds.append({name: self._time(work, repeats[name]) for name, work in works.items()})
        baseline = next(iter(works))
        return [self._row(group, case, name, baseline, rounds) for name in works]

    def _time(self, work: Work, repeats: int) -> tuple[float, float]:
        """Milliseconds of one call, in thread time (wall time on a GPU) and in wall time."""
        if repeats > 1:
            work()
        self.wait()
        cpu, wall = time.thread_time(), time.perf_counter()
        for _ in range(repeats):
            work()
        self.wait()
        wall, cpu = time.perf_counter() - wall, time.thread_time() - cpu
        scale = 1000 / repeats
        return scale * (wall if self.device.type == "cuda" else cpu), scale * wall

    def wait(self) -> None:
        """Wait until a GPU has finished all work."""
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    @staticmethod
    def _row(group: str, case: str, name: str, baseline: str, rounds: list[dict[str, tuple[float, float]]]) -> Row:
        cpu = [r[baseline][0] / r[name][0] for r in rounds]
        wall = [r[baseline][1] / r[name][1] for r in rounds]
        quartiles = statistics.quantiles(cpu, n=4) if len(cpu) > 1 else [cpu[0]] * 3
        return Row(
            group,
            case,
            name,
            baseline,
            statistics.median(cpu),
            statistics.median(wall),
            quartiles[2] - quartiles[0],
            statistics.median(r[name][0] for r in rounds),
            statistics.median(r[name][1] for r in rounds),
            len(rounds),
        )
