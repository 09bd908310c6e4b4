"""Files of one's own: groups, rows in two parts, swapped axes, any unit, and missing observations."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import orthobench
from orthobench.config.settings import identity_of
from orthobench.datasets.axes import remarks
from orthobench.errors import ConfigError, DataError
from orthobench.tasks.real.normalised import filled, moments, normalised
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
    with pytest.raises(DataError, match=r"column who is empty in row 1 after the header; write one there\.$"):
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
    for offset, apart in ((1e9, 1.0), (101325.0, 1e-3)):  # as those of clocks and barometers
        first, second = offset + apart * x, offset + apart * (x + 0.1)
        assert [count(digests(second), digests(first)), count(digests(first[3:9]), digests(first))] == [0, 6]
        assert count(digests(first.astype(np.float32)), digests(first)) == 20


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


RUN = (
    "model=gru", "model.hidden_size=4", "task=series", "trainer.max_steps=6", "trainer.val_check_interval=3",
    "task.val_share=0.3", "logger=none",
)  # fmt: skip
N, T = 30, 5


def x_and_y(values: bool = False) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    y = rng.normal(3.0, 2.0, N) if values else rng.integers(0, 2, N)
    return rng.normal(size=(N, T, 2)) * [1, 30] + y[:, None, None], y


def written(path: Path, **arrays: Any) -> str:
    np.savez(path, **arrays)
    return str(path)


def scores(path: str, folder: Path, *words: str) -> dict[str, float]:
    return orthobench.build(*RUN, *words, f"task.path={path}", f"runs_root={folder}").run()["metrics"]["last"]


@pytest.mark.parametrize("values", [False, True])
@pytest.mark.parametrize("scale", [2.0**-50, 2.0**50, 1e-15, 1e15, 2.0**-400, 2.0**400])
def test_the_unit_makes_no_difference(values: bool, scale: float, tmp_path: Path) -> None:
    x, y = x_and_y(values)
    target = f"task.target={'value' if values else 'class'}"
    one = scores(written(tmp_path / "a.npz", x=x, y=y), tmp_path / "a", target)
    other = scores(written(tmp_path / "b.npz", x=x * scale, y=y * scale if values else y), tmp_path / "b", target)
    unit = {name: value * scale if values and name.endswith("rmse") else value for name, value in one.items()}
    rounding = 0 if np.frexp(scale)[0] == 0.5 else 1e-4
    assert other == pytest.approx(unit, rel=rounding, abs=0)


def test_a_regressions_score_is_in_the_unit_of_y(tmp_path: Path) -> None:
    x, y = x_and_y(values=True)
    exp = orthobench.build(*RUN, f"task.path={written(tmp_path / 'a.npz', x=x, y=y)}", f"runs_root={tmp_path}")
    record = exp.run()
    task, model = exp.task, orthobench.load(tmp_path / record["run_id"], "last").model
    assert isinstance(task, Series)
    inputs, _ = task.batch("test", 0, 0)
    answers = model(inputs)[0].detach().numpy()[:, 0] * task.codes()["y_deviation"] + task.codes()["y_mean"]
    expected = np.sqrt(((answers - y[task.parts["test"]]) ** 2).mean())
    assert record["metrics"]["last"]["test/rmse"] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("constant", [0.0, 0.1, 1e-20, -1e20])
def test_a_feature_that_is_constant_in_training_is_told_and_read_as_0(constant: float, tmp_path: Path) -> None:
    x, y = x_and_y()
    x[:25, :, 1] = constant
    path = written(tmp_path / "a.npz", x=x, y=y, train=np.arange(20), val=np.arange(20, 25), test=np.arange(25, N))
    task = Series(path=path)
    assert [one for one in task.remarks() if f"constant in training and read as 0: feature 1 ({constant:g})" in one]
    for split in ("train", "val", "test"):
        assert not task.batch(split, 0, 0)[0][:, :, 1].any()
    assert task.codes()["x_constant"] == [1]


@pytest.mark.parametrize(
    ("scale", "words", "told"),
    [
        (1.0, {"normalisation": "none"}, 0),
        (1e-5, {"normalisation": "none"}, 1),
        (1e5, {"normalisation": "none"}, 1),
        (1e5, {}, 0),
    ],
)
def test_a_scale_that_is_left_as_it_is_gets_one_warning(
    scale: float, words: dict[str, Any], told: int, tmp_path: Path
) -> None:
    x, y = x_and_y()
    found = Series(path=written(tmp_path / "a.npz", x=x * scale, y=y), **words).remarks()
    assert len(["sizes outside 0.001 to 1000" in one for one in found]) == told


def test_values_too_large_for_float32_are_refused_unless_they_are_normalised(tmp_path: Path) -> None:
    x, y = x_and_y()
    path = written(tmp_path / "a.npz", x=x * 1e50, y=y)
    Series(path=path).check()
    with pytest.raises(DataError, match=r"sequence 0, step 0, feature 0 is too large for float32"):
        Series(path=path, normalisation="none").check()


def test_moments_of_what_is_observed() -> None:
    values = np.random.default_rng(2).normal(5.0, 3.0, size=(50, 3))
    values[::3, 1] = np.nan
    values[:, 2] = np.nan
    found = moments(values)
    np.testing.assert_allclose(found.means[:2], np.nanmean(values[:, :2], 0), rtol=1e-14)
    np.testing.assert_allclose(found.deviations[:2], np.nanstd(values[:, :2], 0), rtol=1e-14)
    assert found.observed.tolist() == [50, 33, 0]
    np.testing.assert_allclose(normalised(values, found)[:, 0].std(), 1, rtol=1e-14)


NAN = np.nan
GAPS = np.array([[[NAN, 1.0], [2.0, NAN], [NAN, NAN]], [[NAN, 5.0], [NAN, 6.0], [9.0, 9.0]]])
INSIDE = np.array([[True, True, True], [True, True, False]])


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("mask", [[[0, 1, 0, 1], [2, 0, 1, 0], [0, 0, 0, 0]], [[0, 5, 0, 1], [0, 6, 0, 1], [0, 0, 0, 0]]]),
        ("last", [[[7, 1], [2, 1], [2, 1]], [[7, 5], [7, 6], [0, 0]]]),
    ],
)
def test_what_is_put_in_the_place_of_missing_observations(how: Any, expected: list[Any]) -> None:
    np.testing.assert_array_equal(filled(GAPS, INSIDE, how, np.array([7.0, 8.0])), expected)


@pytest.mark.parametrize("how", ["mask", "last"])
@pytest.mark.parametrize("normalisation", ["channel", "none"])
def test_missing_observations(how: Any, normalisation: Any, tmp_path: Path) -> None:
    x, y = x_and_y()
    rng = np.random.default_rng(3)
    gone = rng.random(x.shape) < 0.3
    gone[0, 0], gone[1, :, 0] = True, True  # a sequence that begins so, and one that lacks a feature wholly
    lengths = rng.integers(2, T + 1, N)
    x[gone] = NAN
    path = written(tmp_path / "a.npz", x=x, y=y, lengths=lengths)
    task = Series(path=path, missing=how, normalisation=normalisation)
    inside = np.arange(T)[None, :] < lengths[:, None]
    assert task.input_size == (4 if how == "mask" else 2)
    train = task.parts["train"]
    mean, deviation = (f(x[train][inside[train]], 0) for f in (np.nanmean, np.nanstd))
    z = (x - mean) / deviation if normalisation == "channel" else x
    start = np.zeros(2) if normalisation == "channel" or how == "mask" else mean
    for split, chosen in task.parts.items():
        found = task.load()[split][0].numpy()
        for row, n in zip(found, chosen, strict=True):
            last = start.copy()
            for t in range(T):
                seen = ~np.isnan(z[n, t])
                last = np.where(seen, z[n, t], last if how == "last" else 0)
                want = np.concatenate([last, seen]) if how == "mask" else last
                np.testing.assert_allclose(row[t], want if t < lengths[n] else 0 * want, rtol=1e-5, atol=1e-6)
    assert any("values are missing; in " in one and "a feature is missing wholly" in one for one in task.remarks())
    scores(path, tmp_path / "runs", f"task.missing={how}", f"task.normalisation={normalisation}")


def test_what_is_missing_wholly_is_refused(tmp_path: Path) -> None:
    x, y = x_and_y()
    x[:, :, 1] = NAN
    for how in ("mask", "last"):
        with pytest.raises(DataError, match="feature 1 has no value in the training part; leave it out"):
            Series(path=written(tmp_path / "a.npz", x=x, y=y), missing=how).check()  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"y of sequence 0 is not a finite number"):
        Series(path=written(tmp_path / "b.npz", x=x[:, :, :1], y=np.full(N, NAN)), missing="mask").check()
    with pytest.raises(ConfigError, match=r"task\.missing='drop' is not known: allowed: last, mask, refuse"):
        orthobench.build(*RUN, "task.path=a.npz", "task.missing=drop")


def test_another_file_is_read_as_the_model_was_taught_to(tmp_path: Path) -> None:
    x, y = x_and_y()
    one = Series(path=written(tmp_path / "a.npz", x=x, y=np.where(y, "1", "2")))
    other = Series(path=written(tmp_path / "b.npz", x=x, y=np.where(y, "1.0", "2.0")))
    with pytest.raises(ConfigError, match=r"b.npz has the class '1.0', which is '1' in training: write it in one way"):
        other.read_as(one)


def test_a_run_that_refuses_missing_observations_has_the_name_that_it_had_before(tmp_path: Path) -> None:
    path = written(tmp_path / "a.npz", x=np.ones((9, 2)), y=np.arange(9) % 2)
    one, other = (
        orthobench.build(*RUN, f"task.path={path}", f"task.missing={how}").settings for how in ("refuse", "last")
    )
    assert "missing" not in one.identity["task"]
    before = {**one.as_dict(), "task": {key: value for key, value in one.task.items() if key != "missing"}}
    assert identity_of(before) == one.identity
    assert one.digest != other.digest
