"""results/bench/costs.csv: what a step, an evaluation and the start of runs cost, by machine, model, size and length.

`orthobench plan` measures what it does not find here, for a second at most, and keeps it beside the runs; with
`--record` it keeps it in this file, from which `orthobench tables` states the price of what is not run.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf, isfinite, log
from pathlib import Path
from statistics import mean, median
from typing import TYPE_CHECKING

from orthobench.common.terminal import duration_text
from orthobench.config.files import version
from orthobench.config.settings import Settings
from orthobench.errors import ConfigError
from orthobench.recording.attempts import seconds_of
from orthobench.recording.files import read_rows, write_rows
from orthobench.study.costs.step_costs import digest
from orthobench.study.records import records
from orthobench.study.tables.composed import ComposedTable

if TYPE_CHECKING:
    from orthobench.tasks.base import Split, Task

MACHINE = ("device", "processor", "threads")
FURTHER = ("cores", "memory")  # what tells machines of one processor apart; earlier files lack it
CODE = "code"  # a digest of what runs a step; earlier files lack it, too
MADE = (*MACHINE, "torch", "version", "date", *FURTHER, CODE)
SPLITS: "tuple[Split, ...]" = ("train", "val", "test")
COUNTS = (*(f"{split}_batches" for split in SPLITS), "parameters", "peak_bytes")
SECONDS = ("step_s", "batch_s", "setup_s", "curve_batches")
HEADERS = ("shape", "T", "digest", "alike", "measured_T", *COUNTS, *SECONDS, *MADE)
START = "start of the program"
VALIDATION_S = 0.02  # a validation without its batches: diagnostics and a checkpoint
COMMON = 3  # costs that two machines have in common, from which the others are scaled
KEPT, MEASURED, SCALED = "kept", "measured", "scaled"


@dataclass(frozen=True)
class KeptCost:
    """Cost of runs of one model, size, task and length on one machine; of `START` the step is the whole
    start.

    Attributes:
        shape: the model, its size, the task, T and the batch, to be read by people.
        digest: of all settings that a step's cost may depend on; `alike` is that without the length.
        measured_T: the shorter length at which it was measured, and from which it was scaled; None where it was not.
            Half of the sequences of a batch count as half of the length.
        batches: those of a pass over each split, which may follow from the data.
        parameters: trainable numbers.
        peak_bytes: memory of a training step, by its structure.
        step_s: one training step, its batch included.
        batch_s: one batch of an evaluation.
        setup_s: data and model.
        curve_batches: the length curve, in such batches.
        made: MADE, where, with what and when it was measured; without FURTHER and CODE in earlier files.
    """

    shape: str
    T: int | None
    digest: str
    alike: str
    measured_T: int | None
    batches: "dict[Split, int]"
    parameters: int
    peak_bytes: int
    step_s: float
    batch_s: float
    setup_s: float
    curve_batches: float
    made: dict[str, str]

    @property
    def machine(self) -> tuple[str, ...]:
        """The kind of device, the processor's name and the number of threads; then FURTHER, where it is known."""
        return machine_of(self.made)


@dataclass(frozen=True)
class Cost:
    """Seconds and bytes of a run.

    Attributes:
        parameters: trainable numbers.
        steps: optimizer steps.
        step_s: one of them.
        evaluation_s: every validation, the tests at the end and the length curve.
        start_s: the program's start, data and model.
        peak_bytes: memory that a step needs.
        source: `kept`, `measured` or `scaled`.
    """

    parameters: int
    steps: int
    step_s: float
    evaluation_s: float
    start_s: float
    peak_bytes: int
    source: str = KEPT

    @property
    def total_s(self) -> float:
        """All of it."""
        return self.steps * self.step_s + self.evaluation_s + self.start_s

    def __str__(self) -> str:
        return (
            f"{self.parameters:,} parameters, {self.steps:,} steps x {1000 * self.step_s:.1f} ms, "
            f"evaluation {duration_text(self.evaluation_s)}, start {duration_text(self.start_s)} = "
            f"{duration_text(self.total_s)}, {self.peak_bytes / (1 << 20):,.0f} MiB, {self.source}"
        )


def machine_of(made: Mapping[str, str]) -> tuple[str, ...]:
    """The machine of a measurement, see `KeptCost.machine`."""
    return tuple(made[name] for name in (*MACHINE, *(FURTHER if made.get("cores") else ())))


def path_of(results: Path) -> Path:
    """Path of the costs that come with the records."""
    return results / "bench" / "costs.csv"


def digests(settings: Settings) -> tuple[str, str]:
    """The digest of what a step's cost may depend on, and that of the same without the length."""
    without = {name: value for name, value in settings.task.items() if name != "T"}
    return digest(settings), digest(replace(settings, task=without, task_made=None))


def read(path: Path) -> list[KeptCost]:
    """The costs in a file; none where there is none.

    Raises:
        StorageError: the file is not what `write` wrote.
    """
    return read_rows(path, _kept, "plan --record")


def write(path: Path, costs: Iterable[KeptCost]) -> None:
    """Write costs, sorted; of two of one thing and machine the last one stays."""
    known = {(one.digest, one.machine): one for one in costs}
    ordered = sorted(known.values(), key=lambda one: (one.shape, one.digest, one.machine))
    rows = ([_text(one, name) for name in HEADERS] for one in ordered)
    write_rows(path, HEADERS, rows)


def priced(settings: Settings, kept: KeptCost, start_s: float, source: str = KEPT, ratio: float = 1.0) -> Cost:
    """The cost of a run whose step is known.

    Args:
        settings: its settings.
        kept: what its steps and batches cost.
        start_s: the start of the program.
        source: where the knowledge is from.
        ratio: the time that this machine needs, in that of the one which it was measured on.
    """
    from orthobench.models.build import build_task
    from orthobench.tasks.drawn.varied import Varied
    from orthobench.tasks.duration import duration, limited

    step_s, batch_s = ratio * kept.step_s, ratio * kept.batch_s
    length = duration(settings.trainer, kept.batches["train"])
    within = _within(settings.trainer.get("max_time")) / step_s
    steps = int(min(length.steps or inf, max(within, length.least)))
    validations = -(-steps * length.accumulate // length.val_every)
    limits = settings.trainer.get("limit_val_batches"), settings.trainer.get("limit_test_batches")
    task = build_task(settings)
    longer = task.test_steps / task.length if isinstance(task, Varied) else 1.0
    batches = limited(kept.batches["val"], limits[0])
    batches += longer * limited(kept.batches["test"], limits[0]) if task.select_on_test else 0
    tests = longer * (1 if validations < 2 else 2) * limited(kept.batches["test"], limits[1]) + kept.curve_batches
    evaluation = validations * (VALIDATION_S + batches * batch_s) + tests * batch_s
    return Cost(kept.parameters, steps, step_s, evaluation, start_s + ratio * kept.setup_s, kept.peak_bytes, source)


def bounded_by_longer(known: Iterable[KeptCost], one: KeptCost) -> KeptCost:
    """A cost, at most that of every longer sequence that is otherwise the same: work is never measured too short."""
    bounds = [other for other in known if (other.alike, other.machine) == (one.alike, one.machine)]
    bounds = [other for other in bounds if one.T is not None and other.T is not None and other.T >= one.T]
    if not bounds:
        return one
    least = {part: min(getattr(other, part) for other in (one, *bounds)) for part in ("step_s", "batch_s")}
    return KeptCost(**{**vars(one), **least})


def at_length(
    known: Iterable[KeptCost], one: tuple[str, str], T: int | None, machine: tuple[str, ...]
) -> KeptCost | None:
    """A cost by that of the same run at the nearest other length, as time grows with it; None where there is none.

    Args:
        known: what is known.
        one: the digests of the run, see `digests`.
        T: its length.
        machine: the machine.
    """
    near = [other for other in known if (other.alike, other.machine) == (one[1], machine) and other.T]
    if T is None or not near:
        return None
    other = min(near, key=lambda found: abs(log(found.T / T)))  # type: ignore[operator]
    assert other.T is not None
    by = T / other.T
    times = {"step_s": by * other.step_s, "batch_s": by * other.batch_s, "peak_bytes": int(by * other.peak_bytes)}
    return replace(other, digest=one[0], T=T, measured_T=other.measured_T or other.T, **times)


def seen_from(known: Iterable[KeptCost], machine: tuple[str, ...]) -> list[KeptCost]:
    """The costs, of which those of a machine that is known by its processor alone count as those of one that has it."""
    known, further = list(known), dict(zip(FURTHER, machine[len(MACHINE) :], strict=False))
    own = {one.digest for one in known if one.machine == machine}
    found = []
    for one in known:
        alike = bool(further) and one.machine == machine[: len(MACHINE)]
        if not alike or one.digest not in own:
            found.append(replace(one, made=one.made | further) if alike else one)
    return found


def words_of(machine: tuple[str, ...]) -> str:
    """A machine in words, such as `AMD EPYC, 1 thread, 4 cores, 16 GiB`."""
    _, processor, threads, *further = machine
    numbers = zip((threads, *further), ("thread", "core", "GiB"), strict=False)
    told = [f"{number} {unit}{'s' * (number != '1' and unit != 'GiB')}" for number, unit in numbers if number]
    return ", ".join([processor, *told])


def ratio_of(known: Iterable[KeptCost], here: tuple[str, ...], there: tuple[str, ...]) -> float | None:
    """The time of a step on one machine, in that on another, by what was measured on both; None for too little."""
    steps: dict[str, dict[tuple[str, ...], float]] = {}
    for one in known:
        steps.setdefault(one.digest, {})[one.machine] = one.step_s
    pairs = [own[here] / own[there] for own in steps.values() if here in own and there in own]
    return median(pairs) if len(pairs) >= COMMON and here[0] == there[0] else None


def prices(results: Path) -> "Prices":
    """Prices of the rows of tables, by the costs that come with the records alone."""
    path = path_of(results)
    return _prices(path, version(path))


@lru_cache(maxsize=4)
def _prices(path: Path, version: tuple[int, ...]) -> "Prices":
    return Prices(read(path))


class Prices:
    """Prices of the rows of tables on the machine of which most is known.

    Args:
        known: what is known.
    """

    def __init__(self, known: Iterable[KeptCost]) -> None:
        known = list(known)
        machines = Counter(one.machine for one in known)
        for machine in machines:  # those of which the processor alone is known count for each that has it
            machines[machine] = sum(one.machine == machine for one in seen_from(known, machine))
        self.machine = max(machines, key=lambda one: (machines[one], one), default=None)
        seen = [] if self.machine is None else seen_from(known, self.machine)
        self._known: Mapping[str, KeptCost] = {one.digest: one for one in seen if one.machine == self.machine}

    @property
    def words(self) -> str:
        """A sentence about the machine that the prices are of; empty where nothing is known."""
        if self.machine is None:
            return ""
        _, processor, threads, *_ = self.machine
        return f"Core hours are those of one machine, {processor}, with {threads} thread{'s' * (threads != '1')} a run."

    def hours(self, composed: ComposedTable, row: str) -> float | None:
        """Core hours of a row with all its seeds, and all the rates that are tried; None where they are not known."""
        table = composed.table
        found = [self._seconds(composed, one) for one in table.trained([row])]
        known = [one for one in found if one is not None]
        return len(table.planned(composed.preset)) * sum(known) / 3600 if len(known) == len(found) else None

    def _seconds(self, composed: ComposedTable, row: str) -> float | None:
        try:
            settings = composed.settings(row)
        except ConfigError:
            return None
        kept, start = self._known.get(digest(settings)), self._known.get(START)
        return None if kept is None or start is None else priced(settings, kept, start.step_s).total_s


def spent(results: Path, names: Iterable[str]) -> str:
    """The core hours, and those of GPUs, that the recorded runs of some tables took, each counted once.

    A run that two tables have made each for itself counts twice; of one that moved all attempts count.
    """
    runs = {(line.run_id, line.values.get("finished")): line for name in names for line in records.read(results, name)}
    hours: dict[str, float] = {}
    for line in runs.values():
        alone = {str(line.values.get("device") or "cpu"): float(line.values.get("time/wall_s") or 0.0)}
        for device, seconds in (seconds_of(line.moved) if line.moved else alone).items():
            what = "core" if device == "cpu" else "GPU"
            hours[what] = hours.get(what, 0.0) + seconds
    return " and ".join(f"{hours_text(seconds / 3600)} {what} hours" for what, seconds in sorted(hours.items()))


def hours_text(hours: float) -> str:
    """Hours with two digits, such as `0.25`, `4.5` or `120`."""
    return f"{hours:,.0f}" if hours >= 10 else f"{hours:.2g}"


def curve_batches(task: "Task") -> float:
    """The length curve at the end of a run, in batches of an evaluation at the lengths of training."""
    from orthobench.tasks.lengths import Lengths

    if not isinstance(task, Lengths) or not task.eval_lengths:
        return 0.0
    twins = {length: task.at_length(length) for length in task.eval_lengths}
    own = mean(task.trained) or 1.0
    return sum((1 + len(twin.controls())) * twin.batches("test") * length / own for length, twin in twins.items())


def _within(max_time: str | None) -> float:
    """Seconds of a time limit, days:hours:minutes:seconds."""
    if max_time is None:
        return inf
    days, hours, minutes, seconds = map(int, max_time.split(":"))
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def _text(one: KeptCost, name: str) -> str:
    known = one.made | {f"{split}_batches": count for split, count in one.batches.items()}
    value = known[name] if name in known else getattr(one, name, None)
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def _kept(row: dict[str, str]) -> KeptCost:
    seconds = [float(row[name]) for name in SECONDS]
    if not all(isfinite(value) and value >= 0 for value in seconds) or not seconds[0]:
        raise ValueError(f"a number of {row['shape']} is no time")
    lengths = [int(row[name]) if row[name] else None for name in ("T", "measured_T")]
    *batches, parameters, peak = (int(row[name]) for name in COUNTS)
    named = dict(zip(SECONDS, seconds, strict=True))
    counts: dict[Split, int] = dict(zip(SPLITS, batches, strict=True))
    made = {name: row[name] for name in MADE if name not in (*FURTHER, CODE) or row.get(name)}
    return KeptCost(
        row["shape"], lengths[0], row["digest"], row["alike"], lengths[1], counts, parameters, peak, **named, made=made
    )
