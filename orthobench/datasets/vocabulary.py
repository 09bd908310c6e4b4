"""Tokens to ids: most frequent first, ties in alphabetical order.

The ids are torchtext 0.6.0's, `Vocab(counts, specials=[])`. Later releases of torchtext cannot be loaded beside a
current PyTorch, and 0.6.0 is the last of an archived project: everything that touches it is in this file, and `plain`
gives the same ids without it.
"""

from collections import Counter
from typing import Any


def vocabulary(counts: Counter[str]) -> dict[str, int]:
    """The id of every token in `counts`, by torchtext where it can be imported and by `plain` elsewhere."""
    try:
        return with_torchtext(counts)
    except (ImportError, OSError):  # 0.18.0 is found, but its library does not load
        return plain(counts)


def with_torchtext(counts: Counter[str]) -> dict[str, int]:
    """The ids that torchtext 0.6.0 gives.

    Raises:
        ImportError: torchtext is not installed.
        OSError: the installed torchtext does not fit the installed PyTorch.
    """
    from torchtext.vocab import Vocab

    ids: Any = Vocab(counts, specials=[]).stoi
    return dict(ids)


def plain(counts: Counter[str]) -> dict[str, int]:
    """The same ids, computed from the counts without torchtext."""
    ordered = sorted(counts, key=lambda token: (-counts[token], token))
    return {token: i for i, token in enumerate(ordered)}
