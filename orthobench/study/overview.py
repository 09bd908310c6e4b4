"""Progress of many runs: on a terminal one table that is drawn anew, elsewhere a line for each run that has ended."""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orthobench.common.terminal import complain, duration_text, is_terminal, say, visible
from orthobench.recording.curve import tail
from orthobench.tasks.metric import Metric

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

PER_SECOND = 2  # drawings of the table
AROUND = 7  # lines of the table that are not runs
ENOUGH = 0.005  # of the work, before the time left is told
COLOURS = {"done": "green", "running": "cyan", "waiting": "dim"}


@dataclass(eq=False)
class Watched:
    """Run that is shown.

    Attributes:
        label: its name in a line.
        values: what tells it from the others, by the heading of the column.
        folder: where its curves grow.
        steps: how many it has in all; None where that is not known.
        work: rough measure of its arithmetic, without a unit.
        case: those with the same one are compared; the best of each is shown.
        metric: the validation score, by which they are compared; None where they are not.
        state: `waiting`, `running`, or how it has ended.
        score: its validation score; the latest one while it runs.
    """

    label: str
    values: Mapping[str, str]
    folder: Path
    steps: int | None = None
    work: float = 1.0
    case: str = ""
    metric: Metric | None = None
    state: str = "waiting"
    score: float | None = None
    step: int = 0
    ended: bool = False
    spent_s: float = 0.0
    began: float | None = field(default=None, repr=False)

    @property
    def share(self) -> float:
        """The share of its work that is done."""
        return 1.0 if self.ended else min(self.step / self.steps, 1.0) if self.steps else 0.0

    def look(self) -> None:
        """Read how far it is from the end of its curves."""
        found = tail(self.folder / "metrics.csv")
        if found:
            self.step = found[-1]["step"]
            scores = [row for row in found if row["name"].startswith("val/")]
            first = scores[0]["name"] if scores else ""
            self.score = next((row["value"] for row in reversed(scores) if row["name"] == first), self.score)


class Overview:
    """Shows some runs while they are done; a context, from whose start the time counts.

    Args:
        title: what the runs are.
        runs: those that are known at the start.
        total: how many there will be, those `before` among them; the known ones and these when None.
        before: how many were done before, and are not shown.
        clock: seconds.
    """

    def __init__(
        self,
        title: str,
        runs: Iterable[Watched] = (),
        total: int | None = None,
        before: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.title, self.runs, self.before, self.clock = title, list(runs), before, clock
        self.total = before + len(self.runs) if total is None else total
        self.started, self._live, self._one = clock(), None, threading.RLock()

    def __enter__(self) -> "Overview":
        self.started, console = self.clock(), _console()
        if console is not None:
            from rich.live import Live

            self._live = Live(
                get_renderable=lambda: self.drawn(console.height),
                console=console,
                refresh_per_second=PER_SECOND,
                transient=True,
                redirect_stderr=is_terminal(sys.stderr),
            )
            self._live.start(refresh=True)
        return self

    def __exit__(self, *_: Any) -> None:
        if self._live is not None:
            with suppress(OSError, ValueError):  # a terminal that is gone
                self._live.stop()
            self._live = None

    def begin(self, run: Watched) -> None:
        """Show a run as running."""
        with self._one:
            if run not in self.runs:
                self.runs.append(run)
            run.state, run.began = "running", self.clock()

    def end(self, run: Watched, state: str, told: str, score: float | None = None, good: bool = True) -> None:
        """Show how a run has ended.

        Args:
            run: it may not have begun.
            state: `done`, or another word or two.
            told: what the line about it says; without a terminal it is printed.
            score: its validation score.
            good: whether the line goes to standard output; otherwise to standard error.
        """
        with self._one:
            if run not in self.runs:
                self.runs.append(run)
            run.state, run.score, run.ended = state, score, True
            run.spent_s = 0.0 if run.began is None else self.clock() - run.began
            count = self.before + sum(one.ended for one in self.runs)
        if self._live is None:
            left = self.left_s()
            rest = "" if left is None else f"; about {duration_text(left)} left"
            (say if good else complain)(f"[{count}/{self.total}] {run.label}: {told}{rest}")

    def left_s(self) -> float | None:
        """Seconds left at the speed so far, by the work of the runs; None at the start and at the end."""
        with self._one:
            counted = [run for run in self.runs if not run.ended or run.began is not None]  # others took no time
            known = sum(run.work for run in counted)
            done = sum(run.work * run.share for run in counted)
            unknown = self.total - self.before - len(self.runs)
        all_work = known * (1 + max(unknown, 0) / len(counted)) if counted else 0.0
        if not all_work or not ENOUGH < done / all_work < 1:
            return None
        return (self.clock() - self.started) * (all_work - done) / done

    def headline(self) -> str:
        """`3 of 12 runs, 1 diverged, 1m 0s, about 3m 0s left`."""
        ended = [run for run in self.runs if run.ended]
        wrong = [run.state for run in ended if run.state != "done"]
        left = self.left_s()
        parts = [f"{self.before + len(ended)} of {self.total} runs"]
        parts += [f"{wrong.count(state)} {state}" for state in dict.fromkeys(wrong)]
        parts += [duration_text(self.clock() - self.started)]
        parts += [] if left is None else [f"about {duration_text(left)} left"]
        return ", ".join(parts)

    def best(self) -> dict[str, Watched]:
        """The best run of each case, among those that are done."""
        found: dict[str, Watched] = {}
        for run in self.runs:
            if run.state == "done" and run.score is not None and run.metric is not None:
                sign = 1 if run.metric.direction == "higher" else -1
                other = found.get(run.case)
                if other is None or sign * run.score > sign * (other.score or 0.0):
                    found[run.case] = run
        return found

    def drawn(self, height: int) -> "RenderableType":
        """The table on a terminal of `height` lines: runs at work, the last that ended, some to come."""
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        with self._one:
            for run in self.runs:
                if run.state == "running":
                    run.look()
            done = self.before + sum(run.share for run in self.runs)
            lines: list[RenderableType] = [Text(f"{visible(self.title)}: {self.headline()}", style="bold")]
            bar = Table.grid()
            bar.add_row(ProgressBar(total=max(self.total, 1), completed=done, width=60))
            lines.append(bar)
            best = list(self.best().items())[:3]
            for case, run in best:
                where = f" on {case}" if case else ""
                name = run.metric.name if run.metric else ""
                lines.append(Text(visible(f"best so far{where}: validation {name} {run.score:.4g}, {run.label}")))
            shown = self._chosen(max(height - AROUND - len(best), 1))
            if shown:
                table = Table(box=None, pad_edge=False, header_style="underline")
                heads = list(dict.fromkeys(name for run in shown for name in run.values))
                for name in (*heads, "state", "progress", "validation"):
                    table.add_column(Text(visible(name)), no_wrap=True)
                for run in shown:
                    cells = *(run.values.get(name, "") for name in heads), *_cells(run)
                    table.add_row(*(Text(visible(text)) for text in cells), style=COLOURS.get(run.state, "red"))
                lines.append(table)
            hidden = len(self.runs) - len(shown)
            if hidden:
                lines.append(Text(f"and {hidden} more", style="dim"))
        return Group(*lines)

    def _chosen(self, most: int) -> list[Watched]:
        """At most so many runs, in the order of the sweep: first of all those at work."""
        running = [run for run in self.runs if run.state == "running"]
        ended = [run for run in self.runs if run.ended]
        waiting = [run for run in self.runs if run.state == "waiting"]
        picked = running[:most]
        few = max(most - len(picked) - min(len(waiting), 2), 0)
        picked += ended[-few:] if few else []
        picked += waiting[: max(most - len(picked), 0)]
        return [run for run in self.runs if run in picked]


def _cells(run: Watched) -> tuple[str, str, str]:
    far = f"{run.step:,} of {run.steps:,} steps" if run.steps else f"{run.step:,} steps"
    far = duration_text(run.spent_s) if run.ended else far if run.state == "running" else ""
    return run.state, far, "" if run.score is None else f"{run.score:.4g}"


def _console() -> "Console | None":
    """The terminal that a table can be drawn on; None where there is none, or rich is not installed."""
    if not is_terminal(sys.stdout) or os.environ.get("TERM") in (None, "", "dumb"):
        return None
    try:
        from rich.console import Console
    except ImportError:
        return None
    return Console(file=sys.stdout, markup=False, highlight=False, emoji=False)
