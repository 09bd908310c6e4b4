"""Figures of a table, as `figures:` of its file says."""

from dataclasses import dataclass

FIGURE_KINDS = ("curve", "through", "sweep", "bars")


@dataclass(frozen=True)
class Figure:
    """A figure of a table.

    Attributes:
        kind: `curve`, metrics during training; `through`, `<metric>/<t>` over t at the first and the last step;
            `sweep`, a score over the number that ends a row's name; `bars`, a number of each row.
        metrics: the names of the metrics; a `curve` may have several, every other kind has one.
        rows: names of rows, or endings of names that begin with an underscore; empty means all rows.
    """

    title: str
    kind: str
    metrics: tuple[str, ...]
    rows: tuple[str, ...]

    @property
    def of_and_key(self) -> tuple[str, str]:
        """The title's part before its colon, empty without one, and the rest, which is the figure's key."""
        of, colon, key = self.title.partition(": ")
        return (of, key) if colon and key else ("", self.title)

    def shows(self, row: str) -> bool:
        """Return True if the figure shows a row."""
        endings = tuple(name for name in self.rows if name.startswith("_"))
        return not self.rows or row in self.rows or row.endswith(endings)

    def reads(self, metric: str) -> bool:
        """Return True if the figure needs a metric's curve."""
        if self.kind == "through":
            return metric.rpartition("/")[0] == self.metrics[0]
        return self.kind == "curve" and metric in self.metrics
