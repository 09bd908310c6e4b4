"""Costs of runs here: kept where measured once, scaled from another machine's, or measured now."""

from contextlib import suppress
from pathlib import Path

from orthobench.config.settings import Settings
from orthobench.errors import OrthobenchError, StorageError
from orthobench.study.costs import run_costs
from orthobench.study.costs.run_costs import KEPT, MEASURED, SCALED, START, Cost, KeptCost, priced, ratio_of, shorter

OWN = ".costs.csv"


class Book:
    """The costs that are known: those that come with the records, and those that were measured beside the runs.

    Args:
        results: the folder of the records.
        runs: the folder of the runs, where what is measured is kept.
        record: whether it is kept beside the records instead.
    """

    def __init__(self, results: Path, runs: Path, record: bool = False) -> None:
        shipped, own = run_costs.path_of(results), runs / OWN
        self.path, self.record = shipped if record else own, record
        self.known = [*run_costs.read(shipped), *(() if record else run_costs.read(own))]
        self.sources: dict[str, int] = {}
        self._failed: dict[str, OrthobenchError] = {}
        self._found: dict[str, tuple[KeptCost, str, float]] = {}

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
        """Numbers of costs by where they are from."""
        return ", ".join(f"{self.sources[one]} {one}" for one in (KEPT, SCALED, MEASURED) if one in self.sources)

    def _look_up(self, settings: Settings, digests: tuple[str, str]) -> tuple[KeptCost, str, float]:
        """A cost, where it is from, and how much longer this machine takes."""
        from orthobench.study.costs import measuring

        machine = tuple(measuring.made_on(settings)[part] for part in run_costs.MACHINE)
        same = [one for one in self.known if one.digest == digests[0]]
        here = next((one for one in same if one.machine == machine), None)
        if here is not None:
            found = shorter(self.known, here)
            return found, KEPT if found.measured_T is None else SCALED, 1.0
        for one in same:
            ratio = ratio_of(self.known, machine, one.machine)
            if ratio is not None:
                return shorter(self.known, one), SCALED, ratio
        near = None if self.record else run_costs.at_length(self.known, digests, settings.task.get("T"), machine)
        if near is not None:
            return near, SCALED, 1.0
        found = self._keep(measuring.measure(settings))
        return shorter(self.known, found), MEASURED if found.measured_T is None else SCALED, 1.0

    def _start(self, settings: Settings) -> float:
        """Seconds of the program's start."""
        from orthobench.study.costs import measuring

        machine = tuple(measuring.made_on(settings)[part] for part in run_costs.MACHINE)
        found = next((one for one in self.known if (one.digest, one.machine) == (START, machine)), None)
        return (found or self._keep(measuring.start_up(settings))).step_s

    def _keep(self, found: KeptCost) -> KeptCost:
        """Keep what was measured, beside what others have kept meanwhile; where nothing can be written, for now."""
        self.known.append(found)
        with suppress(StorageError, OSError):
            run_costs.write(self.path, [*run_costs.read(self.path), found])
        return found
