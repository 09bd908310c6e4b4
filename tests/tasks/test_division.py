"""Groups of sequences stay in one part; rows that are in two parts, and axes that look swapped, are told."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import orthobench
from orthobench.datasets.axes import remarks
from orthobench.errors import ConfigError, DataError
from orthobench.tasks.real.normalised import moments, normalised
from orthobench.tasks.real.series import Series
from orthobench.tasks.seen import count, digests

RNG = np.random.default_rng(5)
WHO = np.repeat(np.arange(12), [1, 9, 3, 3, 7, 2, 4, 5, 6, 1, 8, 11])
X = RNG.normal(size=(60, 5, 2))
Y = RNG.integers(0, 2, 60)
PEOPLE = np.array([f"{one:02}" for one in WHO])


def npz(folder: Path, **more: Any) -> str:
    np.savez(folder / "my.npz", **{"x": X, "y": Y, **more})
    return str(folder / "my.npz")


def csv(folder: Path) -> str:
    rows = ["id,person,t,a,b,target"]
    rows += [f"s{n:02},{PEOPLE[n]},{t},{X[n, t, 0]},{X[n, t, 1]},{Y[n]}" for n in range(60) for t in range(5)]
    (folder / "my.csv").write_text("\n".join(rows) + "\n")
    return str(folder / "my.csv")


@pytest.mark.parametrize("form", ["words", "numbers", "bytes", "csv"])
def test_a_group_is_in_one_part(form: str, tmp_path: Path) -> None:
    arrays = {"words": PEOPLE, "numbers": WHO, "bytes": PEOPLE.astype("S2")}
    path = csv(tmp_path) if form == "csv" else npz(tmp_path, person=arrays[form])
    first, other = (Series(path=path, group="person", seed=seed) for seed in (1, 2))
    assert first.input_size == 2
    assert first.parts["test"].tolist() == other.parts["test"].tolist()
    assert first.parts["val"].tolist() != other.parts["val"].tolist()
    groups = {part: set(WHO[rows].tolist()) for part, rows in first.parts.items()}
    assert sorted(one for part in groups.values() for one in part) == list(range(12))
    assert sorted(np.concatenate(list(first.parts.values())).tolist()) == list(range(60))
    assert [len(groups[part]) for part in ("train", "val", "test")] == [8, 2, 2]
    (told,) = first.remarks()
    assert "12 groups by person: 8 in train" in told
    assert f"2 in test ({len(first.parts['test'])} sequences)" in told


def test_the_ids_of_a_text_keep_their_words(tmp_path: Path) -> None:
    path = npz(tmp_path, person=np.array(["1.1", "1.10", "01", "1"] * 15))
    task = Series(path=path, group="person")
    assert task.stored.groups is not None
    assert len(set(task.stored.groups.tolist())) == 4
    assert f"{path}: '01' and '1' are two groups, as their names differ" in task.remarks()


def test_cells_of_groups_are_words_beside_missing_observations(tmp_path: Path) -> None:
    names = np.array(["NA", "null", "1.1", "1.10", "Zoë", "6"])
    rows = ["id,who,t,a,b,target"]
    rows += [f"{n},{names[n % 6]},{t},{'' if n == t else n},{t},{n % 2}" for n in range(60) for t in range(5)]
    (tmp_path / "my.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    task = Series(path=str(tmp_path / "my.csv"), group="who", missing="mask")
    assert (task.input_size, task.stored.features) == (4, ("a", "b"))
    assert task.stored.groups is not None
    assert task.stored.groups.tolist() == names[np.arange(60) % 6].tolist()
    assert {part: len(set((rows % 6).tolist())) for part, rows in task.parts.items()} == {
        "train": 4,
        "val": 1,
        "test": 1,
    }
    (tmp_path / "my.csv").write_text("\n".join([rows[0], "0,,0,1,2,1", *rows[6:]]) + "\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"column who is empty in row 1 after the header\.$"):
        Series(path=str(tmp_path / "my.csv"), group="who", missing="mask").look()


@pytest.mark.parametrize(
    ("more", "group", "message"),
    [
        ({}, "person", "has no person, which task.group= names"),
        ({"person": WHO[:5]}, "person", r"the groups are \(5,\)"),
        ({"person": np.zeros(60)}, "person", "too few different person: 1"),
        ({"person": np.where(WHO == 3, np.nan, WHO)}, "person", "the group of sequence 13 is not a finite number"),
        ({"person": np.where(WHO == 3, "", PEOPLE)}, "person", "the group of sequence 13 is empty"),
        ({"person": WHO, "train": np.arange(30), "test": np.arange(30, 60)}, "person", "person 7 is in train and"),
    ],
)  # fmt: skip
def test_groups_that_cannot_be_kept_are_refused(more: dict[str, Any], group: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        Series(path=npz(tmp_path, **more), group=group).parts  # noqa: B018


def test_what_a_file_has_by_this_name_is_no_group() -> None:
    with pytest.raises(ConfigError, match=r"task\.group=target is taken"):
        Series(path="my.csv", group="target")


def test_a_group_is_part_of_an_id_and_none_is_not(tmp_path: Path) -> None:
    words = ("model=gru", "task=series", f"task.path={npz(tmp_path, person=WHO)}", "task.group=person")
    grouped = orthobench.build(*words)
    assert "group" in grouped.settings.identity["task"]
    np.savez(tmp_path / "my.npz", x=X, y=Y)
    plain = orthobench.build(*words[:3])
    assert "group" not in plain.settings.identity["task"]
    assert plain.run_id != grouped.run_id


def test_rows_that_are_in_training_too_are_told(tmp_path: Path) -> None:
    x = X.copy()
    x[50:] = x[:10]
    task = Series(path=npz(tmp_path, x=x, train=np.arange(40), val=np.arange(40, 50), test=np.arange(50, 60)))
    (told,) = task.remarks()
    assert told.endswith("10 of 10 test sequences are in training too")


def test_a_row_is_known_in_either_precision_at_any_scale() -> None:
    x = RNG.normal(size=(20, 7))
    for scale in (1.0, 1e-60, 1e60, 1e-320, 1e307):
        assert count(digests(scale * x), digests(scale * x[:5])) == 5
    assert count(digests(x.astype(np.float32)), digests(x)) == 20
    assert count(digests(np.pad(x, ((0, 0), (0, 3)))), digests(x)) == 20
    for scale in (1.0, 1e307):
        assert count(digests(scale * x * (1 + 1e-6)), digests(scale * x)) == 0
    greatest = np.full((1, 3), np.finfo(float).max)
    assert [count(digests(one * greatest), digests(greatest)) for one in (1.0, -1.0, 0.5)] == [1, 0, 0]
    gaps = np.array([[np.nan, 1.0], [-np.nan, 1.0], [0.0, 1.0]])
    assert [count(digests(gaps[n : n + 1]), digests(gaps[:1])) for n in range(3)] == [1, 1, 0]
    assert digests(gaps[:1].astype(np.float32)) == digests(gaps[:1])
    assert digests(np.array([[0.0, 1.0]])) == digests(np.array([[-0.0, 1.0]]))


@pytest.mark.parametrize("values", [False, True])
def test_another_file_is_read_as_the_trained_one_whatever_its_numbers_suggest(values: bool, tmp_path: Path) -> None:
    numbers = np.arange(24)
    x = np.where(np.arange(5) == 3, np.nan, RNG.normal(size=(96, 5)))
    np.savez(tmp_path / "old.npz", x=x, y=np.tile(numbers + (0.5 if values else 0), 4))
    trained = Series(path=str(tmp_path / "old.npz"), missing="mask")
    np.savez(tmp_path / "new.npz", x=x[:24], y=numbers)
    task = Series(path=str(tmp_path / "new.npz"), missing="mask")
    with pytest.raises(DataError, match="24 different whole numbers in 24 sequences"):
        task.look()
    task = Series(path=str(tmp_path / "new.npz"), missing="mask")
    task.take_whole()
    task.read_as(trained)
    assert (task.metrics, task.rows("test"), task.output_size) == (trained.metrics, 24, 1 if values else 24)
    known = [one for part in ("train", "val", "test") for one in trained.row_digests(part)]
    assert count(task.row_digests("test"), known) == 24
    if values:
        guess = trained.target_moments.means[0]
        assert task.baseline["rmse"] == pytest.approx(np.sqrt(np.mean((numbers - guess) ** 2)))


def walk(*shape: int) -> np.ndarray:
    """Numbers that are like their neighbours along the last axis."""
    return np.cumsum(np.random.default_rng(7).normal(size=shape), -1)


@pytest.mark.parametrize(
    ("x", "odd"),
    [
        (walk(50, 3, 100), True),
        (walk(50, 3, 100).swapaxes(1, 2), False),
        (walk(50, 40, 60), True),
        (walk(50, 60, 40), False),
        (walk(50, 60, 10).swapaxes(1, 2), False),
        (RNG.normal(size=(50, 3, 100)), True),
        (RNG.normal(size=(50, 100, 3)), False),
        (RNG.normal(size=(50, 1, 30)), True),
        (np.zeros((5, 4, 5)), False),
        (walk(1, 3, 100) * 1e-200, True),
        (np.where(np.arange(100) % 7 == 3, np.nan, walk(50, 3, 100)), True),
        (np.full((5, 2, 3), np.nan), False),
    ],
)
def test_axes_that_look_swapped_are_told_with_the_remedy(x: np.ndarray, odd: bool) -> None:
    units = np.ldexp(1.0, np.arange(x.shape[2]) % 7 * 40 - 120)
    for unit in (1.0, units, np.where(units < 1, 1e-30, 1.0)):
        known = moments((x * unit).reshape(-1, x.shape[2]))
        found = remarks(x * unit, Path("my.npz"), lambda some, known=known: normalised(some, known))
        assert len(found) == odd
    assert all("save x.swapaxes(1, 2)" in sentence for sentence in found)
    assert remarks(x, Path("my.csv"), lambda some: some) == []
