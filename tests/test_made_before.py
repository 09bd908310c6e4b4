"""What earlier versions of the program made is still valid: run ids, a finished run's folder, a checkpoint."""

import json
import shutil
from pathlib import Path

import pytest

import orthobench

BEFORE = Path(__file__).parent / "made_before"
RUN = "recall-rnn-5613bd3813"
WORDS = (
    "model=rnn", "task=recall", "recipe=none", "T=5", "model.hidden_size=4", "task.val_size=2", "task.test_size=2",
    "task.batch_size=2", "logger=none", "trainer.max_steps=2",
)  # fmt: skip
RUN_IDS = json.loads((BEFORE / "run_ids.json").read_text())


@pytest.mark.sampled(12)
@pytest.mark.parametrize("words", RUN_IDS)
def test_run_ids_stay(words: str) -> None:
    assert orthobench.build(*words.split()).run_id == RUN_IDS[words]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(BEFORE / RUN, tmp_path / "runs" / RUN))


def test_a_finished_run_is_found_done(folder: Path) -> None:
    record = orthobench.build(*WORDS, f"runs_root={folder.parent}").run()
    assert record == json.loads((BEFORE / RUN / "record.json").read_text())


def test_a_checkpoint_is_resumed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = json.loads((folder / "record.json").read_text())
    (folder / "record.json").unlink()
    record = orthobench.build(*WORDS, f"runs_root={folder.parent}").run()
    assert "resuming at step 2" in capsys.readouterr().out
    for weights in ("best_val", "last"):  # another processor may round the last digit otherwise
        assert record["metrics"][weights] == pytest.approx(before["metrics"][weights], rel=1e-6)
