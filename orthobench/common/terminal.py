"""Messages to the user: plain lines on standard output, errors on standard error."""

import contextlib
import os
import re
import shlex
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from orthobench.errors import ConfigError

_refused: list[OSError] = []  # of standard output
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


def visible(text: str) -> str:
    """Text in which what would command a terminal, or change the direction of writing, is written out."""
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape", "surrogatepass").decode("ascii"), text)


def say(text: str, end: str = "\n") -> None:
    """Print one line on standard output; a closed pipe is ignored, and other errors are told by `flush`."""
    try:
        with contextlib.suppress(AttributeError, ValueError, BrokenPipeError):
            sys.stdout.write(visible(text) + end)
            sys.stdout.flush()
    except OSError as error:
        _refused.append(error)


def complain(text: str) -> None:
    """Print one line on standard error."""
    with contextlib.suppress(AttributeError, OSError, ValueError):
        sys.stderr.write(visible(text) + "\n")
        sys.stderr.flush()


def comment(text: str) -> str:
    """Text as one comment of a shell script, in which a line break is a blank."""
    return f"# {' '.join(visible(text).split())}"


def command(words: Iterable[str]) -> str:
    """A command of one line for a shell, each word quoted where it needs to be.

    Raises:
        ConfigError: a word holds a line break, or another character that `visible` writes out.
    """
    listed = list(words)
    odd = next((word for word in listed if "\n" in word or visible(word) != word), None)
    if odd is not None:
        raise ConfigError(
            f"{visible(repr(odd))} has a line break or control character, so that no command is shown"
            ": give it a plain name."
        )
    return shlex.join(listed)


def flush() -> bool:
    """Write out what was printed; returns whether standard output took it all, or was closed, as by `| head`."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, ValueError):  # no such stream, or one that Python has closed
            continue
        except OSError as error:
            if stream is sys.stdout and not isinstance(error, BrokenPipeError):
                _refused.append(error)
            nowhere = os.open(os.devnull, os.O_WRONLY)  # or Python tries again when it ends, and complains
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
    if _refused:
        complain(f"orthobench: standard output cannot be written: {_refused[0].strerror}.")
    return not _refused


def is_terminal(stream: Any) -> bool:
    """Return True if a stream is a terminal; it may be None, closed, or a replacement that cannot tell."""
    with contextlib.suppress(AttributeError, ValueError):
        return bool(stream.isatty())
    return False


@contextlib.contextmanager
def waiting(what: str) -> Iterator[None]:
    """Say on a terminal what is waited for, and wipe it away afterwards; where standard error is none, nothing."""
    terminal = sys.stderr if is_terminal(sys.stderr) else None
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
