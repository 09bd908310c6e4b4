"""Sweeps: one child process per job; a job that fails harms no other; one live table, or one line a run."""

import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from orthobench.common import signals
from orthobench.errors import ConfigError
from orthobench.launch.processes import TIMED_OUT, Job, Pool, exit_code
from orthobench.launch.workers import Command
from orthobench.study.catalogue import SHIPPED
from orthobench.study.overview import Overview, Watched
from orthobench.study.summary import show
from orthobench.study.sweep import jobs
from orthobench.study.sweep_run import Ending
from orthobench.tasks.metric import ACCURACY, SQUARED_ERROR, Metric

TINY = (
    "T=4",
    "model.hidden_size=4",
    "trainer.max_steps=2",
    "task.train_size=null",
    "task.val_size=4",
    "task.test_size=4",
)


def test_jobs_are_the_product_with_the_last_key_fastest() -> None:
    words = SHIPPED.parse(["model=scornn,lstm", "T=10", "seed=1,2"])
    assert jobs(words) == [
        ["model=scornn", "++T=10", "++seed=1"],
        ["model=scornn", "++T=10", "++seed=2"],
        ["model=lstm", "++T=10", "++seed=1"],
        ["model=lstm", "++T=10", "++seed=2"],
    ]


@pytest.mark.parametrize("values", ["range(1,4)", "choice(1,2,3)", "1,2,3"])
def test_hydras_sweep_grammar(values: str) -> None:
    assert [job[0] for job in jobs(SHIPPED.parse([f"seed={values}"]))] == ["++seed=1", "++seed=2", "++seed=3"]


@pytest.mark.parametrize("word", ["seed=range(5,1)", "T=range(200,100,50)", "optimizer.lr=range(1,1)"])
def test_a_range_without_values_is_refused(word: str) -> None:
    """In place of a sweep of no runs that succeeds."""
    with pytest.raises(ConfigError, match=r"=range\(.* has no values"):
        jobs(SHIPPED.parse(["model=gru", word]))


@pytest.mark.slow
def test_a_sweep_runs_and_a_second_one_finds_its_runs(cli, tmp_path: Path) -> None:
    done = cli("-m", "model=scornn,rnn", *TINY)
    assert done.returncode == 0, done.stderr
    assert "2 of 2 runs done" in done.stdout
    runs = sorted(path.parent.name.rsplit("-", 1)[0] for path in (tmp_path / "runs").glob("*/record.json"))
    assert runs == ["copying-rnn", "copying-scornn"]
    again = cli("-m", "model=scornn,rnn", *TINY, "hydra/launcher=joblib", "hydra.launcher.n_jobs=2")
    assert again.returncode == 0
    assert "2 of 2 runs done" in again.stdout


def test_a_sweep_without_a_terminal_prints_a_line_for_each_run(cli) -> None:
    done = cli("-m", "model=rnn", "task=adding", "seed=1,2", *TINY, "trainer.val_check_interval=1")
    first, count, one, two, last, title, *table = done.stdout.splitlines()
    assert (count, last) == ("2 runs", "2 of 2 runs done")
    told = r"done, val loss [\d.]+, test loss [\d.]+, [\d.]+s"
    assert re.fullmatch(rf"\[1/2\] seed=1: {told}; about [\d.ms ]+ left", one)
    assert re.fullmatch(rf"\[2/2\] seed=2: {told}", two), "only what is swept is named"
    assert "reads the configuration" in first
    assert title.startswith("adding, T=4: best first by validation loss, lower is better, mean over seeds")
    assert [line.split()[0] for line in table] == ["seeds", "2", "next:", *["orthobench"] * 3]
    for line in table[-3:]:
        words = shlex.split(line, comments=True)[1:]
        assert cli(*words).returncode == 0, line


def test_words_of_the_same_run_are_one_run(cli) -> None:
    done = cli("-m", "model=rnn", "engine=reference,fused", *TINY)
    assert done.returncode == 0, done.stderr
    assert "1 of 1 runs done" in done.stdout
    assert "engine=fused is the same run as engine=reference, which is done once" in done.stderr


@pytest.mark.slow
def test_one_failure_spoils_nothing_and_gives_its_code(cli) -> None:
    launcher = ["hydra/launcher=joblib", "hydra.launcher.n_jobs=2"]
    words = ("model=irnn", "task=adding", "optimizer=sgd", "optimizer.lr=1e-3,1e30,2e-3", "trainer.max_steps=8")
    tiny = [word for word in TINY if not word.startswith("trainer.max_steps=")]  # -m refuses a key given twice
    done = cli("-m", *tiny, *words, *launcher)
    assert done.returncode == 4, done.stdout + done.stderr
    assert "2 of 3 runs done, 1 diverged" in done.stdout
    assert "optimizer.lr=1e+30" in done.stderr or "optimizer.lr=1e30" in done.stderr
    assert "exit code 4" in done.stderr


@pytest.mark.slow
def test_a_wrong_job_is_refused_before_any_starts(cli, tmp_path: Path) -> None:
    done = cli("-m", "model=scornn,lstm", "model.rho=1", *TINY)
    assert done.returncode == 2
    assert "model.rho does not apply to model=" in done.stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("codes", "expected"),
    [([0, 0], 0), ([0, 4, 3], 4), ([TIMED_OUT, 4], 75), ([-9], 75), ([-11], 1), ([0, 75], 75), ([], 0)],
)
def test_a_sweep_ends_with_a_code_of_the_contract(codes: list[int], expected: int) -> None:
    assert exit_code(codes) == expected


def test_several_values_need_m() -> None:

    with pytest.raises(ConfigError, match="add -m"):
        SHIPPED.compose(["seed=1,2"])


def test_a_run_going_on_elsewhere_is_not_counted_as_done(capsys: pytest.CaptureFixture[str]) -> None:
    runs: Any = [SimpleNamespace(words=[f"seed={n}"], case="adding", log=Path("none")) for n in (1, 2)]
    elsewhere, lacking = Ending(0, "elsewhere", "", {}), Ending(3, "failed", "exit code 3: no data", {})
    assert show(runs, {0: elsewhere, 1: lacking}, SHIPPED) == 3
    out, err = capsys.readouterr()
    assert "0 of 2 runs done, 1 running elsewhere, 1 failed" in out
    assert err == "seed=2: exit code 3: no data\n"
    assert show(runs, {0: elsewhere, 1: elsewhere}, SHIPPED) == 75
    assert show(runs, {0: elsewhere}, SHIPPED) == 1
    assert "not started: seed=2\n" in capsys.readouterr().err


def test_a_sweep_that_was_stopped_before_its_first_run_says_what_resumes_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    runs: Any = [SimpleNamespace(words=[f"seed={n}"], case="adding", log=Path("none")) for n in (1, 2)]
    monkeypatch.setattr(signals, "asked", lambda: signal.SIGINT)
    assert show(runs, {}, SHIPPED) == 75
    assert capsys.readouterr().err == "not started: seed=1; seed=2; the same command resumes\n"


def swept(words: list[str], score: float | None, task: str = "adding") -> tuple[Any, Ending]:
    """A run of a sweep, and its ending with this validation score, or without one."""
    kind = SHIPPED.settings([f"task={task}"]).parts.task
    name, known = kind.metric, kind.metric_of(kind.metric)
    settings = SimpleNamespace(parts=SimpleNamespace(task=kind), run_id="x", folder=Path("runs/x"))
    run = SimpleNamespace(words=words, case=task, log=Path("none"), settings=settings, metric=known)
    if score is None:
        return run, Ending(4, "diverged", "diverged (exit code 4): the loss is nan", {})
    return run, Ending(0, "done", "", {f"val/{name}": score, f"test/{name}": 1.0}, name)


@pytest.mark.parametrize(("task", "order"), [("adding", ["2", "1", "3"]), ("pmnist", ["1", "2", "3"])])
def test_the_summary_is_sorted_by_validation_with_means_over_seeds(
    task: str, order: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orthobench.study.summary._next", lambda *_: [])
    scores = {("1", "1"): 0.5, ("1", "2"): 0.75, ("2", "1"): 0.25, ("2", "2"): 0.25, ("3", "1"): 0.1, ("3", "2"): None}
    found = [swept(["T=9", f"optimizer.lr={lr}", f"seed={seed}"], score, task) for (lr, seed), score in scores.items()]
    assert show([run for run, _ in found], dict(enumerate(ending for _, ending in found)), SHIPPED) == 4
    out, err = capsys.readouterr()
    rows = [line.split() for line in out.splitlines()[3:]]
    assert [row[0] for row in rows] == order, "a row with a seed that is not done is last"
    assert next(row for row in rows if row[0] == "1")[1:6] == ["2", "0.625", "(0.5", "to", "0.75)"]
    assert next(row for row in rows if row[0] == "3")[1:5] == ["1", "of", "2", "0.1"]
    assert err == "optimizer.lr=3 seed=2: diverged (exit code 4): the loss is nan\n"


@pytest.mark.slow
def test_a_sweep_on_a_terminal_has_a_table_and_no_output_of_its_runs(tmp_path: Path) -> None:
    pytest.importorskip("rich", reason="rich is not installed")
    master, slave = pty.openpty()
    words = ["-m", "model=rnn", "task=adding", "seed=1,2", *TINY, "trainer.val_check_interval=1"]
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "LINES": "30"}
    process = subprocess.Popen(
        [sys.executable, "-m", "orthobench", *words], cwd=tmp_path, env=env, stdin=slave, stdout=slave, stderr=slave
    )
    os.close(slave)
    given = b""
    with suppress(OSError):  # the other side has closed it
        while block := os.read(master, 1 << 16):
            given += block
    os.close(master)
    assert process.wait() == 0
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", given.decode())
    assert "sweep of seed: 0 of 2 runs" in text
    assert "best so far: validation loss" in text
    assert "2 of 2 runs done\r\n" in text
    assert "config.yaml" not in text


class Fake:
    """A process that ends by itself after some looks at it, or when it is asked to."""

    alive: ClassVar[int] = 0
    most: ClassVar[int] = 0

    def __init__(self, command: list[str], **_: Any) -> None:
        self.looks, self.code = int(command[-1]), 0
        Fake.alive += 1
        Fake.most = max(Fake.most, Fake.alive)

    def poll(self) -> int | None:
        self.looks -= 1
        if self.looks > 0:
            return None
        Fake.alive -= 1
        return self.code

    def terminate(self) -> None:
        self.looks, self.code = 1, 75


@dataclass(frozen=True, eq=False)
class Looked(Job):
    """A job whose process ends after some looks at it."""

    looks: int = 0

    def command(self) -> Command:
        return replace(super().command(), words=[str(self.looks)])


def ended(pool: Pool, jobs: list[Looked]) -> list[tuple[int, int]]:
    return [(job.looks, code) for some in pool.run(list(jobs)) for job, code in some if isinstance(job, Looked)]


def job(looks: int, run: str, timeout: float | None = None) -> Looked:
    return Looked([Path(run)], None, timeout, looks=looks)


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orthobench.launch.workers.subprocess.Popen", Fake)
    monkeypatch.setattr("orthobench.launch.processes.TICK_S", 0.001)
    Fake.alive = Fake.most = 0


@pytest.mark.usefixtures("processes")
def test_a_pool_runs_some_at_once_but_never_one_run_twice() -> None:
    jobs = [job(9, "a"), job(2, "a"), job(3, "b"), job(4, "c")]
    assert ended(Pool(2, lambda: False), jobs) == [(3, 0), (4, 0), (9, 0), (2, 0)]
    assert Fake.most == 2


@pytest.mark.usefixtures("processes")
def test_a_pool_asks_what_is_late_to_stop_and_does_not_start_what_is_known() -> None:
    pool = Pool(1, lambda: False, lambda job: 3 if job.runs == [Path("b")] else None)
    late, known, other = job(10**9, "a", timeout=0.01), job(5, "b"), job(2, "c")
    assert ended(pool, [late, known, other]) == [(10**9, TIMED_OUT), (5, 3), (2, 0)]


@pytest.mark.usefixtures("processes")
def test_a_stopped_pool_stops_its_processes_and_starts_none() -> None:
    asked = iter([False, False, True])
    assert ended(Pool(1, lambda: next(asked, True)), [job(10**9, "a"), job(1, "b")]) == [(10**9, 75)]


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
