"""Stopped at any step, or in a validation, and started again, a run ends bitwise as the unbroken one.

Everything that its checkpoints hold is equal: weights, optimizer, random states, loops and counters.
"""

from pathlib import Path
from typing import Any

import pytest

from tests.faults import runs
from tests.faults.conftest import REPO, Count, Server

STEPS = 24


@pytest.fixture(scope="module")
def unbroken(server: Server, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What every run ends with when nothing happens."""
    found = {}
    for name, words in runs.RUNS.items():
        home = tmp_path_factory.mktemp("unbroken")
        assert server.run(home, *words) == 0, (home / "output.txt").read_text()
        found[name] = runs.outcome(home)
    return found


def resumes(server: Server, home: Path, words: tuple[str, ...], step: int, expected: Any, workers: int) -> bool:
    workers_word = f"task.num_workers={workers}"
    assert server.run(home, *words, workers_word, stop_at_step=step) == 75, (home / "output.txt").read_text()
    assert runs.record(home)["steps"] == step
    assert server.run(home, *words, workers_word) == 0, (home / "output.txt").read_text()
    return runs.outcome(home) == expected


@pytest.mark.slow
@pytest.mark.parametrize("name", ["scornn, dropout", "ncgru, reset inside", "carried state"])
def test_one_point(server: Server, tmp_path: Path, name: str, unbroken: dict[str, Any], count: Count) -> None:
    assert resumes(server, tmp_path, runs.RUNS[name], 15, unbroken[name], 0)
    count("resume points bitwise equal")


VALIDATIONS = [  # of three batches; the fourth is the last of 20 steps, and the fifth comes after the last of 24
    *((20, {"stop_in_validation": within}) for within in [(1, 0), (2, 1), (3, 2), (4, 0), (4, 2)]),
    *((24, fault) for fault in [{"stop_in_validation": (5, 0)}, {"stop_in_validation": (5, 2)}]),
    (24, {"kill_after_validation": 5}),
]


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("steps", "fault"), VALIDATIONS, ids=str)
@pytest.mark.parametrize("name", ["scornn, dropout", "svd"])
def test_broken_off_in_a_validation(
    server: Server, tmp_path: Path, name: str, steps: int, fault: dict[str, Any], count: Count
) -> None:
    words = (*runs.RUNS[name], "task.eval_batch_size=7", f"trainer.max_steps={steps}")
    assert server.run(tmp_path / "whole", *words) == 0
    assert server.run(tmp_path / "home", *words, **fault) == (-9 if "kill_after_validation" in fault else 75)
    assert server.run(tmp_path / "home", *words) == 0
    assert runs.outcome(tmp_path / "home") == runs.outcome(tmp_path / "whole")
    count("resume points bitwise equal")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("step", [5, 19, 20])
@pytest.mark.parametrize("name", ["scornn, dropout", "carried state"])
def test_stopped_before_a_validation(server: Server, tmp_path: Path, name: str, step: int, count: Count) -> None:
    words = (*runs.RUNS[name], "trainer.max_steps=20")
    assert server.run(tmp_path / "whole", *words) == 0
    assert resumes(server, tmp_path / "home", words, step, runs.outcome(tmp_path / "whole"), 0)
    count("resume points bitwise equal")


FEED_FORWARD = ("mlp", "resnet", "spectral_mlp", "spectral_resnet")  # which have no sequences
GEODESIC = ("urnn_exp", "ugru", "sgornn_exp")
MODELS: dict[str, tuple[str, ...]] = {
    **{path.stem: () for path in sorted((REPO / "conf/model").glob("*.yaml")) if path.stem not in FEED_FORWARD},
    **{f"{name}, geodesic": ("model.gradient=geodesic",) for name in GEODESIC},
    "ncgru, code": ("variant=code",),
    "gru, householder": ("model.recurrent=householder",),
}


@pytest.mark.faults
@pytest.mark.parametrize("name", MODELS)
def test_every_model_stopped_once_and_killed_once(server: Server, tmp_path: Path, name: str, count: Count) -> None:
    words = (f"model={name.partition(',')[0]}", *MODELS[name], *runs.MODEL)
    assert server.run(tmp_path / "whole", *words) == 0, (tmp_path / "whole" / "output.txt").read_text()
    expected = runs.outcome(tmp_path / "whole")
    assert resumes(server, tmp_path / "stopped", words, 13, expected, 0)
    assert server.run(tmp_path / "killed", *words, kill_at_step=18) == -9
    assert server.run(tmp_path / "killed", *words) == 0
    assert runs.outcome(tmp_path / "killed") == expected
    count("resume points bitwise equal", 2)


@pytest.mark.faults
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("name", runs.RUNS)
def test_every_step(
    server: Server, tmp_path: Path, name: str, workers: int, unbroken: dict[str, Any], count: Count
) -> None:
    points = range(1, STEPS)
    wrong = [
        step
        for step in points
        if not resumes(server, tmp_path / str(step), runs.RUNS[name], step, unbroken[name], workers)
    ]
    assert not wrong
    count("resume points bitwise equal", len(points))


@pytest.mark.faults
@pytest.mark.parametrize("name", runs.RUNS)
def test_stopped_at_every_step_in_turn(
    server: Server, tmp_path: Path, name: str, unbroken: dict[str, Any], count: Count
) -> None:
    for step in range(1, STEPS):
        assert server.run(tmp_path, *runs.RUNS[name], stop_at_step=step) == 75
    assert server.run(tmp_path, *runs.RUNS[name]) == 0
    assert runs.outcome(tmp_path) == unbroken[name]
    count("resume points bitwise equal", STEPS - 1)
