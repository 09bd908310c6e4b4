"""Features of any unit, constant features and missing observations of files of one's own."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import orthobench
from orthobench.config.settings import identity_of
from orthobench.errors import ConfigError, DataError
from orthobench.tasks.real.normalised import filled, moments, normalised
from orthobench.tasks.real.series import Series

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
X = np.array([[[NAN, 1.0], [2.0, NAN], [NAN, NAN]], [[NAN, 5.0], [NAN, 6.0], [9.0, 9.0]]])
INSIDE = np.array([[True, True, True], [True, True, False]])


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("mask", [[[0, 1, 0, 1], [2, 0, 1, 0], [0, 0, 0, 0]], [[0, 5, 0, 1], [0, 6, 0, 1], [0, 0, 0, 0]]]),
        ("last", [[[7, 1], [2, 1], [2, 1]], [[7, 5], [7, 6], [0, 0]]]),
    ],
)
def test_what_is_put_in_the_place_of_missing_observations(how: Any, expected: list[Any]) -> None:
    np.testing.assert_array_equal(filled(X, INSIDE, how, np.array([7.0, 8.0])), expected)


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
