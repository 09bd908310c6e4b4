"""scripts/wandb_sweep.yaml: right by the client's own schema, and what an agent makes of it runs in its sweep."""

import importlib.util
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.recording.wandb_files import mirrored

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
