"""Selection of rows and seeds of tables, whose runs are planned, priced or done."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from orthobench.config import places
from orthobench.config.words import key
from orthobench.study.tables.table import FULL, Table


@dataclass(frozen=True)
class Selection:
    """Selection of rows and seeds of tables.

    Attributes:
        tables: the tables.
        preset: full, or the name of the preset that shortens them.
        seeds, rows: some of them; None for those of the tables.
        extra: further words for every run, which must not change its numbers.
        models: cells of searched tables; None for all that these have.
    """

    tables: Sequence[Table]
    preset: str = FULL
    seeds: Iterable[int] | None = None
    rows: Iterable[str] | None = None
    extra: tuple[str, ...] = ()
    models: Iterable[str] | None = None

    @property
    def results(self) -> Path:
        """The folder of the preset's records and tables, by `results_root=` among the further words."""
        root = Path(next((places.path(word) for word in self.extra[::-1] if key(word) == "results_root"), "results"))
        return root if self.preset == FULL else root / self.preset
