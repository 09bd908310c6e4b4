"""Ranges of settings, and the search of a cell: what is tried is known before anything runs."""

from pathlib import Path
from typing import Any

import pytest
import yaml

import orthobench
from orthobench.common.registry import find
from orthobench.config.files import Files
from orthobench.config.ranges import is_range, parse
from orthobench.errors import ConfigError
from orthobench.study.catalogue import SHIPPED
from orthobench.study.tables.search import CellSearch, TrialRows
from tests.conftest import REPO, write

STAGES = [{"trials": 4, "seeds": [101]}, {"trials": 2, "seeds": [102]}]
GIVEN = {"sobol": 7, "stages": STAGES}
MODELS = sorted(path.stem for path in (REPO / "conf" / "model").glob("*.yaml"))


def rows(words: tuple[str, ...], folders: tuple[Path, ...] = (), **more: object) -> list[tuple[str, ...]]:
    search = CellSearch.of(GIVEN | more, [1, 2], "search")
    found = TrialRows({"a": words}, search, Files(folders))
    assert list(found) == [f"a_trial{i}" for i in range(4)]
    return [found[name][len(words) :] for name in found]


def test_the_trials_of_the_shipped_tables_never_change() -> None:
    """Records are of these values; they would be stale with others."""
    table = SHIPPED.table("fair2/cued_copying")
    assert table.rows["gru_trial0"] == ("model=gru", "model.hidden_size=41", "optimizer.lr=0.06621")
    own = table.rows["scornn_trial3"][2:]
    assert own == ("optimizer.lr=0.002555", "optimizer.lr_recurrent=0.001415", "model.rho=0.2929")
    assert table.rows["lru_trial5"][2:] == (
        *("optimizer.lr=0.00109", "model.r_min=0.9", "model.r_max=0.9999", "model.max_phase=6.2832"),
    )
    assert table.rows["gru_chrono_trial2"][2:] == ("optimizer.lr=0.003993", "model.T_max=24")


def test_points_fill_the_range_evenly() -> None:
    """Of a scrambled Sobol sequence each quarter of a coordinate has one of four points."""
    found = rows(("model=gru",), settings={"hidden_size": "float(0,4)"})
    assert sorted(int(float(words[0].partition("=")[2])) for words in found) == [0, 1, 2, 3]


def test_a_setting_that_the_row_fixes_is_not_searched() -> None:
    assert all(len(words) == 1 for words in rows(("model=lstm", "model.forget_bias=5")))
    assert all(len(words) == 2 for words in rows(("model=lstm",)))


def test_a_model_without_a_search_has_that_of_any(tmp_path: Path) -> None:
    write(tmp_path, {"model/mine.yaml": "cell: elman\nrecurrent: free\n"})
    words = rows(("model=mine",), (tmp_path,))[0]
    assert [word.partition("=")[0] for word in words] == ["optimizer.lr", "optimizer.lr_recurrent"]
    search = "search:\n  lr: log(1e-3,1e-2)\n  hidden_size: int(4,8)\n"
    write(tmp_path, {"model/mine.yaml": f"cell: elman\nrecurrent: free\n{search}"})
    words = rows(("model=mine",), (tmp_path,))[0]
    assert [word.partition("=")[0] for word in words] == ["optimizer.lr", "model.hidden_size"]
    assert 1e-3 <= float(words[0].partition("=")[2]) <= 1e-2


def test_a_search_is_no_setting(tmp_path: Path) -> None:
    found = []
    for more in ("", "search:\n  lr: log(1e-3,1e-2)\n"):
        write(tmp_path, {"model/mine.yaml": f"cell: elman\nrecurrent: free\nhidden_size: 4\n{more}"})
        found.append(orthobench.build("model=mine", "task=adding", "T=5", config_dir=tmp_path).run_id)
    assert found[0] == found[1]
    write(tmp_path, {"model/mine.yaml": "cell: elman\nrecurrent: free\nhidden_size: 4\nsearch: {lr: 3}\n"})
    with pytest.raises(ConfigError, match=r"model\.search\.lr=3 is no range"):
        orthobench.build("model=mine", "task=adding", "T=5", config_dir=tmp_path)
    with pytest.raises(ConfigError, match="search"):
        orthobench.build("model=rnn", "task=adding", "T=5", "model.search=1")


@pytest.mark.parametrize("model", MODELS)
def test_every_shipped_search_suits_its_model(model: str) -> None:
    """At most four settings; the rate of the constrained matrix where there is one, and only there."""
    content = yaml.safe_load((REPO / "conf" / "model" / f"{model}.yaml").read_text())
    recurrent = find("parametrization", content["recurrent"], "recurrent")
    if "search" in content:
        found = SHIPPED.searched(model)
        assert "lr" in found
        assert ("ratio" in found) == recurrent.constrained  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"stages": STAGES}, "sobol is missing"),
        (GIVEN | {"trial": 3}, r"search\.trial is not a key here"),
        (GIVEN | {"stages": []}, "there is no stage"),
        (GIVEN | {"stages": [{"trials": 2, "seeds": [1]}]}, r"seed \[1\] is used twice"),
        (GIVEN | {"stages": [*STAGES, {"trials": 3, "seeds": [103]}]}, "must not grow"),
        (GIVEN | {"stages": [{"trials": 2}]}, "trials and seeds are needed"),
        (GIVEN | {"stages": [{"trials": 0, "seeds": [101]}]}, "must be >= 1"),
        (GIVEN | {"settings": {"lr": "{1e-3,1e-2}"}}, "a range of numbers is needed"),
        (GIVEN | {"settings": dict.fromkeys("abcde", "float(0,1)")}, "at most 4 settings"),
        (GIVEN | {"settings": {"a": "from 1 to 2"}}, "is no range"),
    ],
)
def test_a_wrong_search_is_refused(given: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        CellSearch.of(given, [1, 2], "search")


class Drawn:
    """A trial that notes what it is asked for, and answers with the same value every time."""

    def __init__(self, value: Any) -> None:
        self.value, self.asked = value, dict[str, Any]()

    def suggest_float(self, name: str, low: float, high: float, *, log: bool = False) -> float:
        self.asked = {"kind": "float", "low": low, "high": high, "log": log}
        return self.value

    def suggest_int(self, name: str, low: int, high: int, *, log: bool = False) -> int:
        self.asked = {"kind": "int", "low": low, "high": high, "log": log}
        return self.value

    def suggest_categorical(self, name: str, choices: Any) -> Any:
        self.asked = {"kind": "choice", "choices": choices}
        return self.value


@pytest.mark.parametrize(
    ("text", "asked", "value", "word", "ends"),
    [
        ("log(1e-4,1e-1)", ("float", 1e-4, 0.1, True), 0.00123456, "k=0.001235", ("k=0.0001", "k=0.1")),
        ("float(0, 2)", ("float", 0.0, 2.0, False), 1.99999, "k=2.0", ("k=0.0", "k=2.0")),
        ("float(0,1.99995)", ("float", 0.0, 1.99995, False), 1.99994, "k=1.99995", ("k=0.0", "k=1.99995")),
        ("int(0,95)", ("int", 0, 95, False), 7, "k=7", ("k=0", "k=95")),
        ("int(8, 256, log)", ("int", 8, 256, True), 16, "k=16", ("k=8", "k=256")),
    ],
)
def test_numbers(text: str, asked: tuple[Any, ...], value: Any, word: str, ends: tuple[str, ...]) -> None:
    found, trial = parse(f"k={text}"), Drawn(value)
    assert is_range(f"k={text}")
    assert found.word(trial) == word, "never beyond the ends, though rounded"
    assert tuple(trial.asked.values()) == asked
    assert found.ends == ends


def test_choices_may_be_lists() -> None:
    found, trial = parse("model.orthogonal={[c,r],[c], [c,r,u]}"), Drawn("[c]")
    assert found.choices == ("[c,r]", "[c]", "[c,r,u]")
    assert found.word(trial) == "model.orthogonal=[c]"
    assert found.ends[0] == "model.orthogonal=[c,r]"


@pytest.mark.parametrize("word", ["lr=1e-3", "T=20", "task.path=a.csv", "model.orthogonal=[c]", "seed=1,2", "lr="])
def test_other_words_are_no_ranges(word: str) -> None:
    assert not is_range(word)


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("lr=log(1,0.1)", "below the second"),
        ("lr=log(0,1)", "above 0"),
        ("lr=log(-1,1)", "above 0"),
        ("lr=log(a,1)", "a is no number"),
        ("lr=log(nan,1)", "nan is no finite number"),
        ("lr=log(1)", "is no range"),
        ("lr=uniform(0,1)", "is no range"),
        ("lr=int(0.5,3)", "whole numbers"),
        ("lr={1}", "two or more"),
        ("lr={1,1}", "two or more different"),
        ("lr={1,}", "two or more"),
        ("seed=int(1,9)", "the seed is no setting to tune"),
        ("T=int(5,30)", "T says what the task asks, and the best value of it is the easiest one"),
        ("task.test_size=int(10,100)", "task.test_size says what the task asks"),
    ],
)
def test_what_is_refused(word: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        parse(word)
