"""Records that are read by what they share with others: never another row than each gives alone."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from orthobench.recording import alike, store
from orthobench.recording.digest import read_sealed, seal

BEFORE = Path(__file__).parents[1] / "made_before" / "recall-rnn-5613bd3813" / "record.json"


def record(seed: int, /, **changes: Any) -> dict[str, Any]:
    """A record of a run, which differs in its seed and in some of what came of it."""
    plain = json.loads(BEFORE.read_text()) | {"run_id": f"run-{seed}", "seed": seed}
    plain["metrics"]["last"]["test/loss"] = 1 / seed
    plain["curve"] = {"val/100 %s": [[step, 1 / (step + seed)] for step in range(seed)], "val/a": []}
    plain["engine"] = [{"engine": "native"}]
    return plain | changes


def text_of(content: dict[str, Any]) -> str:
    return json.dumps(seal(content), indent=2) + "\n"


def known(*contents: dict[str, Any]) -> alike.Alike:
    """What is learned from some records."""
    found = alike.Alike()
    for content in contents:
        found.learn(text_of(content), seal(content), store._flat(seal(content)))
    return found


def told(row: alike.RecordRow | None) -> dict[str, Any] | None:
    """A row as the dictionary that it stands for, in the order of its columns."""
    if row is None:
        return None
    (layout, values), plain = row, {}
    plain = layout.fixed | dict(zip(layout.varying, values, strict=True))
    return {name: plain[name] for name in layout.names}


def same(first: Any, second: Any) -> bool:
    return repr(first) == repr(second)  # 1, 1.0 and True are equal, and 0.0 and -0.0


def test_a_record_like_two_others_is_read_as_it_is_alone() -> None:
    found = known(record(1), record(2))
    for seed in (3, 4, 17):
        content = record(seed)
        assert same(told(found.read(text_of(content))), store._flat(seal(content)))


def test_lists_that_come_again_are_those_of_their_own_record() -> None:
    """A list is not read again where its text is the last one's: not where it is longer, other, or no list."""
    found = known(record(1), record(2))
    engines = [[{"engine": "native"}], [{"engine": "native"}] * 2, [], [{"engine": "torch"}], [{"engine": "native"}]]
    for seed, engine in enumerate([*engines, *engines[::-1]], start=3):
        content = record(seed, engine=engine, curve={"val/a": [[1, seed % 2]]})
        assert same(told(found.read(text_of(content))), store._flat(seal(content)))
        wrong = text_of(content).replace('"engine": [', '"engine": [1, ' if engine else '"engine": [1')
        assert found.read(wrong) is None
    assert found.read(text_of(record(3, engine=None))) is None


def test_a_zero_byte_is_no_value() -> None:
    """Also at a place where a list may stand, and none has been seen."""
    found = known(record(1, curve=None), record(2, curve=None))
    text = text_of(record(3, curve=None))
    assert found.read(text) is not None
    assert found.read(text.replace('"curve": null', '"curve": \0')) is None


def test_two_numbers_without_bound_are_refused_together(tmp_path: Path) -> None:
    """Their sum tells of one; that of two of opposite signs is no number, which tells of both."""
    contents = [record(seed, baseline={"loss": seed / 7, "accuracy": seed / 9}) for seed in (1, 2, 3)]
    for one, other in (("1e999", "-1e999"), ("1e999", "1e999"), ("1e999", "0.5"), ("NaN", "1.5")):
        plain = json.dumps(contents[2] | {"baseline": {"loss": 1.25, "accuracy": 2.25}}, sort_keys=True)
        for shown in (("inf", "-inf"), (one, other), ("Infinity", "-Infinity")):
            digest = hashlib.sha256(plain.replace("1.25", shown[0]).replace("2.25", shown[1]).encode()).hexdigest()
            told_of = contents[2] | {"baseline": {"loss": 1.25, "accuracy": 2.25}, "sha256": digest}
            text = json.dumps(told_of, indent=2).replace("1.25", one).replace("2.25", other) + "\n"
            assert known(*contents[:2]).read(text) is None
    assert known(*contents[:2]).read(text_of(contents[2])) is not None


@pytest.mark.parametrize(
    "changes",
    [
        {"steps": 2.0},
        {"steps": True},
        {"status": None},
        {"seed": None},
        {"seed": {}},
        {"seed": "3"},
        {"run_id": ["a"]},
        {"engine": [{"engine": 1}]},
        {"engine": {}},
        {"attempts": [{}]},
        {"curve": {"val/100 %s": [[1]], "val/a": []}},
        {"curve": {"val/100 %s": [["1", 2]]}},
        {"curve": None},
        {"curve": []},
        {"metrics": {"last": 1}},
        {"more": 1},
        {"sources": {"data": {"x": 1}}},
    ],
)
def test_a_record_of_another_shape_is_left_to_be_judged(changes: dict[str, Any]) -> None:
    assert known(record(1), record(2, steps=5, status="diverged")).read(text_of(record(3) | changes)) is None


@pytest.mark.parametrize(
    "number", ["NaN", "nan", "inf", "Infinity", "1e999", "1e400", "-0", "1.0e0", "0.50", "01", "1_0"]
)
def test_a_number_that_is_not_written_as_the_digest_has_it_is_refused(number: str, tmp_path: Path) -> None:
    """The digest is over the numbers as Python writes them, also where somebody took that of another text."""
    found, mark = known(record(1), record(2)), 0.123456789
    content = record(3)
    content["metrics"]["last"]["test/loss"] = mark
    plain = json.dumps({key: value for key, value in content.items() if key != "sha256"}, sort_keys=True)
    digest = hashlib.sha256(plain.replace(str(mark), number).encode()).hexdigest()
    text = json.dumps({**content, "sha256": digest}, indent=2).replace(str(mark), number) + "\n"
    assert told(found.read(text)) is None, "left to the reader that says what is wrong"


def test_every_change_of_a_byte_is_refused_or_changes_nothing(tmp_path: Path) -> None:
    """Each byte becomes each of some others, or goes, or is doubled: what is read at once is what is read alone."""
    found = known(record(1), record(2), record(3))
    content, path = text_of(record(4)).encode(), tmp_path / "record.json"
    assert found.read(content.decode()) is not None
    read = 0
    for place in range(len(content)):
        ways = (b"", content[place : place + 1] * 2, *(bytes([content[place] ^ 1 << bit]) for bit in range(8)), b"\n")
        for way in ways:
            changed = content[:place] + way + content[place + 1 :]
            row = None if changed == content else told(found.read(changed.decode(errors="surrogateescape")))
            if row is not None:
                read += 1
                path.write_bytes(changed)
                assert same(row, store._flat(read_sealed(path) or {})), (place, way)
    assert read, "a blank within a list changes nothing"


def test_doubled_keys_values_beside_a_value_and_text_after_the_end_are_refused() -> None:
    found, text = known(record(1), record(2)), text_of(record(3))
    assert found.read(text) is not None
    for old, new in (
        ('"seed": 3,', '"seed": 3, "seed": 3,'),
        ('"seed": 3,', '"seed": 3, 4,'),
        ('"seed": 3,', '"seed": 3 ,'),
        ('"seed": 3,', '"seed":  3,'),
        ("}\n", "}"),
        ("}\n", "}\n{}"),
        ("\n", "\r\n"),
        ("{", "\ufeff{"),
    ):
        assert old in text
        assert found.read(text.replace(old, new)) is None, new


def test_keys_that_look_like_marks_are_no_marks() -> None:
    odd = {"\x000": 1, "a": "\x001", "b": "%s %d", "seed": 1}
    contents = [record(seed, budget=odd | {"seed": seed}) for seed in (1, 2, 3)]
    row = told(known(*contents[:2]).read(text_of(contents[2])))
    assert row is None or same(row, store._flat(seal(contents[2])))


def test_a_table_of_runs_of_many_kinds_is_what_pandas_makes_of_each(tmp_path: Path) -> None:
    """Kinds that take turns, with more keys or fewer, and values that are there only in some."""
    contents = []
    for seed in range(1, 31):
        more = [{}, {"lengths": {"5": {"a": seed / 7}}}, {"reason": "why", "epochs": None}][seed % 3]
        contents.append(record(seed, T=None if seed % 5 else 3, **more) | {"run_id": f"run-{seed:02}"})
        (tmp_path / f"run-{seed:02}").mkdir()
        (tmp_path / f"run-{seed:02}" / "record.json").write_text(text_of(contents[-1]))
    frame = store.frame(tmp_path)
    plain = pd.DataFrame([store._flat(seal(content)) for content in contents])
    pd.testing.assert_frame_equal(frame, plain)


def test_most_records_of_a_sweep_are_read_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(1, 31):
        (tmp_path / f"run-{seed:02}").mkdir()
        (tmp_path / f"run-{seed:02}" / "record.json").write_text(text_of(record(seed)))
    alone: list[Path] = []
    monkeypatch.setattr(store, "read_sealed", lambda path: alone.append(path) or read_sealed(path))
    assert len(store.frame(tmp_path)) == 30
    assert len(alone) == 2
