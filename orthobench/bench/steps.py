"""Seconds of a training step at the shapes that claims and fair tables name, kept in results/bench/steps.csv.

A step is what a run does with a batch that is ready: forward, loss, backward, clipping, the optimizer and what follows
it. The rows of a group take turns, round by round, on the wall clock and one thread, and so do the groups; a round
during which other programs were at work is done again, and then given up. Every round is kept, so that the same command
goes on.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import torch

from orthobench.bench.quiet import watched
from orthobench.common import signals
from orthobench.errors import Stopped
from orthobench.recording.record import code, environment, hardware
from orthobench.run.bare_step import BareStep
from orthobench.run.run import Run
from orthobench.study.costs import step_costs
from orthobench.study.costs.step_costs import LEAST, SAME, Place, StepCost
from orthobench.study.tables.composed import ComposedTable
from orthobench.study.tables.published import load_table
from orthobench.study.tables.search import TRIAL
from orthobench.study.tables.table import FAIR, Table
from orthobench.study.verdicts import claims
from orthobench.study.verdicts.fair import rates, timed_row

SHORTEST_S, TRIES = 0.02, 3  # shorter steps are repeated within a round


@dataclass(frozen=True)
class TimedRows:
    """Rows of one table whose steps are compared with one another.

    Attributes:
        case: of a fair table, the place in its grid; otherwise empty.
        rounds: how many each of them needs.
    """

    table: Table
    case: str
    rows: tuple[str, ...]
    rounds: int

    @property
    def label(self) -> str:
        """Name of a row in messages."""
        return f"{self.table.name}{' ' if self.case else ''}{self.case}"


def groups(tables: Iterable[Table]) -> list[TimedRows]:
    """Rows to measure for some tables: those of claims about `bench/`, and the models of every fair case."""
    found = []
    for table in tables:
        if table.track == FAIR:
            by_case: dict[str, list[str]] = {}
            for (_, case), rows in rates(table).items():
                by_case.setdefault(case, []).append(timed_row(rows))
            found += [TimedRows(table, case, tuple(rows), LEAST) for case, rows in by_case.items()]
            continue
        if table.search is not None:
            rows = tuple(row for row, place in table.variants.items() if place.places[TRIAL] == "0")
            found.append(TimedRows(table, "", rows, LEAST))
            continue
        told = [printed for printed in load_table(table) if printed.kind == "claim"]
        rows = dict.fromkeys(row for printed in told if claims.is_cost(printed) for row in printed.rows)
        found += [TimedRows(table, "", tuple(rows), claims.rounds(told))] if rows else []
    return found


def due(group: TimedRows, known: dict[Place, StepCost]) -> dict[str, StepCost] | None:
    """The costs of a group as far as they are measured, none where they begin anew; None where all of them are there.

    They begin anew where a row is missing, was measured with other settings, or with other rounds than the others, and
    where those that there are come from another machine or other code.
    """
    composed = ComposedTable(group.table)
    same = {
        row: cost
        for row in group.rows
        if (cost := known.get((group.table.name, row))) and cost.digest == step_costs.digest(composed.settings(row))
    }
    rounds, made = {len(cost.seconds) for cost in same.values()}, {_of(cost.made) for cost in same.values()}
    if len(same) < len(group.rows) or len(rounds) > 1 or len(made) > 1:
        return {}
    if min(rounds) >= group.rounds:
        return None
    return same if made == {_of(_made())} else {}


def measure(group: TimedRows, begun: dict[str, StepCost], results: Path) -> Iterator[str]:
    """Do the rounds of a group that are missing, keep each of them, and tell of it.

    Args:
        group: the group.
        begun: its costs so far, as `due` says.
        results: the folder of the records.

    Raises:
        DataError: what its task reads is not there.
        Stopped: other programs are at work, or a signal asked to stop; the rounds before are kept.
    """
    composed = ComposedTable(group.table)
    steps = [TimedStep(composed, row) for row in group.rows]
    costs = [begun.get(step.blank.row, step.blank) for step in steps]
    for step in steps:
        step.warm()
    while (done := len(costs[0].seconds)) < group.rounds:
        taken, others = _quiet_round(group, steps)
        made = _made()
        costs = [_with_round(cost, *own, others, made) for cost, own in zip(costs, taken, strict=True)]
        measured = {(cost.table, cost.row): cost for cost in costs}
        step_costs.write(results, (step_costs.read(results) | measured).values())
        slowest = max(costs, key=lambda cost: cost.s_per_step)
        yield (
            f"{group.label}: round {done + 1} of {group.rounds}, {len(costs)} rows; "
            f"{slowest.row} takes most, {1000 * slowest.s_per_step:,.1f} ms a step"
        )


class TimedStep:
    """The training step of one row.

    Attributes:
        blank: what it costs, before anything is measured.

    Raises:
        DataError: what its task reads is not there.
    """

    def __init__(self, composed: ComposedTable, row: str) -> None:
        exp = Run.fitted(composed.settings(row))
        exp.task.check()
        self.model = exp.model.train()
        self._step = BareStep(exp)
        for group in self._step.learner.optimizer.param_groups:
            group["lr"] = 0.0  # so that a step after many on one batch is still one of a start
        self.batches = [exp.task.batch("train", 0, index) for index in range(exp.duration.accumulate)]
        self.constrained = self.model.constrained()
        self.gradients = [torch.randn_like(W) / len(W) for W in (one() for one in self.constrained)]
        self.repeats = 1
        engines = ", ".join(dict.fromkeys(name for name, _ in self.model.engines()))
        given, T = exp.settings, exp.task.T
        size = f"{given.model['name']} n={given.model.get('hidden_size')}"
        shape = f"{size} {given.task['name']} T={T} B={exp.task.batch_size} engine={engines or 'none'}"
        digest = step_costs.digest(given)
        self.blank = StepCost(composed.table.name, row, shape, digest, exp.duration.epoch_steps)

    def __call__(self) -> tuple[float, float | None]:
        """Seconds of a step, and of building the constrained matrices; None where there are none."""
        matrices = _seconds(self._build, self.repeats) if self.constrained else None
        return _seconds(lambda: self._step(self.batches), self.repeats), matrices

    def warm(self) -> None:
        """Take the first steps, which compile and fill caches, and see how many make up a time worth measuring."""
        self()
        self.repeats = max(round(SHORTEST_S / self()[0]), 1)

    def _build(self) -> None:
        for parametrization, gradient in zip(self.constrained, self.gradients, strict=True):
            W = parametrization()
            if W.requires_grad:
                W.backward(gradient)


def _seconds(work: Callable[[], None], times: int) -> float:
    start = time.perf_counter()
    for _ in range(times):
        work()
    return (time.perf_counter() - start) / times


def _quiet_round(group: TimedRows, steps: list[TimedStep]) -> tuple[list[tuple[float, float | None]], float]:
    """Measure a round of all rows, and the share of a core that others had meanwhile."""
    taken: list[tuple[float, float | None]] = []

    def work() -> None:
        taken.clear()
        for step in steps:
            signals.check()
            taken.append(step())

    load = watched(work)
    for _ in range(TRIES - 1):
        if load.problem is None:
            break
        load = watched(work)
    if load.problem is None:
        return taken, load.others
    raise Stopped(
        f"{group.label}: this machine is not quiet: {load.problem}, in {TRIES} rounds one after another; nothing "
        "of them is recorded, and the same command resumes when nothing else runs."
    )


def _with_round(cost: StepCost, seconds: float, matrix: float | None, others: float, made: dict[str, str]) -> StepCost:
    return replace(
        cost,
        seconds=(*cost.seconds, seconds),
        matrix_seconds=(*cost.matrix_seconds, *(() if matrix is None else (matrix,))),
        others=max(cost.others, others),
        made=made,
    )


def _made() -> dict[str, str]:
    """Machine and versions of a measurement; on the processor, whatever else there is."""
    found = {**hardware(torch.device("cpu")), **environment(), **code()}
    made = {name: "" if found.get(name) is None else str(found[name]) for name in step_costs.MADE}
    return made | {"date": datetime.now(UTC).date().isoformat()}


def _of(made: dict[str, str]) -> tuple[str, ...]:
    """Values that all rounds of a group have in common."""
    return tuple(made.get(name, "") for name in SAME)
