"""results/bench/steps.csv: seconds of a training step of the rows whose cost is compared, each a line.

`orthobench bench --record` writes it on a machine that does nothing else; claims about seconds and the fair tables read
it, as `bench/s_per_step`, `bench/minutes_per_epoch` and `bench/matrix_share`. The rows of one group (those of a table's
claims, or the models of one case of a fair table) take turns, so that round k of one row and of another are a pair.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from math import isfinite
from pathlib import Path
from statistics import median, quantiles

from orthobench.config.files import version
from orthobench.config.settings import Settings
from orthobench.errors import ConfigError, StorageError
from orthobench.recording.code_name import code_name
from orthobench.recording.files import read_rows, within, write_rows
from orthobench.study.records.records import Line
from orthobench.study.tables.composed import ComposedTable
from orthobench.study.tables.table import FULL

MADE = ("device", "cpu", "threads", "torch", "git", "dirty", "version", "date")
SAME = ("device", "cpu", "threads", "torch", "git", "dirty", "version")  # what all rounds of a group have in common
MACHINE = SAME[:3]
HEADERS = ("table", "row", "shape", "digest", "epoch_steps", "seconds", "matrix_seconds", "others", *MADE)
LEAST = 5  # rounds of a fair table, which are no pairs of a test
OF_A_STEP = ("precision", "accumulate_grad_batches", "gradient_clip_val", "gradient_clip_algorithm")
FREE = ("lr", "lr_recurrent")  # of an optimizer: they cost nothing
Place = tuple[str, str]  # table and row
FASTER = 1.3  # times as long at least; two measurements of the same program differ by as much


@dataclass(frozen=True)
class StepCost:
    """Cost of a training step of one row: forward, backward, clipping and the optimizer, on a batch that is
    ready.

    Attributes:
        shape: the model, its size, the task, T, the batch and the engine, to be read by people.
        digest: of all settings that a step's cost may depend on.
        epoch_steps: optimizer steps of an epoch.
        seconds: of one step, round by round.
        matrix_seconds: of building the constrained matrices, with their backward pass; empty where there are none.
        others: the largest share of a core that other programs had in any of the rounds.
        made: MADE, where and with what it was measured.
    """

    table: str
    row: str
    shape: str
    digest: str
    epoch_steps: int
    seconds: tuple[float, ...] = ()
    matrix_seconds: tuple[float, ...] = ()
    others: float = 0.0
    made: dict[str, str] = field(default_factory=dict)

    @property
    def engine(self) -> str:
        """Engine that computed the steps, such as `native`, or several with commas; empty where that is not known."""
        return self.shape.partition("engine=")[2]

    @property
    def s_per_step(self) -> float:
        """The median over the rounds."""
        return median(self.seconds)

    @property
    def spread(self) -> float:
        """Half of the distance between the quartiles of the rounds, in seconds; 0 for one round."""
        if len(self.seconds) < 2:
            return 0.0
        low, _, high = quantiles(self.seconds, n=4, method="inclusive")
        return (high - low) / 2

    @property
    def matrix_share(self) -> float | None:
        """The median share of a step that building the matrices takes; None where there are none."""
        return median(m / s for m, s in self._both) if self.matrix_seconds else None

    @property
    def words(self) -> str:
        """On what, with what, and when it was measured."""
        made = {name: value or None for name, value in self.made.items()} | {"dirty": self.made.get("dirty") == "True"}
        threads = f"{self.made.get('threads')} thread{'s' * (self.made.get('threads') != '1')}"
        return (
            f"{self.made.get('cpu')}, {threads}, torch {self.made.get('torch')}, {code_name(made)}, "
            f"{self.made.get('date')}"
        )

    def lines(self) -> list[Line]:
        """Lines for the rounds, as claims read the lines of seeds."""
        return [
            Line({"cell": self.row, "seed": number, "status": "done", "run_id": ""} | values)
            for number, values in enumerate(self._rounds(), start=1)
        ]

    def _rounds(self) -> Iterable[dict[str, float]]:
        shares = [{"bench/matrix_share": m / s} for m, s in self._both] or [{}] * len(self.seconds)
        for seconds, share in zip(self.seconds, shares, strict=True):
            yield {
                "bench/s_per_step": seconds,
                "bench/minutes_per_epoch": seconds * self.epoch_steps / 60,
                **share,
            }

    @property
    def _both(self) -> list[tuple[float, float]]:
        return list(zip(self.matrix_seconds, self.seconds, strict=True)) if self.matrix_seconds else []


def on_one_machine(costs: Iterable[StepCost]) -> bool:
    """True where all were measured on the same kind of machine, without which they cannot be compared."""
    return len({tuple(cost.made.get(name) for name in MACHINE) for cost in costs}) < 2


def clearly_less(one: StepCost, other: StepCost) -> bool:
    """True where a step takes less than another by `FASTER` and by the spreads of both, on one machine."""
    return on_one_machine((one, other)) and FASTER * (one.s_per_step + one.spread) <= other.s_per_step - other.spread


def path_of(results: Path) -> Path:
    """Path of the costs."""
    return within(results, "bench/steps.csv")


def digest(settings: Settings) -> str:
    """Digest of what a step's cost may depend on: the model, the task, the optimizer, clipping, precision
    and engine.

    Neither of rates nor of the seed.
    """
    found = settings.identity
    optimizer = {name: value for name, value in found["optimizer"].items() if name not in FREE}
    trainer = {name: found["trainer"].get(name) for name in OF_A_STEP}
    shown = [found["model"], found["task"], optimizer, trainer, settings.run["engine"]]
    return hashlib.sha256(json.dumps(shown, sort_keys=True, default=str).encode()).hexdigest()[:16]


def read(results: Path) -> dict[Place, StepCost]:
    """Every cost that is recorded; none where nothing was measured.

    Raises:
        StorageError: the file is not what `write` wrote.
    """
    path = path_of(results)
    return dict(_kept(path, version(path)))


@lru_cache(maxsize=8)
def _kept(path: Path, version: tuple[int, ...]) -> dict[Place, StepCost]:
    """The costs in a file, which are read once for each `version` of it."""
    found = read_rows(path, _cost, "bench --record")
    costs = {(cost.table, cost.row): cost for cost in found}
    if len(costs) < len(found):
        raise StorageError(f"{path} has two lines of one row of a table; delete one of them.")
    return costs


def write(results: Path, costs: Iterable[StepCost]) -> None:
    """Write the costs, sorted by table and row."""
    rows = (
        [
            *(cost.table, cost.row, cost.shape, cost.digest, cost.epoch_steps),
            *(" ".join(f"{value:.6g}" for value in values) for values in (cost.seconds, cost.matrix_seconds)),
            f"{cost.others:.3f}",
            *(cost.made.get(name, "") for name in MADE),
        ]
        for cost in sorted(costs, key=lambda one: (one.table, one.row))
    )
    write_rows(path_of(results), HEADERS, rows)


def current(composed: ComposedTable, known: dict[Place, StepCost]) -> tuple[dict[str, StepCost], list[str]]:
    """The costs of a table's rows that were measured with the settings of today, and a sentence for each other one.

    A shortened table has none.
    """
    name, found, notes = composed.table.name, {}, []
    for (table, row), cost in known.items():
        if table != name or composed.preset != FULL or not cost.seconds:
            continue
        try:
            same = digest(composed.settings(row)) == cost.digest
        except ConfigError:  # no such row any more
            same = False
        if same:
            found[row] = cost
        else:
            notes.append(f"{name}, row {row}: its step was measured with other settings, and `bench --record` is due.")
    return found, notes


def of_like(composed: ComposedTable, known: dict[Place, StepCost], rows: Iterable[str]) -> dict[str, StepCost]:
    """The costs of some rows by the table that theirs is like: a step of the same settings costs the same."""
    like = composed.table.like
    same = {cost.digest: cost for cost in known.values() if cost.table == like and cost.seconds}
    if not same or composed.preset != FULL:
        return {}
    found = {row: same.get(digest(composed.settings(row))) for row in rows}
    return {row: cost for row, cost in found.items() if cost is not None}


def _cost(row: dict[str, str]) -> StepCost:
    seconds, matrix = (tuple(map(float, row[name].split())) for name in ("seconds", "matrix_seconds"))
    if not all(isfinite(value) and value > 0 for value in (*seconds, *matrix)):
        raise ValueError(f"a time of {row['table']} {row['row']} is no number above zero")
    if matrix and len(matrix) != len(seconds):
        raise ValueError(f"{row['table']} {row['row']} has {len(seconds)} rounds, and {len(matrix)} of its matrices")
    made = {name: row[name] for name in MADE}
    place = (row["table"], row["row"], row["shape"], row["digest"])
    return StepCost(*place, int(row["epoch_steps"]), seconds, matrix, float(row["others"]), made)
