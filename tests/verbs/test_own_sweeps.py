"""compare, best and plot of a folder of runs."""

import shlex
from pathlib import Path

import pytest

from orthobench.__main__ import main
from orthobench.errors import ConfigError
from orthobench.study.catalogue import SHIPPED
from tests.conftest import Refused
from tests.own_runs import run

pytestmark = pytest.mark.usefixtures("here")

ADDING = ("task=adding", "T=20")


@pytest.fixture
def sweep() -> Path:
    for seed in (1, 2, 3):
        for lr, val in (("0.01", 0.00020), ("0.001", 0.00031)):
            run(Path("runs"), "model=gru", *ADDING, f"optimizer.lr={lr}", f"seed={seed}", val=val + seed / 1e5)
    run(Path("runs"), "model=scornn", *ADDING, val=None, status="diverged", reason="the training loss is nan at step 3")
    run(Path("runs"), "model=lstm", *ADDING, status="stopped", reason="stopped by SIGTERM at step 4")
    return Path("runs")


def test_compare(sweep: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "runs/"]) == 0
    out, err = capsys.readouterr()
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert lines[0] == "# runs: 7 finished runs, 1 left out"
    assert "gru 0.01 best 0.0002200 ± 0.0000248 (n=3) 0.0002200 ± 0.0000248 (n=3) 100 10" in " ".join(lines)
    assert any(line.startswith("trivial predictor 0.25") for line in lines)
    assert any("none (n=0 of 1)" in line for line in lines)
    assert any("diverged: the training loss is nan at step 3" in line for line in lines)
    assert err.endswith(": left out, stopped, stopped by SIGTERM at step 4.\n")


def test_a_reason_to_leave_runs_out_is_told_once(sweep: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for seed in (2, 3):
        run(sweep, "model=lstm", *ADDING, f"seed={seed}", status="stopped", reason="stopped by SIGTERM at step 4")
    assert main(["compare", "runs/"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("# runs: 7 finished runs, 3 left out")
    assert [line.partition(" and ")[2] for line in err.splitlines()] == [
        "2 more: left out, stopped, stopped by SIGTERM at step 4."
    ]


def test_compare_tells_that_a_matrix_has_left_its_set(capsys: pytest.CaptureFixture[str]) -> None:
    run(Path("mine"), "model=scornn", *ADDING, orthogonality={"max": 1.0, "last": 1.0, "lost": 7})
    assert main(["compare", "mine/"]) == 0
    out = capsys.readouterr().out
    assert "a constrained matrix has left its set, as was first seen at step 7." in out
    assert "  1 run\n" in out


def test_best_prints_commands_that_can_be_run(sweep: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["best", "runs", "model=gru", "--by", "model"]) == 0
    out = capsys.readouterr().out
    (command,) = [line for line in out.splitlines() if not line.startswith("#")]
    words = shlex.split(command)
    assert words[:2] == ["orthobench", "-m"]
    assert {"seed=1,2,3", "optimizer.lr=0.01", "trainer.max_steps=20", "T=20"} <= set(words)
    assert SHIPPED.settings([*[w for w in words[2:] if not w.startswith("seed=")], "seed=1"]).optimizer["lr"] == 0.01
    assert main(["best", "runs", "model=gru", "--by", "optimizer.lr", "--steps", "500"]) == 0
    assert capsys.readouterr().out.count("trainer.max_steps=500") == 2


def test_best_lifts_the_limit_of_a_recipe_again(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["model=lstm", *ADDING, "recipe=none"]
    run(Path("runs"), *words)
    assert main(["best", "runs"]) == 0
    told = shlex.split(capsys.readouterr().out.splitlines()[-1])[1:]
    longer = SHIPPED.settings([*words, "trainer.max_steps=20"])
    assert SHIPPED.settings(told).digest == longer.digest, "a sweep of so many steps has this run, too"


def test_best_trains_no_shorter_than_before(sweep: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["best", "runs", "model=gru", "--steps", "10"]) == ConfigError.exit_code
    assert "--steps 10 is not longer than the run, which has 10: give more." in capsys.readouterr().err


def test_best_tells_that_its_choice_is_stale(capsys: pytest.CaptureFixture[str]) -> None:
    run(Path("runs"), "model=gru", *ADDING, code={"version": "0", "git": "f" * 40, "dirty": False})
    assert main(["best", "runs"]) == 0
    assert "# stale: made by other code, commit ffffffffff" in capsys.readouterr().out


def test_best_stays_in_a_folder_that_is_not_the_usual_one(capsys: pytest.CaptureFixture[str]) -> None:
    run(Path("mine"), "model=gru", *ADDING)
    assert main(["best", "mine"]) == 0
    assert capsys.readouterr().out.rstrip().endswith("seed=1 trainer.max_steps=20 runs_root=mine")


def test_best_names_what_cannot_be_asked_for_again(refused: Refused) -> None:
    words = ["model=gru", *ADDING]
    config = SHIPPED.settings(words).as_dict()
    run(Path("runs"), *words, config=config | {"model": config["model"] | {"name": "of_a_plug_in"}})
    refused(["best", "runs"], ": model=of_a_plug_in is in no folder given here: add --config-dir FOLDER.")


def test_plot(sweep: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plot", "runs/", "model=gru"]) == 0
    written = sorted(Path("runs/figures").iterdir())
    assert [path.name for path in written] == [
        "adding-t-20-val-loss-by-optimizer-lr.svg",
        "adding-t-20-val-loss-of-each-model-s-best-settings.svg",
    ]
    assert all(path.read_text().startswith("<svg") for path in written)
    assert main(["compare", "runs"]) == 0, "the figures are no run"


@pytest.mark.parametrize("verb", ["compare", "best", "plot"])
def test_a_folder_without_runs(verb: str, refused: Refused) -> None:
    Path("empty").mkdir()
    refused([verb, "empty"], "orthobench: empty has no runs: name a folder of runs, such as runs/.")
    refused([verb, "nowhere/"], "nowhere is not a folder")


def test_words_that_are_wrong(sweep: Path, refused: Refused) -> None:
    refused(["compare", "runs", "scornn"], "name either alone")
    refused(["best", "runs", "--by", "modle"], "did you mean 'model'?")
    refused(["best", "runs", "--steps", "0"], "")
    refused(["best"], "")
