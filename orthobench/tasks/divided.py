"""Data of a task and their division: the user's own part, the part that is drawn, and the rows of each."""

from collections.abc import Collection
from pathlib import Path
from typing import ClassVar, Literal

Split = Literal["train", "val", "test"]
SPLITS: tuple[Split, ...] = ("train", "val", "test")


class Divided:
    """Answers of a `Task` about its data and their division; these are those of one whose data are drawn.

    Attributes:
        own_files: the settings that name files of the user's own, which a run knows by their whole path.
        rows_are: what `row_digests` are of.
        division_seed: the seed of what is drawn for validation; that of another run where its division is kept.
        whole: whether all of the data are the test part, see `take_whole`.
    """

    own_files: ClassVar[tuple[str, ...]] = ("path",)
    rows_are: ClassVar[str] = "sequences"
    division_seed: int
    whole: bool = False

    def look(self) -> None:
        """Look at files of the user's own, so that a wrong one is reported before anything is planned or started.

        Raises:
            DataError: one is missing or malformed.
        """

    def take_whole(self) -> None:
        """Make all of the data the test part, where they name none: a model was not trained on them."""

    def row_digests(self, split: Split) -> list[bytes]:
        """Digest of every row of a split, by which it is known among others; none where rows are drawn without end."""
        return []

    @property
    def named_parts(self) -> Collection[str]:
        """The splits that are not drawn by us: those of a published division, or that a file names."""
        return ()

    def files(self) -> list[Path]:
        """The files of the user's own that its numbers depend on: those that its settings name.

        A task of one's own adds what Python does not open, such as a database: a change of it is then noticed.
        """
        return [Path(getattr(self, key)) for key in self.own_files if isinstance(getattr(self, key, None), str)]
