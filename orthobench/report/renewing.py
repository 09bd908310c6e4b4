"""Files that are made from something else: which are not up to date, and how they are written anew."""

from collections.abc import Mapping
from pathlib import Path

from orthobench.common.terminal import say


def differing(wanted: Mapping[Path, str]) -> dict[Path, str]:
    """The texts of those files that do not hold theirs."""
    return {path: text for path, text in wanted.items() if not path.is_file() or path.read_bytes() != text.encode()}


def renew(wanted: Mapping[Path, str], words: list[str]) -> int:
    """Tell what is not up to date, and write it where `--write` is among the words; returns 1 where it is not written.

    Args:
        wanted: the text of each file.
        words: those of the command line.
    """
    stale, write = differing(wanted), "--write" in words
    for path, text in stale.items():
        if write:
            path.write_text(text, encoding="utf-8")
        say(f"{'wrote' if write else 'not up to date:'} {path}")
    return int(bool(stale) and not write)
