"""A run is that of its settings, and other data are read as its model was taught to."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

import orthobench
from orthobench.errors import ConfigError, MemoryExhausted
from orthobench.run.dynamics import dynamics
from orthobench.run.evaluate import evaluate
from orthobench.run.generate import generate
from tests.run.finished import SMALL, finished

ADDING = ("model=gru", "task=adding", "T=8")
OWN = (
    "model=gru", "recipe=none", "logger=none", "model.hidden_size=4", "trainer.max_steps=2",
    "trainer.val_check_interval=1", "task.batch_size=4",
)  # fmt: skip


def text(path: Path, letters: str) -> Path:
    path.write_text("".join(letters[i] for i in np.random.default_rng(1).integers(len(letters), size=3000)))
    return path


def series(path: Path, x: np.ndarray, y: np.ndarray) -> Path:
    np.savez(path, x=x, y=y)
    return path


def own(root: Path, *words: str) -> Path:
    """The folder of a run on a file of one's own."""
    exp = orthobench.build(*OWN, *words, f"runs_root={root / 'runs'}")
    exp.run()
    return exp.settings.folder


def score(folder: Path, **task: object) -> float:
    (made,) = evaluate(orthobench.load(folder), **task)  # type: ignore[arg-type]
    return made["metrics"]["test/loss"]


def test_what_was_done_to_a_model_is_no_part_of_its_run(tmp_path: Path) -> None:
    _, plain = finished(tmp_path / "a", *ADDING)
    exp = orthobench.build(*SMALL, *ADDING, f"runs_root={tmp_path / 'b'}")
    with torch.no_grad():
        for p in exp.model.parameters():
            p.mul_(3)
    exp.task.batch_size = 3
    assert exp.run()["metrics"] == plain["metrics"]
    shutil.rmtree(exp.settings.folder)
    assert exp.run()["metrics"] == plain["metrics"], "nor are the weights that an earlier one ended with"


def test_an_evaluation_is_of_the_weights_in_the_folder(tmp_path: Path) -> None:
    folder, _ = finished(tmp_path, *ADDING)
    run = orthobench.load(folder)
    with torch.no_grad():
        run.model.cells[0].U.zero_()
    (changed,) = evaluate(run, [9])
    shutil.rmtree(folder / "evaluations")
    (fresh,) = evaluate(orthobench.load(folder), [9])
    assert changed["metrics"] == fresh["metrics"]


def test_another_text_is_read_by_the_vocabulary_of_the_training_text(tmp_path: Path) -> None:
    mine, other = text(tmp_path / "mine.txt", "abcdefgh"), text(tmp_path / "other.txt", "ijklmnop")
    folder = own(tmp_path, "task=text", f"task.path={mine}", "T=10")
    run = orthobench.load(folder)
    made = orthobench.build(*OWN, "task=text", f"task.path={other}", "T=10").task
    made.read_as(run.task)
    unknown = run.task.vocabulary().index("<unk>")
    assert set(made.batch("test", 0, 0)[0].flatten().tolist()) == {unknown}
    assert score(folder, path=str(other)) != score(folder)


def test_other_sequences_are_scaled_by_the_moments_of_training(tmp_path: Path) -> None:
    x = np.random.default_rng(1).normal(size=(60, 6, 2))
    mine = series(tmp_path / "mine.npz", x, x.sum((1, 2)))
    folder = own(tmp_path, "task=series", f"task.path={mine}")
    moved = series(tmp_path / "moved.npz", x, 50 * x.sum((1, 2)) + 3000)
    assert score(folder, path=str(moved)) > 1000 * score(folder)


def test_classes_keep_their_outputs(tmp_path: Path) -> None:
    x = np.random.default_rng(1).normal(size=(60, 6, 2))
    y = np.where(x[:, :, 0].mean(1) > 0, "dog", "cat")
    folder = own(tmp_path, "task=series", f"task.path={series(tmp_path / 'a.npz', x, y)}")
    dogs = series(tmp_path / "dogs.npz", x, np.where(y == "cat", "zebra", y))
    with pytest.raises(ConfigError, match=r"dogs\.npz has the class zebra, which .*a\.npz has not"):
        score(folder, path=str(dogs))


def test_what_asks_for_the_data_looks_whether_they_have_changed(tmp_path: Path) -> None:
    mine = text(tmp_path / "mine.txt", "abcdefgh")
    folder = own(tmp_path, "task=text", f"task.path={mine}", "T=10")
    text(mine, "zbcdefgh")
    with pytest.raises(ConfigError, match="is stale: it was trained before a change of the data in"):
        orthobench.load(folder).task.check()  # which knows its tokens from them
    text(mine, "abcdefgh")
    run = orthobench.load(folder)
    text(mine, "zbcdefgh")
    for ask in (lambda: list(generate(run, "b", 3, 1.0, 1)), lambda: dynamics(run, 1), lambda: evaluate(run, T=5)):
        with pytest.raises(ConfigError, match="is stale: it was trained before a change of the data in"):
            ask()


def test_first_weights_that_mean_another_matrix_are_refused(tmp_path: Path) -> None:
    folder, _ = finished(tmp_path, "model=scornn", "task=adding", "T=8", "model.rho=1")
    words = (*SMALL, "model=scornn", "task=adding", "T=9", f"init_from={folder}", f"runs_root={tmp_path}")
    assert orthobench.build(*words, "model.rho=1").model is not None
    with pytest.raises(ConfigError, match=r"compute something else here: model\.rho=2 is 1 there"):
        orthobench.build(*words, "model.rho=2").model  # noqa: B018
    with pytest.raises(ConfigError, match=r"does not fit this run's model: .*hidden_size=6 is 4 there"):
        orthobench.build(*words, "model.rho=1", "model.hidden_size=6").model  # noqa: B018


def test_a_test_that_cannot_fit_is_refused_before_it_is_tried(tmp_path: Path) -> None:
    folder, _ = finished(tmp_path, *ADDING)
    with pytest.raises(MemoryExhausted, match="100,000,000,000 steps needs"):
        evaluate(orthobench.load(folder), [100_000_000_000])


def test_words_are_no_list() -> None:
    with pytest.raises(ConfigError, match="each an argument of its own"):
        orthobench.build(["model=gru"])  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="'model=gru task=adding' is several: split it"):
        orthobench.build("model=gru task=adding")
