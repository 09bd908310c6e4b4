"""The code behind a table's numbers: a letter for each, which stands beside the numbers that it made."""

from collections.abc import Iterable
from dataclasses import dataclass
from string import ascii_lowercase

from orthobench.common.version import __version__
from orthobench.recording.code_name import code_name
from orthobench.study.records.records import Line


@dataclass(frozen=True)
class MadeBy:
    """Code that made each run of a table.

    Attributes:
        letters: the letter of each code, described in words.
        of_run: the letter by run id.
    """

    letters: dict[str, str]
    of_run: dict[str, str]

    def mark(self, runs: Iterable[str]) -> str:
        """The letters of some runs, `[a]` or `[a, b]`; empty for no run."""
        found = sorted({self.of_run[run] for run in runs}, key=lambda letter: (len(letter), letter))
        return f"[{', '.join(found)}]" if found else ""

    def words(self, runs: Iterable[str]) -> str:
        """The code of some runs in words."""
        names = {letter: text for text, letter in self.letters.items()}
        return "; ".join(names[letter] for letter in sorted({self.of_run[run] for run in runs}))

    @property
    def notes(self) -> list[str]:
        """Footnotes, one for each code."""
        return [f"[{letter}] made by {text}" for text, letter in self.letters.items()]


def made_by(lines: Iterable[Line]) -> MadeBy:
    """The code behind the runs of a table, by commit, local changes, version, plug-ins and data."""
    known = list(lines)
    data: dict[str, set[str]] = {}  # of every row; nothing for lines without a digest
    for line in known:
        data.setdefault(line.row, set()).update(filter(None, [line.values.get("data")]))
    some = any(data.values())
    words = {line.run_id: _words(line, data[line.row], some) for line in known}
    letters = {text: _letter(number) for number, text in enumerate(dict.fromkeys(words.values()))}
    return MadeBy(letters, {run: letters[text] for run, text in words.items()})


def _words(line: Line, of_row: set[str], some: bool) -> str:
    """Words for what made a run, given the digests of the data of its row, and if any run of the table has one."""
    values = line.values
    made = {"git": values.get("git"), "version": values.get("version"), "dirty": values.get("dirty") == "True"}
    parts = [code_name(made)]
    if not made["git"] and made["version"] not in (None, __version__):
        parts.append(f"where this is {__version__}")
    if values.get("plugins"):
        parts.append(f"and the plug-ins {values['plugins'][:10]}")
    if some and not values.get("data"):
        parts.append("on data of which no digest was recorded")
    elif len(of_row) > 1:
        parts.append(f"on the data {values['data'][:10]}, other seeds on others")
    return " ".join(parts)


def _letter(number: int) -> str:
    """The letters from a to z, then aa, ab and so on."""
    before, last = divmod(number, len(ascii_lowercase))
    return (_letter(before - 1) if before else "") + ascii_lowercase[last]
