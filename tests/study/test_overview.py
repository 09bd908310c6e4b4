"""Progress of many runs: one live table on a terminal, one line a run elsewhere."""

import os
import pty
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from orthobench.study.overview import Overview, Watched
from orthobench.tasks.metric import ACCURACY, SQUARED_ERROR, Metric

CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def run(seed: int, folder: Path = Path(), metric: Metric | None = SQUARED_ERROR, work: float = 1.0) -> Watched:
    return Watched(f"seed={seed}", {"seed": str(seed)}, folder, 100, work, metric=metric)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_line_for_each_run_that_has_ended(capsys: pytest.CaptureFixture[str]) -> None:
    clock, runs = Clock(), [run(seed) for seed in (1, 2, 3, 4)]
    with Overview("sweep of seed", runs, clock=clock) as overview:
        for number, one in enumerate(runs):
            overview.begin(one)
            clock.now += 60
            overview.end(one, "done" if number else "failed", f"told {number}", 0.5, good=number > 0)
    out, err = capsys.readouterr()
    assert err == "[1/4] seed=1: told 0; about 3m 0s left\n"
    assert out.splitlines() == [
        "[2/4] seed=2: told 1; about 2m 0s left",
        "[3/4] seed=3: told 2; about 1m 0s left",
        "[4/4] seed=4: told 3",
    ]


def test_the_time_left_counts_the_work_and_what_is_half_done(tmp_path: Path) -> None:
    clock = Clock()
    short, long = run(1, work=1.0), run(2, tmp_path, work=3.0)
    overview = Overview("x", [short, long], clock=clock)
    assert overview.left_s() is None
    overview.begin(short)
    clock.now = 10.0
    overview.end(short, "done", "")
    overview.begin(long)
    assert overview.left_s() == pytest.approx(30.0)
    (tmp_path / "metrics.csv").write_text("step,epoch,name,value\n50,0,val/loss,0.25\n50,0,train/loss,9\n60,0,val")
    long.look()
    assert (long.step, long.score) == (50, 0.25), "the last line is not whole"
    assert overview.left_s() == pytest.approx(10.0 * 1.5 / 2.5)


def test_what_was_done_before_takes_no_time_and_trials_to_come_are_counted() -> None:
    clock = Clock()
    overview = Overview("x", total=6, before=2, clock=clock)
    known = run(1)
    overview.begin(known)
    clock.now = 5.0
    overview.end(known, "done", "")
    assert overview.left_s() == pytest.approx(15.0)
    assert overview.headline() == "3 of 6 runs, 5.0s, about 15.0s left"


@pytest.mark.parametrize(("metric", "best"), [(SQUARED_ERROR, 0.1), (ACCURACY, 0.9)])
def test_the_best_follows_the_direction_of_the_metric(metric: Metric, best: float) -> None:
    overview = Overview("x", runs := [run(seed, metric=metric) for seed in (1, 2, 3)])
    for one, (state, score) in zip(runs, [("done", 0.9), ("done", 0.1), ("pruned", 0.0)], strict=True):
        overview.end(one, state, "", score)
    assert [found.score for found in overview.best().values()] == [best]


@contextmanager
def terminal(monkeypatch: pytest.MonkeyPatch, term: str = "xterm") -> Iterator[list[bytes]]:
    """Make standard output a pseudo terminal; at the end the list has what it was given."""
    master, slave = pty.openpty()
    given: list[bytes] = []

    def read() -> None:
        with suppress(OSError):  # all writers have closed it
            while block := os.read(master, 1 << 16):
                given.append(block)

    reader = threading.Thread(target=read)
    reader.start()
    with open(slave, "w") as out, monkeypatch.context() as patched:  # noqa: PTH123, a descriptor
        patched.setattr("sys.stdout", out)
        for name, value in {"TERM": term, "COLUMNS": "100", "LINES": "12"}.items():
            patched.setenv(name, value)
        yield given
    reader.join()
    os.close(master)


def test_a_terminal_has_one_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rich", reason="rich is not installed")
    runs = [run(seed, tmp_path) for seed in range(1, 31)]
    runs[1].values = {"seed": "2", "model": "[red]\x1b[2Jodd"}
    (tmp_path / "metrics.csv").write_text("step,epoch,name,value\n50,0,val/loss,0.25\n")
    with terminal(monkeypatch) as given, Overview("sweep of seed", runs) as overview:
        overview.begin(runs[0])
        overview.end(runs[0], "done", "never printed", 0.125)
        overview.begin(runs[1])
        assert overview._live is not None
        overview._live.refresh()
    raw = b"".join(given)
    text = CODES.sub("", raw.decode())
    assert "sweep of seed: 1 of 30 runs" in text
    assert "best so far: validation loss 0.125, seed=1" in text
    assert re.search(r"2 +\[red\]\\x1b\[2Jodd +running +50 of 100 steps +0.25", text)
    assert "and 26 more" in text, "no more lines than the terminal has"
    assert "never printed" not in text
    assert b"\x1b[2J" not in raw
    assert raw.rstrip().endswith(b"\x1b[2K"), "wiped away at the end"
    assert raw.rindex(b"\x1b[?25h") > raw.rindex(b"\x1b[?25l"), "the cursor is back"


@pytest.mark.parametrize("term", ["dumb", ""])
def test_a_terminal_that_cannot_draw_has_lines(term: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal(monkeypatch, term) as given, Overview("sweep of seed", [one := run(1)]) as overview:
        overview.end(one, "done", "told")
    assert b"".join(given) == b"[1/1] seed=1: told\r\n"
