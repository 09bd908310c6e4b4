"""Costs of runs here: kept where measured once, scaled from another machine's, or measured now.

What was measured beside the runs by other code, such as an earlier version, is measured again.
"""

from contextlib import suppress
from pathlib import Path

from orthobench.config.settings import Settings
from orthobench.errors import OrthobenchError, StorageError
from orthobench.study.costs import run_costs
from orthobench.study.costs.run_costs import (
    KEPT,
    MEASURED,
    SCALED,
    START,
    Cost,
    KeptCost,
    bounded_by_longer,
    priced,
    ratio_of,
)

OWN = ".costs.csv"


class KnownCosts:
    """The costs that are known: those that come with the records, and those that were measured beside the runs.

    Args:
        results: the folder of the records.
        runs: the folder of the runs, where what is measured is kept.
        record: whether it is kept beside the records instead.
    """

    def __init__(self, results: Path, runs: Path, record: bool = False) -> None:
        shipped, own = run_costs.path_of(results), runs / OWN
        self.path, self.record = shipped if record else own, record
        self.known = [*run_costs.read(shipped), *(() if record else _of_this_code(run_costs.read(own)))]
        self.sources: dict[str, int] = {}
        self._failed: dict[str, OrthobenchError] = {}
        self._found: dict[str, tuple[KeptCost, str, float]] = {}
        self._from: dict[str, int] = {}  # how many costs are of another machine, or of one that may be another
        self._seen: tuple[tuple[str, ...], int, list[KeptCost]] = (), 0, []

    def of(self, settings: Settings) -> Cost:
        """Cost of a run.

        Raises:
            OrthobenchError: its data is missing, or its first step fails.
        """
        digests = run_costs.digests(settings)
        name = digests[0]
        if name in self._failed:
            raise self._failed[name]
        if name not in self._found:
            try:
                self._found[name] = self._look_up(settings, digests)
            except OrthobenchError as error:
                self._failed[name] = error
                raise
            source = self._found[name][1]
            self.sources[source] = self.sources.get(source, 0) + 1
        kept, source, ratio = self._found[name]
        return priced(settings, kept, self._start(settings), source, ratio)

    @property
    def words(self) -> str:
        """Numbers of costs by where they are from, and which are of another machine."""
        told = ", ".join(f"{self.sources[one]} {one}" for one in (KEPT, SCALED, MEASURED) if one in self.sources)
        return "; ".join([told, *(f"{count} of them from {machine}" for machine, count in self._from.items())])

    def _look_up(self, settings: Settings, digests: tuple[str, str]) -> tuple[KeptCost, str, float]:
        """A cost, where it is from, and how much longer this machine takes."""
        from orthobench.study.costs import measuring

        machine = run_costs.machine_of(measuring.made_on(settings))
        known = self._seen_from(machine)
        same = [one for one in known if one.digest == digests[0]]
        here = next((one for one in same if one.machine == machine), None)
        if here is not None:
            if all(one.machine != machine for one in self.known if one.digest == digests[0]):
                self._note(f"a machine of which the processor alone is known, {run_costs.words_of(machine[:3])}")
            found = bounded_by_longer(known, here)
            return found, KEPT if found.measured_T is None else SCALED, 1.0
        for one in same:
            ratio = ratio_of(known, machine, one.machine)
            if ratio is not None:
                self._note(f"another machine, {run_costs.words_of(one.machine)}")
                return bounded_by_longer(known, one), SCALED, ratio
        near = None if self.record else run_costs.at_length(known, digests, settings.task.get("T"), machine)
        if near is not None:
            return near, SCALED, 1.0
        found = self._keep(measuring.measure(settings))
        return bounded_by_longer(self.known, found), MEASURED if found.measured_T is None else SCALED, 1.0

    def _start(self, settings: Settings) -> float:
        """Seconds of the program's start."""
        from orthobench.study.costs import measuring

        machine = run_costs.machine_of(measuring.made_on(settings))
        found = next((one for one in self._seen_from(machine) if (one.digest, one.machine) == (START, machine)), None)
        return (found or self._keep(measuring.start_up(settings))).step_s

    def _seen_from(self, machine: tuple[str, ...]) -> list[KeptCost]:
        if self._seen[:2] != (machine, len(self.known)):
            self._seen = machine, len(self.known), run_costs.seen_from(self.known, machine)
        return self._seen[2]

    def _note(self, machine: str) -> None:
        self._from[machine] = self._from.get(machine, 0) + 1

    def _keep(self, found: KeptCost) -> KeptCost:
        """Keep what was measured, beside what others have kept meanwhile; where nothing can be written, for now."""
        self.known.append(found)
        with suppress(StorageError, OSError):
            run_costs.write(self.path, [*run_costs.read(self.path), found])
        return found


def _of_this_code(costs: list[KeptCost]) -> list[KeptCost]:
    from orthobench.study.costs import measuring

    return [one for one in costs if one.made.get(run_costs.CODE) == measuring.code()]
