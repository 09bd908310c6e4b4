"""Odd files and settings, made by Hypothesis, of every kind that people outside have.

`python -m tests.outside --fuzz 500` makes 500 of each kind and tells for each kind how many were right, refused with a
sentence, or a fault. A kind is a function that makes one input and tries it. It returns where the answer is right by an
oracle of its own, and lets the program's refusal pass; all else is a fault: a failed `assert`, any other exception, a
warning, a refusal of several lines, a wrong exit code, or more time than `SECONDS`.

    from tests.outside import Draw, kind

    @kind
    def scales(draw: Draw, folder: Path) -> None:
        ...

A module in this folder that has kinds is found by its being there.
"""

import os
import re
import shutil
import signal
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from importlib import import_module
from io import StringIO
from pathlib import Path
from pkgutil import iter_modules
from time import perf_counter
from typing import Any, TypeVar

import hypothesis
from hypothesis import HealthCheck, Phase, given, strategies

from orthobench.errors import OrthobenchError

Value = TypeVar("Value")
SECONDS = 20
CODES = {2, 3, 4, 5, 6}
SHORTEST = 20  # characters that a sentence has
KINDS: dict[str, "Kind"] = {}


class Draw:
    """What Hypothesis draws for one input, kept to be shown with a fault."""

    def __init__(self, data: Any) -> None:
        self._data, self.drawn = data, []

    def __call__(self, strategy: strategies.SearchStrategy[Value]) -> Value:
        value = self._data.draw(strategy)
        self.drawn.append(value)
        return value

    def one(self, *values: Value) -> Value:
        """One of some values."""
        return self(strategies.sampled_from(values))

    def sometimes(self, *values: Value) -> Value:
        """The first value in most draws, and one of the others else."""
        return self(strategies.sampled_from((*[values[0]] * 3 * (len(values) - 1), *values[1:])))


class Refused(Exception):
    """The command line's refusal: one sentence and an exit code."""


Kind = Callable[[Draw, Path], None]


@dataclass
class Tally:
    """What has come of the inputs of one kind."""

    right: int = 0
    refused: int = 0
    faults: list[str] = field(default_factory=list)
    sentences: set[str] = field(default_factory=set)
    slowest: float = 0.0


def kind(function: Kind) -> Kind:
    """Register a kind of input under the name of its function."""
    assert function.__name__ not in KINDS, f"two kinds are called {function.__name__}"
    KINDS[function.__name__] = function
    return function


def all_kinds() -> dict[str, Kind]:
    """The kinds of all modules of this folder."""
    for module in iter_modules(__path__):
        if not module.name.startswith(("test_", "__")):
            import_module(f"{__name__}.{module.name}")
    return dict(sorted(KINDS.items()))


def call(*words: str) -> str:
    """Run the command line in this process; what it prints.

    Raises:
        Refused: it has ended with one sentence and the exit code of a refusal.
        AssertionError: it has ended otherwise, but for 0.
    """
    from orthobench.__main__ import main

    out, error = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(error):
        code = main(list(words))
    if code:
        text = error.getvalue().strip()
        assert code in CODES, f"exit code {code}: {text}"
        raise Refused(text)
    return out.getvalue()


@contextmanager
def accepted() -> Iterator[None]:
    """A refusal in here is a fault: what is tried is right."""
    try:
        yield
    except (OrthobenchError, Refused) as error:
        raise AssertionError(f"refused: {error}") from error


def fuzz(name: str, count: int, seed: int = 1) -> Tally:
    """Try `count` inputs of a kind, in an empty folder each; the same ones for the same seed."""
    found, tried = Tally(), all_kinds()[name]

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategies.data())
    def inputs(data: Any) -> None:
        if found.right + found.refused + len(found.faults) < count:
            _try(tried, Draw(data), found)

    inputs()
    return found


def _try(tried: Kind, draw: Draw, found: Tally) -> None:
    """Try one input, and count what has come of it."""
    started = perf_counter()
    folder = Path(tempfile.mkdtemp(prefix="outside-"))
    try:
        with _limited(), chdir(folder), _runs_in(folder), warnings.catch_warnings():
            warnings.simplefilter("error")
            tried(draw, folder)
        found.right += 1
    except (OrthobenchError, Refused) as error:
        wrong = _wrong_sentence(str(error))
        if wrong:
            found.faults.append(f"{wrong}: {error}\n{_drawn(draw)}")
        else:
            found.refused += 1
            found.sentences.add(_plain(str(error), folder))
    except hypothesis.errors.HypothesisException:
        raise
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) or type(error).__module__.startswith("hypothesis"):
            raise
        found.faults.append("".join(traceback.format_exception(error)[-4:]) + _drawn(draw))
    finally:
        found.slowest = max(found.slowest, perf_counter() - started)
        shutil.rmtree(folder, ignore_errors=True)


def _wrong_sentence(text: str) -> str:
    """What keeps a refusal from being one sentence; empty where nothing does."""
    if len(text.splitlines()) != 1 or not text.isprintable():
        return "a refusal of several lines, or with control characters"
    if "Traceback" in text or len(text) < SHORTEST or " " not in text:
        return "a refusal that is no sentence"
    return ""


def _drawn(draw: Draw) -> str:
    text = repr(draw.drawn)
    return f"drawn: {text if len(text) < 2000 else text[:2000] + ' ...'}\n"


def _plain(text: str, folder: Path) -> str:
    """A sentence without what differs from input to input: the folder, numbers, what is quoted."""
    return re.sub(r"'[^']*'|[-+\d.e]*\d[-+\d.e]*", "#", text.replace(str(folder), "FOLDER"))[:160]


@contextmanager
def _runs_in(folder: Path) -> Iterator[None]:
    before = os.environ.get("ORTHOBENCH_RUNS")
    os.environ["ORTHOBENCH_RUNS"] = str(folder / "runs")
    try:
        yield
    finally:
        os.environ.pop("ORTHOBENCH_RUNS")
        if before is not None:
            os.environ["ORTHOBENCH_RUNS"] = before


@contextmanager
def _limited() -> Iterator[None]:
    """Raise TimeoutError once SECONDS are over."""

    def end(*_: Any) -> None:
        raise TimeoutError(f"more than {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
