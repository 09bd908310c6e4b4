"""The figures: valid Vega-Lite without an address in it, and one sentence where the packages are missing."""

import json
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
