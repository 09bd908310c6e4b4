"""Files that are made from something else: which are not up to date, and how they are written anew."""

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from orthobench.common.terminal import say

Wanted = TypeVar("Wanted", str, str | None)


def differing(wanted: Mapping[Path, Wanted]) -> dict[Path, Wanted]:
    """The texts of those files that do not hold theirs; see `renew`."""
    held = {path: path.read_bytes() if path.is_file() else None for path in wanted}
    return {path: text for path, text in wanted.items() if held[path] != (None if text is None else text.encode())}


def renew(wanted: Mapping[Path, Wanted], words: list[str]) -> int:
    """Tell what is not up to date, and write it where `--write` is among the words; returns 1 where it is not written.

    Args:
        wanted: the text of each file; None for one that is not to be there.
        words: those of the command line.
    """
    stale, write = differing(wanted), "--write" in words
    for path, text in stale.items():
        if write and text is None:
            path.unlink()
        elif write:
            path.write_text(text or "", encoding="utf-8")
        say(f"{'not up to date:' if not write else 'wrote' if text is not None else 'removed'} {path}")
    return int(bool(stale) and not write)
