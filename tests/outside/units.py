"""The same data in other units, and settings of task=series."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st

from orthobench.tasks.real.series import Series
from tests.outside import Draw, call, kind

SPLITS: Any = ("train", "val", "test")
VALUES: dict[str, tuple[str, ...]] = {
    "target": ("auto", "class", "value"),
    "normalisation": ("channel", "none"),
    "missing": ("refuse", "mask", "last"),
    "val_share": ("0.1", "0.5", "1e-9", "0.999"),
    "test_share": ("0.1", "0.5", "1e-9", "0.999"),
    "batch_size": ("1", "7", "1000000"),
    "eval_batch_size": ("1", "7", "1000000"),
}
ODD = (
    "0", "-1", "1.5", "nan", "inf", "1e400", "null", "true", "none", "mask", "[]", "{}", "''", "'1'", "MASK", "ä",
    "1,2", "99999999999999999999", "$HOME", "~", "{a:1}", "",
)  # fmt: skip


@kind
def units(draw: Draw, folder: Path) -> None:
    """Powers of two of each feature, and of the targets, change no bit of what a model sees; others the last digits."""
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    N, T, I = 24, draw(st.integers(1, 4)), draw(st.integers(1, 3))
    values, exact = draw(st.booleans()), draw(st.booleans())
    x = rng.normal(size=(N, T, I)) + draw.one(0.0, 1.0, 1e6, -1e-6)
    y = rng.normal(size=N) + draw.one(0.0, 100.0) if values else np.arange(N) % 3
    odd = draw.one("", "constant", "nearly", "zero", "only in training", "spike")
    first = (slice(None), slice(None), 0)
    if odd:
        x[first] = {
            "constant": 0.1, "nearly": 1 + 1e-14 * rng.integers(0, 3, (N, T)), "zero": 0.0,
            "only in training": np.where(np.arange(N) < 14, 0.3, x[first].T).T, "spike": 1e-9,
        }[odd]  # fmt: skip
    if odd == "spike":
        x[0, 0, 0] = 1.0
    missing = draw.one("refuse", "mask", "last")
    if missing != "refuse":
        x[rng.random(x.shape) < draw.one(0.0, 0.3, 0.9)] = np.nan
    powers = draw(st.lists(st.integers(-300, 300), min_size=I + 1, max_size=I + 1))
    scales = np.ldexp(1.0, powers) if exact else 10.0 ** np.array(powers) * 3
    made = []
    for name, unit in (("a", np.ones(I + 1)), ("b", scales)):
        others = {"train": np.arange(14), "val": np.arange(14, 19), "test": np.arange(19, N)}
        path = folder / f"{name}.npz"
        np.savez(path, x=x * unit[:I], y=y * unit[I] if values else y, **others)  # type: ignore[arg-type]
        role: Any = "value" if values else "class"
        made.append(Series(path=str(path), target=role, missing=missing))  # type: ignore[arg-type]
    one, other = made
    for split in SPLITS:
        for a, b in zip(one.batch(split, 0, 0), other.batch(split, 0, 0), strict=True):
            assert torch.isfinite(a.float()).all()
            if exact:
                assert torch.equal(a, b)
            elif odd != "nearly":  # whose digits are rounding
                torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)
    assert _kinds(one, exact) == _kinds(other, exact)
    told = any("constant in training" in remark for remark in one.remarks())
    assert told or odd not in ("constant", "zero", "only in training")
    if values:
        np.testing.assert_allclose(other.baseline["rmse"], one.baseline["rmse"] * scales[I], rtol=0 if exact else 1e-9)


def _kinds(task: Series, exact: bool) -> list[str]:
    """The remarks without their numbers; rows that are equal in the precision of float32 may not be in another unit."""
    found = [re.sub(r"[-+.e\d]*\d[-+.e\d]*|[ab]\.npz", "", remark) for remark in task.remarks()]
    return [remark for remark in found if exact or "in training too" not in remark]


@kind
def series_settings(draw: Draw, folder: Path) -> None:
    """A setting of the task that is odd is taken as it is shown, or refused."""
    rng = np.random.default_rng(1)
    np.savez(folder / "my.npz", x=rng.normal(size=(30, 4, 2)), y=np.arange(30) % 2)
    keys = draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=4, unique=True))
    words = [f"task.{key}={draw.sometimes(draw.one(*VALUES[key]), draw.one(*ODD))}" for key in keys]
    text = call("show", "model=gru", "task=series", f"task.path={folder}/my.npz", *words)
    assert "series" in text
