"""The parser of a verb's arguments.

Its usage and help are the first line of the docstring of the verb's module, "`usage`: what the verb does".
"""

import argparse
from pathlib import Path
from typing import NoReturn

from orthobench.config.words import refuse_twice
from orthobench.errors import ConfigError


class Parser(argparse.ArgumentParser):
    """A parser of words in any order and of options, whose errors are ours.

    Args:
        doc: the docstring of the verb's module.
    """

    def __init__(self, doc: str | None) -> None:
        usage, _, rest = (doc or "").strip().removeprefix("`").partition("`: ")
        super().__init__(
            " ".join(usage.split()[:2]),
            usage,
            rest[:1].upper() + rest[1:],
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        self.add_argument("words", nargs="*", help=argparse.SUPPRESS)

    def add_folders(self) -> None:
        """Accept `--config-dir DIR`, which may be given more than once."""
        words = "folder of further models, tasks or tables"
        self.add_argument("--config-dir", "-cd", type=Path, action="append", default=[], metavar="DIR", help=words)

    def read(self, arguments: list[str]) -> argparse.Namespace:
        """The options, with `names`, the words without `=`, and `overrides`, those with it.

        Raises:
            ConfigError: an option is wrong, or a key is given twice.
        """
        given = self.parse_intermixed_args(arguments)
        given.names = [word for word in given.words if "=" not in word]
        given.overrides = [word for word in given.words if "=" in word]
        refuse_twice(given.overrides)
        return given

    def error(self, message: str) -> NoReturn:
        """Raise ConfigError with the name of the verb."""
        raise ConfigError(f"{self.prog.split()[-1]}: {message}.")
