import math
from pathlib import Path

import numpy as np
import pytest

from orthobench.errors import StorageError
from orthobench.recording import curve as curves
from orthobench.recording.curve import Curve, sealed


@pytest.fixture
def curve(tmp_path: Path) -> Curve:
    """A curve at its start."""
    curve = Curve(tmp_path / "metrics.csv")
    curve.cut(0)
    return curve


@pytest.fixture
def long(curve: Curve) -> Curve:
    """A curve of two metrics at steps 10, 20, 30."""
    for step in (10, 20, 30):
        curve.append(step, step // 20, {"train/loss": 1 / step, "val/loss": 2 / step})
    return curve


def test_one_row_per_value_under_its_columns(long: Curve) -> None:
    assert long.path.read_text().startswith("step,epoch,name,value\n10,0,train/loss,")
    values = {"train/loss": 0.05, "val/loss": 0.1}
    assert long.rows()[2:4] == [{"step": 20, "epoch": 1, "name": name, "value": x} for name, x in values.items()]
    assert long.of("val/loss") == [[10, 0.2], [20, 0.1], [30, 2 / 30]]
    assert Curve(long.path.with_name("nothing.csv")).rows() == []


@pytest.mark.parametrize(
    "value", [1 / 3, 1e-300, -1.5e10, 0.1 + 0.2, 5, np.float64(0.1), np.float32(0.1), math.nan, math.inf]
)
def test_values_come_back_bit_by_bit_finite_or_not(curve: Curve, value: float) -> None:
    curve.append(1, 0, {"x": value})
    assert repr(curve.of("x")) == repr([[1, float(value)]])


@pytest.mark.parametrize(("step", "kept"), [(0, 0), (9, 0), (10, 1), (25, 2), (30, 3), (99, 3)])
def test_cutting_forgets_what_came_after_and_keeps_the_rest_bit_by_bit(long: Curve, step: int, kept: int) -> None:
    before = long.path.read_text().splitlines()
    long.cut(step)
    assert long.path.read_text().splitlines() == before[: 1 + 2 * kept]
    long.append(100, 1, {"train/loss": 7.0})
    assert [point[0] for point in long.of("train/loss")] == [*[10, 20, 30][:kept], 100], "it goes on after a cut"


def test_comes_back_from_a_checkpoint_whole_or_not_at_all(long: Curve, monkeypatch: pytest.MonkeyPatch) -> None:
    before, packed = long.path.read_bytes(), long.packed()
    long.cut(0)
    monkeypatch.setattr(curves, "LARGEST", len(before))
    long.restore(packed)
    assert long.path.read_bytes() == before
    monkeypatch.setattr(curves, "LARGEST", len(before) - 1)
    with pytest.raises(StorageError, match=rf"have more than {len(before) - 1} bytes; move that folder away"):
        long.restore(packed)


@pytest.mark.parametrize("torn", ["4", "40,", "40,1", "40,1,val/l", "40,1,x,", "40,1,x,0.0", "40,1,x,6e-0"])
def test_a_torn_last_line_is_no_row(long: Curve, torn: str) -> None:
    with long.path.open("a") as file:
        file.write(torn)
    assert [row["step"] for row in long.rows()] == [10, 10, 20, 20, 30, 30]


def test_a_torn_last_line_is_dropped_by_a_cut(long: Curve) -> None:
    long.path.write_bytes(long.path.read_bytes()[:-4])
    long.cut(30)
    long.append(31, 1, {"x": 1.0})
    assert [row["name"] for row in long.rows()][-2:] == ["train/loss", "x"]


@pytest.mark.parametrize("junk", [b"\0" * 5000, b"\xff\xfe\n", b"a,b,c,d\n", b"40,1,x\n", b"40,1,x,1,2\n", b"\n\n"])
def test_what_is_no_row_is_left_out(long: Curve, junk: bytes) -> None:
    with long.path.open("ab") as file:
        file.write(junk)
    assert len(long.rows()) == 6


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=f"{tmp_path} cannot be written"):
        Curve(tmp_path).append(1, 0, {"x": 1.0})


def test_every_changed_bit_of_a_finished_curve_is_noticed(long: Curve) -> None:
    record = {"metrics_csv": long.digest(), "curve": {}}
    assert sealed(long.path.parent, record).of("val/loss")[0] == [10, 0.2]
    whole = long.path.read_bytes()
    for place in range(0, len(whole), 3):
        long.path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(StorageError, match="has been changed since its record was written"):
            sealed(long.path.parent, record)
    long.path.unlink()
    with pytest.raises(StorageError, match=r"metrics\.csv is missing"):
        sealed(long.path.parent, record)


def test_a_record_without_the_digest_of_its_curve_is_compared_with_its_points(long: Curve) -> None:
    record = {"curve": {"val/loss": long.of("val/loss")}}
    assert sealed(long.path.parent, record).of("train/loss")[0] == [10, 0.1]
    long.path.write_text(long.path.read_text().replace("val/loss,0.2", "val/loss,0.1"))
    with pytest.raises(StorageError, match="val/loss is not what"):
        sealed(long.path.parent, record)
    assert sealed(long.path.with_name("not made"), {}).rows() == []
