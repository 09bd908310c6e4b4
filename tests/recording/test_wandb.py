"""Runs that are mirrored to W&B by its real client, offline: stopped, killed, resumed, opened again, and in a sweep."""

import importlib.util
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import orthobench
from orthobench.__main__ import main
from orthobench.ensemble.running import run_members
from orthobench.errors import Stopped
from orthobench.recording.checkpoint import previous
from tests.ensemble.helpers import members
from tests.recording.wandb_files import curve, mirrored
from tests.run.test_resume import stop_at

WORDS = (
    "model=gru", "task=adding", "T=4", "model.hidden_size=4", "recipe=none", "trainer.max_steps=6",
    "trainer.val_check_interval=2", "trainer.log_every_n_steps=1", "task.val_size=4", "task.test_size=4",
    "task.batch_size=4",
)  # fmt: skip


@pytest.fixture(params=["beside the run", "WANDB_DIR"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Where the client keeps its files, by the run's folder."""
    if request.param == "WANDB_DIR":
        monkeypatch.setenv("WANDB_DIR", str(tmp_path / "elsewhere"))
        return lambda folder: tmp_path / "elsewhere" / "wandb"
    return lambda folder: folder / "wandb"


def stopped(step: int, *words: str) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        stop_at(step, patch)
        run = orthobench.build(*WORDS, *words)
        with pytest.raises(Stopped):
            run.run()
    return run.settings.folder


def test_a_run_that_was_stopped_or_killed_is_one_run_with_one_curve(place: Any) -> None:
    folder = stopped(5, "logger=wandb")
    last = folder / "checkpoints" / "last.ckpt"
    shutil.copy(previous(last), last)  # as if it had been killed at step 5, after its checkpoint of step 4
    assert orthobench.build(*WORDS, "logger=wandb").run()["status"] == "done"
    found = mirrored(place(folder))
    assert [(one.run_id, one.group, one.project) for one in found] == [(folder.name, folder.name, "orthobench")] * 2
    assert found[1].config["model"]["hidden_size"] == 4
    speeds = "steps_per_s"  # of the first attempt, where both have measured it
    rows = [row for one in found for row in one.rows]
    assert sorted(row for row in rows if row[1] != speeds) == sorted(row for row in curve(folder) if row[1] != speeds)
    assert sorted(row[0] for row in rows if row[1] == speeds) == [1, 2, 3, 4, 5, 6]
    assert (place(folder) / "latest-run").is_symlink()


def test_with_links_of_the_client_in_its_folder_a_run_can_be_opened(tmp_path: Path) -> None:
    folder = Path(os.environ["ORTHOBENCH_RUNS"]) / orthobench.build(*WORDS, "logger=wandb").run()["run_id"]
    assert (folder / "wandb" / "latest-run").is_symlink()
    for words in (["eval", str(folder)], ["inspect", str(folder)], ["export", str(folder)],
                  ["collect", str(folder.parent), f"runs_root={tmp_path / 'there'}"],
                  [*WORDS, "logger=none", f"init_from={folder}", "seed=2"]):  # fmt: skip
        assert main(words) == 0, words
    assert orthobench.load(folder).record["status"] == "done"
    assert not (tmp_path / "there" / folder.name / "wandb").exists()
    assert main([*WORDS, "logger=wandb"]) == 0  # it is done


@pytest.mark.parametrize("how", ["another logger", "a shorter run"])
def test_a_w_and_b_run_that_begins_later_has_the_whole_curve(how: str) -> None:
    if how == "another logger":
        folder = stopped(5, "logger=csv")
        assert orthobench.build(*WORDS, "logger=wandb").run()["status"] == "done"
    else:
        assert orthobench.build(*WORDS, "trainer.max_steps=4", "logger=wandb").run()["status"] == "done"
        longer = orthobench.build(*WORDS, "logger=wandb")
        assert longer.run()["steps"] == 6
        folder = longer.settings.folder
    (found,) = mirrored(folder / "wandb")
    assert sorted(found.rows) == sorted(curve(folder))


def test_the_members_of_an_ensemble_have_a_run_each(tmp_path: Path) -> None:
    runs = members(tmp_path, "model=scornn", "task=adding", "logger=wandb")
    assert run_members(runs) == [0, 0, 0]
    for run in runs:
        (found,) = mirrored(run.settings.folder / "wandb")
        assert (found.run_id, found.group) == (run.run_id, run.settings.with_seed(1).run_id)
        assert found.config["seed"] == run.settings.run["seed"]
        assert sorted(found.rows) == sorted(curve(run.settings.folder))


def test_the_end_has_a_table_figures_tags_and_the_weights_that_are_asked_for() -> None:
    words = (*WORDS, "logger=wandb", "logger.tags=[mine]")
    groups = set()
    for more in (["seed=1", "logger.artifacts=true"], ["seed=2"]):
        run = orthobench.build(*words, *more)
        record = run.run()
        (found,) = mirrored(run.settings.folder / "wandb")
        groups.add(found.group)
        assert set(found.tags) == {"mine", "gru", "adding", "T=4"}
        assert found.summary["best_val/test/loss"] == record["metrics"]["best_val"]["test/loss"]
        assert {name: one["_type"] for name, one in found.media.items()} == {
            "scores": "table-file", "figures/loss": "image-file",
        }  # fmt: skip
        (kept,) = (run.settings.folder / "wandb").glob("offline-run-*/files")
        table = json.loads((kept / found.media["scores"]["path"]).read_text())
        assert ["test/loss", *(record["metrics"][which]["test/loss"] for which in ("best_val", "last"))] == next(
            row[:3] for row in table["data"] if row[0] == "test/loss"
        )
        assert (kept / found.media["figures/loss"]["path"]).read_bytes().startswith(b"\x89PNG")
        weights = [names for kind, names in found.artifacts if kind == "model"]
        assert weights == ([{"best.ckpt", "last.ckpt"}] if len(more) == 2 else [])
    assert groups == {orthobench.build(*WORDS, "seed=1").run_id}


def test_a_run_of_the_users_own_goes_on(tmp_path: Path) -> None:
    import wandb

    own = wandb.init(project="mine", id="mine", dir=tmp_path, mode="offline")
    try:
        exp = orthobench.build(*WORDS, "logger=wandb")
        exp.run()
        assert wandb.run is own
        own.log({"x": 1.0, "trainer/global_step": 1})
    finally:
        own.finish()
    (found,) = mirrored(tmp_path / "wandb")
    assert found.rows == [(1, "x", 1.0)]
    assert [one.run_id for one in mirrored(exp.settings.folder / "wandb")] == [exp.run_id]


@pytest.mark.slow
def test_stopped_by_timeout_with_its_group_it_resumes_and_can_be_synced(tmp_path: Path) -> None:
    words = [*WORDS, "trainer.max_steps=6000", "trainer.val_check_interval=100", "logger=wandb"]
    program = [sys.executable, "-m", "orthobench", *words]
    run = orthobench.build(*words)
    first = subprocess.run(["timeout", "5", *program], cwd=tmp_path, capture_output=True, text=True)
    assert first.returncode == 124, first.stderr
    assert "stopped by SIGTERM" in first.stderr
    second = subprocess.Popen(program, cwd=tmp_path, start_new_session=True)
    with pytest.raises(subprocess.TimeoutExpired):
        second.wait(5)
    os.killpg(second.pid, signal.SIGKILL)  # and the client with it
    second.wait()
    short = run.run()
    assert short["status"] == "done"
    found = mirrored(run.settings.folder / "wandb", patience_s=1)
    assert {one.run_id for one in found} == {run.run_id}
    names = [(step, name) for one in found for step, name, _ in one.rows]
    assert len(names) == len(set(names))
    dry = [str(Path(sys.executable).with_name("wandb")), "sync", "--dry-run", str(run.settings.folder / "wandb")]
    done = subprocess.run(dry, capture_output=True, text=True)
    assert f"Would sync {len(found)} run(s)" in done.stdout + done.stderr


FILE = Path(__file__).resolve().parents[2] / "scripts" / "wandb_sweep.yaml"
SHORT = {
    "trainer.max_steps": 2,
    "model.hidden_size": 4,
    "model.rho": 2,
    "T": 5,
    "task.val_size": 4,
    "task.test_size": 4,
}


def sweep() -> dict[str, Any]:
    return yaml.safe_load(FILE.read_text(encoding="utf-8"))


def test_the_file_is_right_by_the_clients_schema() -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed: pip install 'orthobench[site]'")
    found = importlib.util.find_spec("sweeps")
    if found is None or found.origin is None:
        pytest.skip("the client's schema of sweeps is in its package sweeps: pip install --no-deps sweeps")
    schema = json.loads((Path(found.origin).parent / "config" / "schema.json").read_text(encoding="utf-8"))
    validator = jsonschema.Draft7Validator(schema)
    assert [error.message for error in validator.iter_errors(sweep())] == []
    assert list(validator.iter_errors(sweep() | {"method": "guess"}))  # so it does check


def test_every_value_is_a_setting() -> None:
    from orthobench.study.catalogue import SHIPPED

    given = {name: one.get("values", [one.get("value")]) for name, one in sweep()["parameters"].items()}
    ids = set()
    for values in itertools.product(*given.values()):
        words = [f"{name}={value}" for name, value in zip(given, values, strict=True)]
        ids.add(SHIPPED.settings([*words, "logger=wandb"]).run_id)
    assert len(ids) == 3 * 2 * 3


def test_what_an_agent_runs_is_a_run_of_its_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from wandb.wandb_agent import Agent

    started: list[tuple[list[str], dict[str, str]]] = []

    class Process:
        def __init__(self, command: list[str], env: dict[str, str], **_: Any) -> None:
            started.append((command, env))

    monkeypatch.setattr("wandb.wandb_agent.AgentProcess", Process)
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    monkeypatch.setenv("WANDB_SWEEP_ID", "abcd1234")
    for name in ("WANDB_RUN_ID", "WANDB_SWEEP_PARAM_PATH"):
        monkeypatch.setenv(name, "")  # the agent sets them for every run
    agent, asked = Agent.__new__(Agent), sweep()
    agent._sweep_command, agent._in_jupyter, agent._function = asked["command"], False, None
    agent._run_processes, agent._forward_signals = {}, False
    values = {name: one.get("values", [one.get("value")])[0] for name, one in asked["parameters"].items()} | SHORT
    args = {name: {"value": value} for name, value in values.items()}
    agent._command_run({"type": "run", "run_id": "agents-own", "program": asked["program"], "args": args})
    ((command, env),) = started
    assert command[:4] == ["/usr/bin/env", "python", "-m", "orthobench"]
    assert "T=5" in command
    assert command[-1] == "logger=wandb"
    paths = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "ORTHOBENCH_RUNS": str(tmp_path / "runs")}
    done = subprocess.run(command, env=env | paths | {"WANDB_MODE": "offline"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (folder,) = (path for path in (tmp_path / "runs").iterdir() if path.name.startswith("copying-scornn-"))
    assert json.loads((folder / "record.json").read_text())["status"] == "done"
    (found,) = mirrored(tmp_path / "wandb")
    assert (found.sweep, found.run_id) == ("abcd1234", "agents-own")
    assert found.group.startswith("copying-scornn-")
    assert {"val/loss", "train/loss"} & {name for _, name, _ in found.rows}
