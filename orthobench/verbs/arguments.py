"""The parser of a verb's arguments.

Its usage is the first line of the docstring of the verb's module, "`usage`: what the verb does"; its help begins with
the verb's line of `orthobench --help`, and ends with the rest of the docstring.
"""

import argparse
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from orthobench.common.paths import expanded, folder
from orthobench.config import places
from orthobench.config.words import key, refuse_twice
from orthobench.errors import ConfigError
from orthobench.recording.store import folder_of
from orthobench.study.catalogue import Catalogue
from orthobench.verbs import VERBS

if TYPE_CHECKING:
    from orthobench.run.load import Finished

PLACES = ("runs_root", "data_root")
LAUNCHER = "where runs are done: local (this machine), slurm, ray; hydra.launcher.KEY=VALUE sets it"


class Parser(argparse.ArgumentParser):
    """A parser of words in any order and of options, whose errors are ours.

    Args:
        doc: the docstring of the verb's module.
    """

    def __init__(self, doc: str | None) -> None:
        usage, _, rest = (doc or "").strip().removeprefix("`").partition("`: ")
        program = " ".join(usage.split()[:2])
        verb = VERBS.get(program.split()[-1] if program else "")
        first, gap, more = rest.partition("\n\n")
        does = f"{verb.does}." if verb else first
        super().__init__(
            program,
            usage,
            does[:1].upper() + does[1:] + gap + more,
            verb and f"example:\n  {verb.example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        self.add_argument("words", nargs="*", help=argparse.SUPPRESS)

    def add_folders(self) -> None:
        """Accept `--config-dir DIR`, which may be given more than once."""
        words = "folder of further models, tasks or tables"
        kind = partial(folder, what="--config-dir")
        self.add_argument("--config-dir", "-cd", type=kind, action="append", default=[], metavar="DIR", help=words)

    def add_look(self, logy: bool = True) -> None:
        """Accept how figures look: `--format`, `--style`, and `--logy` where they have values to choose a scale for."""
        self.add_argument("--format", default="svg", metavar="FORMAT", help="svg, png or pdf (svg)")
        if logy:
            self.add_argument("--logy", action="store_true", help="a logarithmic axis of values")
        words = "a style file of your own (.mplstyle), or a style of matplotlib's by its name"
        self.add_argument("--style", metavar="FILE", help=words)

    def read(self, arguments: list[str]) -> argparse.Namespace:
        """The options, with `names`, the words without `=`, `overrides`, those with it, and the `catalogue`.

        Raises:
            ConfigError: an option is wrong, or a key is given twice.
        """
        given = self.parse_intermixed_args(arguments)
        given.names = [expanded(word, "the path") for word in given.words if not _sets(word)]
        given.overrides = places.given(word for word in given.words if _sets(word))
        given.catalogue = Catalogue(tuple(getattr(given, "config_dir", ())))
        refuse_twice(given.overrides)
        return given

    def error(self, message: str) -> NoReturn:
        """Raise ConfigError with the name of the verb."""
        raise ConfigError(f"{self.prog.split()[-1]}: {message}; see `{self.prog} --help`.")


def _sets(word: str) -> bool:
    """Return True if a word sets a value; `runs/lr=0.1/NAME` is a path."""
    name = word.partition("=")[0]
    return "=" in word and ("/" not in name or name.startswith("hydra/"))


class RunParser(Parser):
    """A parser of the name or the folder of a finished run, of where runs and data are, and of `--last`.

    It accepts `--config-dir`, as the command that made the run does; the settings of the run hold all that it needs.

    Args:
        doc: the docstring of the verb's module.
        example: a command, for who names no run.
        settings: whether the verb takes other words with `=` too, which are in `settings` then.
        several: whether it takes several runs.
    """

    def __init__(self, doc: str | None, example: str, settings: bool = False, several: bool = False) -> None:
        super().__init__(doc)
        self.example, self.settings, self.several = example, settings, several
        self.add_argument("--last", action="store_true", help="the last weights, not the best by validation")
        self.add_folders()

    def read(self, arguments: list[str]) -> argparse.Namespace:
        """Read the words as any verb does, with `places`, where runs and data are, and `settings`.

        Raises:
            ConfigError: no run is named, or several where one alone can be, or a word does not apply.
        """
        given, verb = super().read(arguments), self.prog.split()[-1]
        if not given.names or (len(given.names) > 1 and not self.several):
            count = "a run" if self.several else "one run"
            raise ConfigError(f"{verb} needs {count}, by its folder or its name: `{self.example}`.")
        given.places = {key(word): places.path(word) for word in given.overrides if key(word) in PLACES}
        given.settings = [word for word in given.overrides if key(word) not in PLACES]
        if given.settings and not self.settings:
            allowed = " and ".join(f"{name}=" for name in PLACES)
            raise ConfigError(f"{given.settings[0]} does not apply to {verb}: leave it out, for only {allowed} do.")
        return given


def results_root(arguments: list[str]) -> Path:
    """The folder of `results_root=`, else results/.

    Raises:
        ConfigError: an argument other than that, or a folder that is not there.
    """
    for word in arguments:
        if not word.startswith("results_root="):
            raise ConfigError(f"{word!r} is not an argument here; use results_root= alone.")
    found = Path(places.path(arguments[-1]) if arguments else "results")
    if arguments and not found.is_dir():
        raise ConfigError(f"results_root={found} is not a folder: name the one that holds `records`.")
    return found


def load_run(given: argparse.Namespace, name: str | None = None) -> "Finished":
    """The run that a RunParser has read, or the one of this name among several, with the weights that are asked for.

    Raises:
        ConfigError: no run of that name, or one that is not done.
    """
    folder_of(name or given.names[0], given.places.get("runs_root"))  # told before the slow imports
    from orthobench.run.load import load

    return load(name or given.names[0], "last" if given.last else "best", **given.places)
