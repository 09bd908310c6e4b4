"""Other data than a run's own: where they are, how much of them is the test, and what of them is not unseen."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import orthobench
from orthobench.__main__ import main
from orthobench.errors import ConfigError, DataError
from orthobench.recording.digest import owned, read_sealed, write_sealed
from orthobench.run.evaluate import evaluate
from orthobench.run.run import Run
from orthobench.study.catalogue import SHIPPED

OWN = (
    "model=gru", "recipe=none", "logger=none", "model.hidden_size=4", "trainer.max_steps=2",
    "trainer.val_check_interval=1", "task.batch_size=4",
)  # fmt: skip
X = np.random.default_rng(1).normal(size=(60, 6, 2))
Y = np.random.default_rng(2).integers(0, 2, 60)
LETTERS = "".join("abcdefgh \n"[i] for i in np.random.default_rng(1).integers(10, size=4000))


def series(path: Path, x: np.ndarray = X, y: np.ndarray = Y, **more: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, x=x, y=y, **more)
    return path


def build(root: Path, path: Path, *words: str, task: str = "series") -> Run:
    return orthobench.build(*OWN, f"task={task}", f"task.path={path}", *words, f"runs_root={root / 'runs'}")


def done(root: Path, path: Path, *words: str, task: str = "series") -> Path:
    exp = build(root, path, *words, task=task)
    exp.run()
    return exp.settings.folder


def test_a_finished_run_finds_its_data_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    series(tmp_path / "A" / "my.npz")
    monkeypatch.chdir(tmp_path / "A")
    folder = done(tmp_path, Path("my.npz"))
    series(tmp_path / "B" / "my.npz", X + 1)
    monkeypatch.chdir(tmp_path / "B")
    (found,) = evaluate(orthobench.load(folder))
    record = read_sealed(folder / "record.json") or {}
    assert found["metrics"]["test/loss"] == record["metrics"]["best_val"]["test/loss"]
    assert orthobench.load(folder).task.files() == [tmp_path / "A" / "my.npz"]
    (other,) = evaluate(orthobench.load(folder), path="my.npz")
    assert (other["examples"], other["task"]["path"]) == (60, str(tmp_path / "B" / "my.npz"))
    monkeypatch.chdir(tmp_path / "A")
    (same,) = evaluate(orthobench.load(folder), path="my.npz")
    assert (same["examples"], same["found"]) == (12, True)


@pytest.mark.parametrize("task", ["series", "text"])
def test_data_that_have_moved_are_named_with_both_places(task: str, here: Path) -> None:
    (here / "A").mkdir()
    if task == "text":
        path = here / "A" / "my.txt"
        path.write_text(LETTERS)
        folder = done(here, path, "T=10", task="text")
    else:
        path = series(here / "A" / "my.npz")
        folder = done(here, path)
    (here / "A").rename(here / "C")
    with pytest.raises(DataError, match=rf"where they were, {path}, and {here / path.name} is not there either"):
        evaluate(orthobench.load(folder))
    (found,) = evaluate(orthobench.load(folder), path=f"C/{path.name}")
    record = read_sealed(folder / "record.json") or {}
    assert found["metrics"]["test/loss"] == record["metrics"]["best_val"]["test/loss"], "the test part, as it was drawn"


def test_published_data_are_looked_for_where_they_were_and_where_they_are_said_to_be(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = ucr(here / "data")
    exp = orthobench.build(*OWN, "task=ucr", "task.dataset=Mine", "data_root=data", "runs_root=runs")
    exp.run()
    folder = exp.settings.folder.resolve()
    monkeypatch.chdir("/")
    monkeypatch.setenv("ORTHOBENCH_DATA", str(here / "else"))
    assert evaluate(orthobench.load(folder))
    root.rename(here / "moved")
    with pytest.raises(DataError, match=rf"were, {here}/data/ucr/.* nor in {here}/else/ucr/"):
        evaluate(orthobench.load(folder))
    monkeypatch.setenv("ORTHOBENCH_DATA", str(here / "moved"))
    assert evaluate(orthobench.load(folder))


def ucr(root: Path) -> Path:
    rng = np.random.default_rng(4)
    for part in ("TRAIN", "TEST"):
        rows = np.c_[rng.integers(1, 3, 30), rng.normal(size=(30, 16))]
        path = root / "ucr" / "Mine" / f"Mine_{part}.tsv"
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savetxt(path, rows, delimiter="\t", fmt="%.6f")
    return root


def test_a_run_that_recorded_a_relative_path_is_read_where_that_led(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder of an earlier version: config.yaml and the digest have the words, the sources have the place."""
    path = series(tmp_path / "A" / "my.npz")
    folder = done(tmp_path, path)
    record = read_sealed(folder / "record.json") or {}
    text = (folder / "config.yaml").read_text().replace(str(path), "my.npz").partition("\n")[2]
    from orthobench.config import recorded
    from orthobench.config.yaml_file import read_yaml

    (folder / "config.yaml").write_text(text)
    old = recorded.settings(read_yaml(folder / "config.yaml"))
    assert old.task["path"] == "my.npz"
    (folder / "config.yaml").write_text(owned(text, old.digest))
    before = folder.rename(folder.with_name(old.run_id))
    config = record["config"] | {"task": record["config"]["task"] | {"path": "my.npz"}}
    names = {"run_id": old.run_id, "identity": old.digest, "config": config}
    (before / "record.json").unlink()
    write_sealed(before / "record.json", record | names)
    monkeypatch.chdir("/")
    run = orthobench.load(before)
    assert run.task.files() == [path]


@pytest.mark.parametrize(
    ("x", "more", "examples", "seen"),
    [
        (X[:30] + 9, {}, 30, 0),
        (np.r_[X, X[:10] + 9], {}, 70, 38),
        (np.r_[X, X[:10] + 9].astype(np.float32), {}, 70, 38),
        (np.r_[X, X[:10] + 9], {"train": np.arange(60), "test": np.arange(60, 70)}, 10, 0),
        (X[:1], {}, 1, None),
    ],
)
def test_a_file_without_parts_is_scored_whole_and_known_rows_are_counted(
    x: np.ndarray, more: dict[str, Any], examples: int, seen: int | None, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    folder = done(tmp_path, series(tmp_path / "one.npz"))
    y = np.resize(Y, len(x))
    two = series(tmp_path / "two.npz", x, y, **more)
    assert main(["eval", str(folder), f"task.path={two}"]) == 0
    (found,) = evaluate(orthobench.load(folder), path=str(two))
    assert found["examples"] == examples
    if seen is not None:
        assert found["seen"]["train"] == seen
    told = capsys.readouterr().out
    assert f"{found['seen']['train']} of {examples} sequences are in the training part of {folder.name}" in told
    assert ("the score is not of unseen data" in told) == bool(found["seen"]["train"])


def table(path: Path, *columns: int, names: str = "uvw", N: int = 59) -> Path:
    rows = [
        ",".join(map(str, (n, t, Y[n], *(X[n, t, i % 2].item() for i in columns)))) for n in range(N) for t in range(6)
    ]
    path.write_text("\n".join([",".join(("id", "t", "target", *(names[i] for i in columns))), *rows]) + "\n")
    return path


def test_features_are_known_by_their_names(tmp_path: Path) -> None:
    run = orthobench.load(done(tmp_path, table(tmp_path / "a.csv", 0, 1, N=60)))
    scored = [evaluate(run, path=table(tmp_path / f"{n}.csv", *order))[0] for n, order in enumerate([(0, 1), (1, 0)])]
    assert scored[0]["metrics"] == scored[1]["metrics"]
    assert scored[0]["seen"] == scored[1]["seen"]
    assert scored[1]["seen"]["train"] in (37, 38)
    for columns, names, told in (
        ((0, 1, 2), "uvw", "has the feature w more"),
        ((0, 1), "vw", "lacks the feature u"),
        ((0, 1), "UV", "lacks the feature u"),
    ):
        with pytest.raises(ConfigError, match=told):
            evaluate(run, path=table(tmp_path / "odd.csv", *columns, names=names))


def test_sequences_are_known_again_in_another_format_and_padding(tmp_path: Path) -> None:
    lengths = np.random.default_rng(3).integers(2, 7, 60)
    folder = done(tmp_path, series(tmp_path / "one.npz", lengths=lengths))
    rows = ["id,t,a,b,target"]
    for n in range(20):
        rows += [f"{n:03},{t},{X[n, t, 0]!s},{X[n, t, 1]!s},{Y[n]}" for t in range(lengths[n])]
    (tmp_path / "two.csv").write_text("\n".join(rows) + "\n")
    train = orthobench.load(folder).task.parts["train"]  # type: ignore[attr-defined]
    (found,) = evaluate(orthobench.load(folder), path=str(tmp_path / "two.csv"))
    assert found["seen"]["train"] == int((train < 20).sum())


def test_another_text_is_scored_whole_and_known_lines_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.txt").write_text(LETTERS)
    folder = done(tmp_path, tmp_path / "a.txt", "T=10", task="text")
    first = LETTERS.split("\n")[0]
    (tmp_path / "b.txt").write_text(f"{first}\n" + "hgfedcba hgfe hgfe\n" * 30)
    (found,) = evaluate(orthobench.load(folder), path=str(tmp_path / "b.txt"))
    assert found["examples"] > 500
    assert found["seen"] == {"train": 1, "val": 0, "of": 31}
    assert found["baseline"]["bpc"] > 0


def start(root: Path, path: Path, first: Path, *words: str) -> Run:
    return build(root, path, "trainer.max_steps=1", f"init_from={first}", *words)


def test_the_division_of_the_first_run_is_kept_along_a_chain(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = series(tmp_path / "one.npz")
    first = done(tmp_path, path)
    second = start(tmp_path, path, first, "seed=2")
    record = second.run()
    assert record["division"] == {"seed": 1, "run": first.name}
    assert f"divided as those of {first.name}, by its seed 1" in capsys.readouterr().out
    parts = orthobench.load(first).task.parts  # type: ignore[attr-defined]
    for run in (orthobench.load(second.settings.folder), start(tmp_path, path, second.settings.folder, "seed=3")):
        assert run.task.parts["train"].tolist() == parts["train"].tolist()  # type: ignore[attr-defined]
    copied = Path(shutil.copy(path, tmp_path / "copy.npz"))
    assert start(tmp_path, copied, first, "seed=2").task.division_seed == 1
    assert build(tmp_path, path, "seed=2").task.division_seed == 2


@pytest.mark.parametrize(
    ("rows", "words", "more", "told"),
    [
        (slice(None), ("task.val_share=0.5",), {}, None),
        (slice(5, None), (), {}, None),
        (slice(None), (), {"train": np.arange(30), "test": np.arange(30, 60)}, None),
        (slice(None), (), {"train": np.arange(20), "val": np.arange(20, 30), "test": np.arange(30, 60)}, "30 test"),
    ],
)
def test_another_division_of_rows_that_were_trained_on_is_refused_or_told(
    rows: slice, words: tuple[str, ...], more: dict[str, Any], told: str | None, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    first = done(tmp_path, series(tmp_path / "one.npz"))
    two = series(tmp_path / "two.npz", X[rows], Y[rows], **more) if words == () else tmp_path / "one.npz"
    run = start(tmp_path, two, first, "seed=2", *words)
    if told is None:
        with pytest.raises(ConfigError, match=rf"is refused: .* are in the training part of {first.name}"):
            run.run()
    else:
        run.run()
        assert f"of {told} sequences are in the training part of {first.name}" in capsys.readouterr().out


def test_other_rows_are_divided_as_their_own_seed_says(tmp_path: Path) -> None:
    first = done(tmp_path, series(tmp_path / "one.npz"))
    run = start(tmp_path, series(tmp_path / "two.npz", X + 1), first, "seed=2")
    assert run.task.division_seed == 2
    assert run.run()["status"] == "done"


def test_rows_of_an_earlier_run_of_a_chain_are_remembered(tmp_path: Path) -> None:
    first = done(tmp_path, series(tmp_path / "one.npz"))
    second = start(tmp_path, series(tmp_path / "two.npz", X + 1), first)
    second.run()
    third = start(tmp_path, tmp_path / "one.npz", second.settings.folder, "seed=5")
    assert third.task.division_seed == 1
    with pytest.raises(ConfigError, match=rf"are in the training part of {first.name}"):
        start(tmp_path, tmp_path / "one.npz", second.settings.folder, "task.val_share=0.5").run()


def test_a_published_division_is_kept_too(tmp_path: Path) -> None:
    root = ucr(tmp_path / "data")
    words = (*OWN, "task=ucr", "task.dataset=Mine", f"data_root={root}", f"runs_root={tmp_path}")
    first = orthobench.build(*words)
    first.run()
    again = (*words, f"init_from={first.settings.folder}", "seed=2")
    assert orthobench.build(*again).task.row_digests("val") == first.task.row_digests("val")
    assert orthobench.build(*words, "seed=2").task.row_digests("val") != first.task.row_digests("val")
    with pytest.raises(ConfigError, match=r"val sequences are in the training part .* task.val_share=0.2"):
        orthobench.build(*again, "task.val_share=0.5").run()


def test_a_study_is_of_the_file_in_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from orthobench.config.ranges import parse
    from orthobench.study.tune.search import Search

    found = []
    for folder in ("A", "B"):
        series(tmp_path / folder / "my.npz", X + len(found))
        monkeypatch.chdir(tmp_path / folder)
        words = (*OWN, "task=series", "task.path=my.npz")
        found.append(Search(words, (parse("optimizer.lr=log(1e-4,1e-1)"),), SHIPPED).folder)
    assert found[0] != found[1]


def test_the_files_of_ones_own_keep_their_name_wherever_data_sets_are(tmp_path: Path) -> None:
    path = series(tmp_path / "data" / "my.npz")
    record = build(tmp_path, path, f"data_root={tmp_path / 'data'}").run()
    assert set(record["sources"]["data"]) == {str(path)}
    series(path, X + 1)
    with pytest.raises(ConfigError, match="is stale"):
        build(tmp_path, path, f"data_root={tmp_path / 'else'}").run()


def test_a_file_that_no_record_names_is_not_read(tmp_path: Path) -> None:
    folder = done(tmp_path, series(tmp_path / "one.npz"))
    record = read_sealed(folder / "record.json") or {}
    (folder / "record.json").unlink()
    write_sealed(folder / "record.json", record | {"sources": record["sources"] | {"data": {}}})
    with pytest.raises(ConfigError, match=r"has no digest of .*one\.npz, which is not read"):
        orthobench.load(folder).task  # noqa: B018


def test_an_id_of_timit_depends_on_no_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from orthobench.datasets import timit

    before = orthobench.build("model=rnn", "task=timit", f"data_root={tmp_path}").run_id
    monkeypatch.setattr(timit, "corpus_name", lambda root: "sample")
    assert orthobench.build("model=rnn", "task=timit", f"data_root={tmp_path}").run_id == before
    assert orthobench.build("model=rnn", "task=timit", "task.corpus=full").run_id == before
