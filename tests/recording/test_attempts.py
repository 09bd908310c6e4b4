"""A run that moved between devices or engines lists where it was, and none of its times is taken."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import orthobench
from orthobench.errors import Stopped
from orthobench.recording.attempts import are_attempts, begun_earlier, in_words, is_mixed, joined, seconds_of
from orthobench.recording.checkpoint import SafeCheckpointIO
from orthobench.report.own import troubles
from orthobench.study.catalogue import SHIPPED
from orthobench.study.records import records
from orthobench.study.records.own_runs import read
from orthobench.study.verdicts.comparison import compare
from tests.recording.test_wandb import WORDS
from tests.report.made_up import made_up
from tests.report.made_up import record as made
from tests.run.test_resume import stop_at

GPU = {"device": "cuda", "name": "NVIDIA H200", "engine": "triton", "torch": "2.11.0", "steps": 40, "seconds": 2.0}
CPU = {"device": "cpu", "name": "EPYC", "engine": "native", "torch": "2.13.0", "steps": 10, "seconds": 30.0}


def record(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "record.json").read_text())


def begun(step: int, *words: str) -> Path:
    run = orthobench.build(*WORDS, *words)
    with pytest.MonkeyPatch.context() as patch:
        stop_at(step, patch)
        with pytest.raises(Stopped):
            run.run()
    return run.settings.folder


def test_attempts_of_one_kind_are_joined_and_others_are_mixed() -> None:
    assert joined([CPU, CPU | {"steps": 0}, CPU]) == [CPU | {"steps": 20, "seconds": 60.0}]
    assert not is_mixed(joined([CPU, CPU]))
    assert not is_mixed(None)
    for other in (GPU, CPU | {"engine": "reference"}, CPU | {"name": "Xeon"}):
        assert is_mixed([CPU, other])
    assert not is_mixed([CPU, CPU | {"torch": "2.14.0"}])
    assert in_words([GPU, CPU]) == (
        "cuda (NVIDIA H200, triton, torch 2.11.0): 40 steps in 2 s; cpu (EPYC, native, torch 2.13.0): 10 steps in 30 s"
    )
    assert in_words(begun_earlier(7, 3.0, on_gpu=True)) == "cuda: 7 steps in 3 s"


NAMELESS = {"of" if word == "device" else word: value for word, value in CPU.items()}


@pytest.mark.parametrize("wrong", [None, {}, [1], [{}], [CPU | {"steps": "1"}], [CPU | {"device": None}], [NAMELESS]])
def test_what_is_no_list_of_attempts(wrong: Any) -> None:
    assert not are_attempts(wrong)
    assert are_attempts([GPU, CPU])


def test_a_run_that_goes_on_with_another_engine_has_moved() -> None:
    folder = begun(3, "engine=reference")
    assert [one["steps"] for one in record(folder)["attempts"]] == [3]
    done = orthobench.build(*WORDS, "engine=native").run()
    found = [(one["device"], one["engine"], one["steps"]) for one in done["attempts"]]
    assert found == [("cpu", "reference", 3), ("cpu", "native", 3)]
    assert abs(sum(one["seconds"] for one in done["attempts"]) - done["time"]["wall_s"]) < 0.01
    line = records.line(done, "full", "a", {}, 10)
    assert line.moved is not None
    assert "reference" in line.moved
    assert line.values["engine"] == "reference, native"
    assert not [name for name in line.values if name.startswith(("time/", "memory/"))]
    (folder / "record.json").unlink()
    assert orthobench.build(*WORDS, "engine=native").run()["attempts"] == done["attempts"]
    (run,) = read([folder]).finished
    assert any("moved, and has no times" in told for told in troubles([run]))


def test_a_run_that_stays_has_one_attempt_and_its_times() -> None:
    begun(3)
    done = orthobench.build(*WORDS).run()
    assert [one["steps"] for one in done["attempts"]] == [6]
    line = records.line(done, "full", "a", {}, 10)
    assert line.moved is None
    assert "moved" not in line.values
    assert line.values["time/minutes_per_epoch"] > 0


def test_a_checkpoint_of_an_earlier_version_tells_of_its_gpu_alone() -> None:
    folder = begun(3)
    path = folder / "checkpoints" / "last.ckpt"
    state = SafeCheckpointIO().load_checkpoint(path)
    del state["callbacks"]["Saver"]["attempts"]
    state["callbacks"]["Saver"]["random"].append(torch.zeros(16, dtype=torch.uint8))
    SafeCheckpointIO().save_checkpoint(state, path)
    done = orthobench.build(*WORDS).run()
    assert [(one["device"], one["steps"]) for one in done["attempts"]] == [("cuda", 3), ("cpu", 3)]
    assert records.line(done, "full", "a", {}, 10).moved


def test_a_table_counts_the_score_of_a_run_that_moved_but_not_its_time(tmp_path: Path) -> None:
    table = SHIPPED.table("scornn/table3")
    (cell,) = [row for row in table.rows if row.startswith("scornn")][:1]
    moved = {"moved": "cuda: 40 steps in 2 s; cpu: 10 steps in 30 s", "best_val:test/accuracy": 0.9}
    made(tmp_path, table.name, [made_up(cell, 1, **moved)])
    (line,) = records.read(tmp_path, table.name)
    assert line.metric("test/accuracy") == 0.9
    found = compare(table, tmp_path)
    assert [note for note in found.notes if "moved, and has no times: cuda: 40 steps" in note]
    timed = [
        one for one in found.numbers if one.printed.metric == "time/minutes_per_epoch" and cell in one.printed.rows
    ]
    assert timed
    assert all(one.scores.done == 0 and not one.scores.diverged for one in timed)


def test_the_seconds_of_each_device_are_read_back() -> None:
    assert seconds_of(in_words([GPU, CPU, GPU])) == {"cuda": 2 * round(GPU["seconds"]), "cpu": round(CPU["seconds"])}
    assert seconds_of(in_words(begun_earlier(7000, 3000.0, on_gpu=True))) == {"cuda": 3000.0}
    told = "cuda (H200, torch 2.11): 40,700 steps in 235 s, two side by side; cpu: 5 steps in about 34 minutes"
    assert seconds_of(told) == {"cuda": 235.0, "cpu": 2040.0}
