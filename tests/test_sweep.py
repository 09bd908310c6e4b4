"""Sweeps: one child process per job; a job that fails harms no other."""

from pathlib import Path

import pytest

from orthobench.config import parse
from orthobench.errors import ConfigError
from orthobench.sweep import jobs

TINY = (
    "T=4",
    "model.hidden_size=4",
    "trainer.max_steps=2",
    "task.train_size=null",
    "task.val_size=4",
    "task.test_size=4",
)


def test_jobs_are_the_product_with_the_last_key_fastest() -> None:
    words = parse(["model=scornn,lstm", "T=10", "seed=1,2"])
    assert jobs(words) == [
        ["model=scornn", "++T=10", "++seed=1"],
        ["model=scornn", "++T=10", "++seed=2"],
        ["model=lstm", "++T=10", "++seed=1"],
        ["model=lstm", "++T=10", "++seed=2"],
    ]


@pytest.mark.parametrize("values", ["range(1,4)", "choice(1,2,3)", "1,2,3"])
def test_hydras_sweep_grammar(values: str) -> None:
    assert [job[0] for job in jobs(parse([f"seed={values}"]))] == ["++seed=1", "++seed=2", "++seed=3"]


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


@pytest.mark.slow
def test_one_failure_spoils_nothing_and_gives_its_code(cli) -> None:
    launcher = ["hydra/launcher=joblib", "hydra.launcher.n_jobs=2"]
    words = ("model=irnn", "task=adding", "optimizer=sgd", "optimizer.lr=1e-3,1e30,2e-3", "trainer.max_steps=8")
    done = cli("-m", *TINY, *words, *launcher)
    assert done.returncode == 4, done.stdout + done.stderr
    assert "2 of 3 runs done, 1 not" in done.stdout
    assert "optimizer.lr=1e+30" in done.stderr or "optimizer.lr=1e30" in done.stderr
    assert "exit code 4" in done.stderr


def test_a_wrong_job_is_refused_before_any_starts(cli, tmp_path: Path) -> None:
    done = cli("-m", "model=scornn,lstm", "model.rho=1", *TINY)
    assert done.returncode == 2
    assert "model.rho does not apply here" in done.stderr
    assert not (tmp_path / "runs").exists()


def test_several_values_need_m() -> None:
    from orthobench.config import compose

    with pytest.raises(ConfigError, match="add -m"):
        compose(["seed=1,2"])
