"""The figures: valid Vega-Lite without an address in it, and one sentence where the packages are missing."""

import json
import re
import sys
from pathlib import Path

import pytest

from orthobench.__main__ import main
from orthobench.report.site import charts

SIZES = {"seeds": (9,), "pairs": (9,), "standing": (2,)}


@pytest.mark.parametrize("kind", ["cost", "lengths", "seeds", "pairs", "curve", "standing", "phases"])
def test_a_figure_names_its_data_and_no_address(kind: str) -> None:
    pytest.importorskip("altair", reason="Altair is not installed: pip install 'orthobench[site]'")
    text = json.dumps(getattr(charts, kind)(*SIZES.get(kind, ())))
    assert '"shown"' in text
    assert "http" not in text


@pytest.mark.parametrize("direction", ["higher", "lower"])
def test_the_front_joins_and_names_the_cells_that_no_cheaper_one_beats(direction: str) -> None:
    pytest.importorskip("altair", reason="Altair is not installed: pip install 'orthobench[site]'")
    vl_convert = pytest.importorskip("vl_convert", reason="vl-convert is not installed: pip install 'orthobench[site]'")
    scores = {"a": (0.4, 10), "b": (0.3, 20), "c": (0.9, 30), "d": (0.8, 30), "e": (0.9, 40), "f": (1.0, 50)}
    values = [
        {"model": model, "mean": score if direction == "higher" else 1 - score, "bytes": cost, "direction": direction}
        | {"low": 0, "high": 1, "trivial": 0, "family": "free matrix", "href": "x"}
        for model, (score, cost) in scores.items()
    ]
    text = json.dumps(charts.cost())
    for token, word in {"@cost_title": "bytes", "@cost": "bytes", "@metric": "score", "@count": "99"}.items():
        text = text.replace(token, word)
    drawn = vl_convert.vegalite_to_svg(json.loads(text) | {"datasets": {"shown": values}, "width": 500})
    assert re.findall(r">([a-f])</text>", drawn) == ["a", "c", "f"]
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
def test_a_missing_package_is_one_sentence(
    missing: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    assert main(["site", f"results_root={tmp_path}"]) == 2
    told = capsys.readouterr().err
    assert "pip install 'orthobench[site]'" in told
    assert not list(tmp_path.iterdir())


def test_another_word_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["site", "paper=scornn"]) == 2
    assert "results_root=" in capsys.readouterr().err
