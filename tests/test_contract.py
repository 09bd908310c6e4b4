"""What users, scripts and notebooks rely on."""

import csv
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import orthobench
from orthobench.__main__ import main
from orthobench.errors import ConfigError
from tests.conftest import write

TINY = (
    "model.hidden_size=8",
    "T=5",
    "trainer.max_steps=6",
    "trainer.val_check_interval=3",
    "trainer.log_every_n_steps=2",
    "task.train_size=40",
    "task.val_size=30",
    "task.test_size=30",
)
KEYS = {
    "status", "run_id", "model", "task", "T", "seed", "steps", "epochs", "parameters", "budget", "baseline", "metrics",
    "orthogonality", "config", "code", "env", "hardware", "time", "curve", "reason",
}  # fmt: skip


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[orthobench.Any, dict[str, Any], Path]:
    root = tmp_path_factory.mktemp("contract")
    exp = orthobench.build("model=scornn", "task=copying", *TINY, f"runs_root={root}")
    return exp, exp.run(), root


def test_the_record_has_every_key(finished: Any) -> None:
    exp, record, root = finished
    assert set(record) >= KEYS
    assert json.loads((root / exp.run_id / "record.json").read_text()) == record
    assert record["status"] == "done"
    assert record["run_id"] == exp.run_id == f"copying-scornn-{exp.run_id[-10:]}"
    assert (record["model"], record["task"], record["T"], record["seed"]) == ("scornn", "copying", 5, 1)
    assert (record["steps"], record["epochs"]) == (6, 3)
    assert set(record["parameters"]) == {"total", "recurrent"}
    assert record["budget"] == {"state_bytes": 4 * 8, "multiply_adds": 8 * 8 + 9 * 8}
    assert set(record["metrics"]) == {"best_val", "last", "best_test"}
    assert record["metrics"]["best_test"] is None
    for which in ("best_val", "last"):
        assert set(record["metrics"][which]) == {"test/loss", "test/accuracy", "val/loss", "val/accuracy"}
    assert set(record["orthogonality"]) >= {"max", "last"}
    assert 0 <= record["orthogonality"]["last"] <= record["orthogonality"]["max"] < 1e-4
    assert set(record["time"]) >= {"wall_s", "train_s", "steps_per_s"}
    assert set(record["code"]) >= {"git", "dirty"}
    assert record["baseline"]["loss"] == pytest.approx(10 * math.log(8) / 25)


def test_the_run_folder(finished: Any) -> None:
    exp, _, root = finished
    there = {p.name for p in (root / exp.run_id).iterdir()}
    assert there >= {"config.yaml", "record.json", "metrics.csv", "checkpoints"}
    assert [p.name for p in root.iterdir()] == [exp.run_id]
    with (root / exp.run_id / "metrics.csv").open() as file:
        rows = list(csv.DictReader(file))
    names = {row["name"] for row in rows}
    assert names >= {"train/loss", "gradient_norm", "orthogonality", "val/loss", "val/accuracy", "steps_per_s"}
    assert {int(row["step"]) for row in rows if row["name"] == "train/loss"} == {2, 4, 6}
    assert {int(row["step"]) for row in rows if row["name"] == "val/loss"} == {3, 6}


def test_config_yaml_gives_the_same_run(finished: Any) -> None:
    import yaml

    exp, record, root = finished
    stored = yaml.safe_load((root / exp.run_id / "config.yaml").read_text())
    whole = str(Path(exp.settings.run["data_root"]).absolute())
    assert stored == {**exp.settings.as_dict(), "data_root": whole} == record["config"]


def test_asked_for_again_it_is_found(finished: Any, capsys: pytest.CaptureFixture[str]) -> None:
    _exp, record, root = finished
    again = orthobench.build("model=scornn", "task=copying", *TINY, f"runs_root={root}").run()
    assert again == record
    assert "done already" in capsys.readouterr().out


def test_records_is_a_table(finished: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    exp, record, root = finished
    table = orthobench.records(root)
    assert list(table["run_id"]) == [exp.run_id]
    assert table["metrics.best_val.test/loss"][0] == record["metrics"]["best_val"]["test/loss"]
    monkeypatch.setenv("ORTHOBENCH_RUNS", str(root))
    assert list(orthobench.records()["run_id"]) == [exp.run_id]
    with pytest.raises(ConfigError, match="is not a folder of runs"):
        orthobench.records(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    empty = orthobench.records(tmp_path / "empty")
    assert empty.empty
    assert list(empty[empty["model"] == "lstm"]["status"]) == []


def test_a_metric_is_what_an_independent_evaluation_gives(finished: Any) -> None:
    exp, record, _root = finished
    losses, sizes = [], []
    with torch.no_grad():
        for index in range(exp.task.batches("test")):
            x, target = exp.task.batch("test", 0, index)
            y, _ = exp.model.eval()(x)
            losses.append(torch.nn.functional.cross_entropy(y.flatten(0, 1), target.flatten()).item() * len(x))
            sizes.append(len(x))
    assert record["metrics"]["last"]["test/loss"] == pytest.approx(sum(losses) / sum(sizes), rel=1e-5)


@pytest.mark.parametrize("task", ["copying", "adding"])
@pytest.mark.parametrize("model", ["scornn", "rnn", "irnn", "gru", "lstm"])
def test_the_python_contract(model: str, task: str) -> None:
    exp = orthobench.build(f"model={model}", f"task={task}", "T=7", "model.hidden_size=6", "seed=1")
    x, target = exp.task.sample(3, 11)
    assert x.shape[0] == 3
    y, state = exp.model(x, state=None)
    assert y.shape == ((3, 27, 9) if task == "copying" else (3, 1))
    y_again, _ = exp.model(x, state=state)
    assert not torch.equal(y, y_again)
    assert all(W.shape == (6, 6) for W in exp.model.recurrent_weights())
    assert bool(exp.model.recurrent_weights()) == (model == "scornn")
    assert exp.task.loss(y, target).ndim == 0
    assert "loss" in exp.task.metrics
    assert set(exp.task.metrics) >= set(exp.task.baseline)
    assert set(exp.parameters) == {"total", "recurrent"}
    assert all(torch.equal(a, b) for a, b in zip(exp.task.sample(3, 11), (x, target), strict=True))
    h, final = orthobench.recurrence(exp.model.cells[0], x)
    assert h.shape == (3, x.shape[1], 6)
    torch.testing.assert_close(h[:, -1], final[0])


def test_the_same_seed_builds_the_same_model_and_another_does_not() -> None:
    one, two, other = (orthobench.build("T=5", f"seed={seed}").model.state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(one[key], two[key]) for key in one)
    assert not all(torch.equal(one[key], other[key]) for key in one)


@pytest.mark.parametrize("options", [("--config-dir", "{}", "-cd", "{}"), ("--config-dir={}", "--config-dir={}")])
def test_several_folders_of_configuration(
    options: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The model is in the first and the recipe in the second: in a run, in a verb and where Hydra answers."""
    first = write(tmp_path / "a, b", {"model/mine.yaml": "cell: elman\nrecurrent: free\nhidden_size: 8\n"})
    second = write(tmp_path / "c", {"recipe/ours.yaml": "# @package _global_\nT: 6\n"})
    places = iter((first, second))
    given = [word.format(next(places)) if "{}" in word else word for word in options]
    words = [*given, "model=mine", "recipe=ours", *(word for word in TINY if word[:2] not in ("T=", "mo"))]
    assert main(["show", *words]) == 0
    assert main([*words, "--cfg", "job"]) == 0
    assert "\nT: 6\n" in capsys.readouterr().out
    assert main([*words, f"runs_root={tmp_path / 'runs'}"]) == 0
    record = json.loads(next((tmp_path / "runs").glob("*/record.json")).read_text())
    assert (record["model"], record["T"], record["parameters"]["total"] > 0) == ("mine", 6, True)


def test_a_batch_budget_of_parameters() -> None:
    for model in ("scornn", "lstm", "gru"):
        exp = orthobench.build(f"model={model}", "params=22000")
        assert abs(exp.parameters["total"] - 22000) < 220
    assert orthobench.build("model=lstm", "params=22109").settings.model["hidden_size"] == 68
    assert orthobench.build("model=scornn", "params=21764").settings.model["rho"] == 95


def test_importing_the_package_imports_no_torch() -> None:
    code = "import orthobench, sys; sys.exit(bool({'torch', 'lightning', 'hydra', 'pandas'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.slow
def test_training_needs_only_the_core_packages(tmp_path: Path) -> None:
    """With logger=csv: torch, numpy, lightning, hydra-core, omegaconf (torchmetrics wants SciPy, matplotlib)."""
    code = (
        "import sys\n"
        "for name in ('wandb', 'torchtext', 'pandas', 'pooch', 'soundfile', 'tensorboard'):\n"
        "    sys.modules[name] = None\n"
        "from orthobench.__main__ import main\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    words = [*TINY, f"runs_root={tmp_path / 'runs'}"]
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "words", [("show", *TINY), ("list", "models", "--counts"), ("plan", *TINY, "seed=1,2"), ("doctor",)]
)
@pytest.mark.sampled(2)
def test_verbs_answer(words: tuple[str, ...], capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(list(words)) == 0
    out = capsys.readouterr().out
    expected = {
        "list": "760 bytes of state,   37,810 multiply-adds",
        "show": "32 bytes of state, 136 multiply-adds",
        "doctor": "a run can start",
        "plan": "2 missing",
    }
    assert expected[words[0]] in out


def test_doctor_tries_the_plug_ins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "broken_cells.py").write_text("def")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("ORTHOBENCH_PLUGINS", "broken_cells")
    assert main(["doctor"]) == 2
    assert capsys.readouterr().out.count("broken_cells") >= 2


def test_the_last_line_names_metric_baseline_and_record(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*TINY, "task=adding", "seed=5"]) == 0
    last = capsys.readouterr().out.strip().splitlines()[-1]
    assert "test loss" in last
    assert "(baseline 0.1667)" in last
    assert Path(last.split()[-1]).is_file()


def test_a_diverged_run_is_final_and_has_code_4(tmp_path: Path) -> None:
    tiny = (word for word in TINY if not word.startswith("trainer.log_every_n_steps="))
    words = [*tiny, "task=adding", "model=irnn", "optimizer=sgd", "optimizer.lr=1e30", "trainer.log_every_n_steps=1"]
    assert main(words) == 4
    (path,) = Path(orthobench.build(*words).settings.folder).glob("record.json")
    record = json.loads(path.read_text())
    assert record["status"] == "diverged"
    assert "step" in record["reason"]
    assert "NaN" not in path.read_text()
    assert main(words) == 4


def test_best_test_only_where_the_paper_selected_on_test() -> None:
    record = orthobench.build("task=copying", *TINY, "task.select_on_test=true").run()
    assert set(record["metrics"]["best_test"]) == {"test/loss", "test/accuracy"}
    assert record["metrics"]["best_test"]["test/loss"] <= record["metrics"]["last"]["test/loss"] + 1e-6
