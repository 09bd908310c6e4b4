"""Messages to the user: plain lines on standard output, errors on standard error."""

import contextlib
import re
import sys
from collections.abc import Iterator

_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


def visible(text: str) -> str:
    """Text in which what would command a terminal, or change the direction of writing, is written out."""
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape", "surrogatepass").decode("ascii"), text)


def say(text: str) -> None:
    """Print one line on standard output; a closed pipe is ignored."""
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.write(visible(text) + "\n")
        sys.stdout.flush()


def complain(text: str) -> None:
    """Print one line on standard error."""
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(visible(text) + "\n")
        sys.stderr.flush()


@contextlib.contextmanager
def waiting(what: str) -> Iterator[None]:
    """Say on a terminal what is waited for, and wipe it away afterwards; where standard error is none, nothing."""
    terminal = sys.stderr if sys.stderr is not None and sys.stderr.isatty() else None
    if terminal is not None:
        terminal.write(f"{visible(what)} ...")
        terminal.flush()
    try:
        yield
    finally:
        if terminal is not None:
            terminal.write("\r\x1b[K")
            terminal.flush()


def duration_text(seconds: float) -> str:
    """`95` as `1m 35s`."""
    whole = round(seconds)
    hours, minutes = divmod(whole // 60, 60)
    if hours:
        return f"{hours}h {minutes}m"
    return f"{minutes}m {whole % 60}s" if minutes else f"{seconds:.1f}s"


def columns(headers: list[str], rows: list[list[str]]) -> None:
    """A table whose columns are as wide as their widest entry."""
    widths = [max(map(len, column)) for column in zip(headers, *rows, strict=True)]
    for line in (headers, *rows):
        say("  " + "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())
