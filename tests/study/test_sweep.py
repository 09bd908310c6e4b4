"""Sweeps: one child process per job; a job that fails harms no other."""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from orthobench.errors import ConfigError
from orthobench.launch.processes import TIMED_OUT, Job, Pool, exit_code
from orthobench.launch.workers import Command
from orthobench.study.catalogue import SHIPPED
from orthobench.study.sweep import _summary, jobs

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
    first, count, *lines, last = done.stdout.splitlines()
    assert (count, last) == ("2 runs", "2 of 2 runs done, 0 not")
    assert [line.partition("]")[0] for line in lines] == ["[1", "[2"]
    assert all(re.search(r": done, test loss [\d.]+$", line) for line in lines)
    assert "reads the configuration" in first


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
    assert "2 of 3 runs done, 1 not" in done.stdout
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


class Elsewhere:
    """A cell whose run has no final record yet."""

    folder = Path("runs/adding-rnn-0123456789")
    words: ClassVar[list[str]] = []

    def code(self) -> int | None:
        return None


def test_a_run_going_on_elsewhere_is_not_counted_as_done(capsys: pytest.CaptureFixture[str]) -> None:
    cells: Any = [Elsewhere(), Elsewhere()]
    assert _summary(cells, {0: 0, 1: 3}) == 3
    assert "0 of 2 runs done, 1 running elsewhere, 1 not" in capsys.readouterr().out
    assert _summary(cells, {0: 0, 1: 0}) == 75


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
    pool = Pool(1, lambda: False, lambda job: 3 if job.folders == [Path("b")] else None)
    late, known, other = job(10**9, "a", timeout=0.01), job(5, "b"), job(2, "c")
    assert ended(pool, [late, known, other]) == [(10**9, TIMED_OUT), (5, 3), (2, 0)]


@pytest.mark.usefixtures("processes")
def test_a_stopped_pool_stops_its_processes_and_starts_none() -> None:
    asked = iter([False, False, True])
    assert ended(Pool(1, lambda: next(asked, True)), [job(10**9, "a"), job(1, "b")]) == [(10**9, 75)]
