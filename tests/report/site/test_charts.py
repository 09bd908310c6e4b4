"""The figures: valid Vega-Lite without an address in it; the line of the best, and the names that are wanted most."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from orthobench.common.packages import install
from orthobench.report.site import charts, marks
from tests.conftest import Refused

SIZES = {"seeds": (9,), "pairs": (9,), "standing": (2,)}


@pytest.mark.parametrize("kind", ["cost", "lengths", "seeds", "pairs", "curve", "standing", "phases"])
def test_a_figure_names_its_data_and_no_address(kind: str) -> None:
    pytest.importorskip("altair", reason="Altair is not installed: pip install 'orthobench[site]'")
    text = json.dumps(getattr(charts, kind)(*SIZES.get(kind, ())))
    assert '"shown"' in text
    assert "http" not in text


def test_the_line_joins_what_the_data_say_and_a_ring_shows_what_is_found() -> None:
    pytest.importorskip("altair", reason="Altair is not installed: pip install 'orthobench[site]'")
    vl_convert = pytest.importorskip("vl_convert", reason="vl-convert is not installed: pip install 'orthobench[site]'")
    values = [
        {"model": model, "mean": score, "bytes": cost, "front_bytes": model in "acf", "found": model == "b"}
        | {
            "low": 0,
            "bottom": 0,
            "high": 1,
            "trivial": 0,
            "family": "free matrix",
            "href": "x",
            "control": model == "d",
        }
        for model, score, cost in [
            ("a", 0.4, 10),
            ("b", 0.3, 20),
            ("c", 0.9, 30),
            ("d", 0.8, 30),
            ("e", 0.9, 40),
            ("f", 1.0, 50),
        ]
    ]
    text = json.dumps(charts.cost())
    for token, word in {"@cost_title": "bytes", "@cost": "bytes", "@metric": "score"}.items():
        text = text.replace(token, word)
    drawn = vl_convert.vegalite_to_svg(json.loads(text) | {"datasets": {"shown": values}, "width": 500})
    assert re.findall(r">([a-f])</text>", drawn) == list("abcdef")
    assert len(re.findall(r"role-mark layer_4_marks.*?</g>", drawn, re.DOTALL)[0].split("<path")) == 2  # around b
    line = re.search(r'role-mark layer_1_marks.*?<path[^>]* d="([^"]*)"', drawn, re.DOTALL)
    assert line is not None
    assert line[1].count("L") == 4  # two steps


def test_the_script_is_one_file_that_hides_its_names() -> None:
    pytest.importorskip("vl_convert", reason="vl-convert is not installed: pip install 'orthobench[site]'")
    script = charts.javascript()
    assert script.startswith("(() => {")
    assert "window.vegaEmbed" in script
    assert "import(" not in script.replace("import.meta", "")


@pytest.mark.parametrize("missing", ["altair", "vl_convert"])
def test_a_missing_package(missing: str, monkeypatch: pytest.MonkeyPatch, refused: Refused, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    refused(["site", f"results_root={tmp_path}"], install("site"))
    assert not list(tmp_path.iterdir())


SCORES = {"a": (0.4, 10), "b": (0.3, 20), "c": (0.9, 30), "d": (0.8, 30), "e": (0.9, 40), "f": (1.0, 50)}


def values(scores: dict[str, tuple[float, float]], cost: str, **more: Any) -> list[dict[str, Any]]:
    told = {"direction": "higher", "scale": "linear", "control": False} | more
    return [{"model": model, "mean": mean, cost: at} | told for model, (mean, at) in scores.items()]


def front(found: list[dict[str, Any]], cost: str) -> str:
    return "".join(value["model"] for value in found if value[f"front_{cost}"])


@pytest.mark.parametrize("direction", ["higher", "lower"])
def test_on_the_line_is_what_no_cheaper_one_equals(direction: str) -> None:
    scores = {name: (mean if direction == "higher" else 1 - mean, cost) for name, (mean, cost) in SCORES.items()}
    found = values(scores, "state_bytes", direction=direction)
    marks.mark_the_best(found, "state_bytes")
    assert front(found, "state_bytes") == "acf"


def test_a_difference_that_is_rounded_away_is_worth_no_cost() -> None:
    found = values({"a": (0.9996, 10), "b": (1.0, 20)}, "state_bytes")
    marks.mark_the_best(found, "state_bytes")
    assert front(found, "state_bytes") == "a"


def test_losses_are_compared_by_their_ratios() -> None:
    losses = {"a": (0.0100, 10), "b": (0.0095, 20), "c": (0.0030, 30)}
    found = values(losses, "state_bytes", direction="lower", scale="log")
    marks.mark_the_best(found, "state_bytes")
    assert front(found, "state_bytes") == "ac"


def test_a_control_is_on_no_line_and_hides_no_other() -> None:
    found = values({"a": (1.0, 10), "b": (1.0, 20)}, "state_bytes")
    found[0]["control"] = True
    marks.mark_the_best(found, "state_bytes")
    assert front(found, "state_bytes") == "b"


def test_names_are_wanted_on_the_line_then_of_what_is_as_good_at_about_the_same_time() -> None:
    scores = {"first": (1.0, 4.0), "near": (1.0, 5.0), "control": (1.0, 4.1), "slow": (1.0, 20.0), "bad": (0.1, 4.5)}
    found = values(scores, "milliseconds")
    found[2]["control"] = True
    marks.mark_the_best(found, "milliseconds")
    assert [value["weight_milliseconds"] for value in found] == [marks.FRONT, marks.EQUAL, 0, 0, 0]


def test_a_cost_that_was_not_measured_has_no_mark() -> None:
    found = values({"a": (1.0, 10.0), "b": (1.0, 20.0)}, "milliseconds")
    found[0]["milliseconds"] = None
    marks.mark_the_best(found, "milliseconds")
    assert front(found, "milliseconds") == "b"
    assert not found[0]["weight_milliseconds"]
