"""The pages: every link leads somewhere inside the folder, nothing is loaded from elsewhere, all text is text."""

import csv
import hashlib
import io
import json
import posixpath
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag

import pytest

from orthobench.errors import StorageError
from orthobench.report.site.environment import essay, marked
from orthobench.report.site.places import Places, slug
from orthobench.report.site.write import ASSETS, WRITTEN, rendered, write
from tests import conftest
from tests.report.site.conftest import HOSTILE, undrawn

LINK = re.compile(r"""\s(href|src)=["']([^"']*)["']""")


def test_there_is_a_page_for_everything(site: dict[str, str], data: dict[str, Any]) -> None:
    places = Places(data)
    asked = [places.cell("lem"), places.task("parity"), places.paper("scornn"), *map(places.run, data["runs"])]
    assert {"index.html", "lengths.html", "runs.html", *asked} <= set(site)


def test_every_link_leads_to_a_place_in_the_folder(site: dict[str, str], data: dict[str, Any]) -> None:
    beside = {"results.json", "assets/vega.js", *(f"assets/{name}" for name in ASSETS)}
    beside |= {place["record"] for run in data["runs"].values() for place in run["places"]}
    ids = {path: set(re.findall(r'\sid="([^"]*)"', text)) for path, text in site.items()}
    broken = []
    for path, text in site.items():
        for _, link in LINK.findall(text) if path.endswith(".html") else ():
            target, anchor = urldefrag(link)
            place = posixpath.normpath(posixpath.join(posixpath.dirname(path), unquote(target))) if target else path
            here = link == "data:," or place in beside or place in site
            if not here or (anchor and anchor not in ids[place]):
                broken.append((path, link))
    assert not broken


def test_nothing_is_loaded_from_elsewhere(site: dict[str, str]) -> None:
    for path, text in site.items():
        if path.endswith(".html"):
            assert "default-src 'none'" in text
            assert not re.search(r"""(src|href)=["']?(https?:)?//""", text), path
            assert not re.search(r"url\((?!#)|@import|<iframe|\son[a-z]+=\"", text), path


def test_what_a_record_says_is_text(site: dict[str, str]) -> None:
    pages = [text for path, text in site.items() if path.endswith(".html")]
    assert not [text for text in pages if "<img" in text or "onerror=alert(1)></script>" in text]
    assert [text for text in pages if "&lt;img src=x" in text]


def test_a_hostile_name_is_no_path_and_no_markup(data: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    undrawn(monkeypatch)
    twisted = json.loads(json.dumps(data).replace("lstm", json.dumps("../../" + HOSTILE)[1:-1]))
    found = rendered(twisted, HOSTILE, documented=True)
    assert not [path for path in found if ".." in path or "<" in path]
    for path, text in found.items():
        if path.endswith(".html"):
            assert "<img" not in text, path
            assert '<a href="' + "../" * path.count("/") + "docs/index.html" in text


def test_numbers_lead_to_their_runs(site: dict[str, str], data: dict[str, Any]) -> None:
    task, index, paper = site["tasks/cued_copying.html"], site["index.html"], site["papers/sgornn.html"]
    places, (gru,) = Places(data), (line for line in data["fair"] if line["model"] == "gru")
    for one in gru["seeds"]:
        assert re.search(rf'<a href="../runs/{one["run"]}.html" title="seed \d[^"]*">{one["value"]:.4f}</a>', task)
    assert f'<a href="{places.line(gru)}">{gru["mean"]:.4f}</a>' in index
    runs = next(line["runs"] for line in data["published"] if line["table"] == "sgornn/table2" and line["runs"])
    assert all(f'<a href="../runs/{run}.html">' in paper for run in runs)


def test_every_plot_has_a_table_and_its_data(site: dict[str, str]) -> None:
    for path, text in site.items():
        for section in text.split("data-plot>")[1:] if path.endswith(".html") else ():
            (name,) = re.findall(r'href="(?:\.\./)*(data/[^"]*\.csv)" download', section.split("</figure>")[0])
            assert "<table" in section
            assert len(list(csv.reader(io.StringIO(site[name])))) > 1


def test_code_and_emphasis_are_marked() -> None:
    assert str(marked("`a<b` *is* [words](there)")) == "<code>a&lt;b</code> <em>is</em> words"


def test_an_equation_is_set_apart() -> None:
    text = str(essay("A cell.\n\n    h = a < b\n\nWith `a` of x * y * z."))
    equation = '<pre class="equation" tabindex="0">h = a &lt; b</pre>'
    assert text == f"<p>A cell.</p>\n{equation}\n<p>With <code>a</code> of x * y * z.</p>"


@pytest.fixture
def written(data: dict[str, Any], results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Path]:
    """Write the site into a folder of the test's own, from a copy of the records."""
    undrawn(monkeypatch)
    shutil.copytree(results / "records", tmp_path / "results" / "records")
    return lambda: write(data, tmp_path / "results", "script").parent


def test_what_is_gone_is_removed(data: dict[str, Any], written: Callable[[], Path]) -> None:
    site = written()
    old = site / "runs" / "old.html"
    conftest.write(site, {"runs/old.html": "", "docs/index.html": ""})
    known = json.loads((site / WRITTEN).read_text())
    (site / WRITTEN).write_text(json.dumps(known | {"runs/old.html": [hashlib.sha256(b"").hexdigest()]}))
    assert written() == site
    assert not old.exists()
    assert 'href="docs/index.html"' in (site / "index.html").read_text()
    assert json.loads((site / "results.json").read_text())["runs"].keys() == data["runs"].keys()
    record = "records/fair/cued_copying.csv"
    assert (site / record).read_bytes() == (site.parent / record).read_bytes()
    assert set(json.loads((site / WRITTEN).read_text())) == {
        path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file()
    } - {"docs/index.html", WRITTEN}


@pytest.mark.parametrize("named", [[hashlib.sha256(b"other").hexdigest()], [], "x", None, [1]])
def test_what_somebody_else_wrote_stays(named: Any, written: Callable[[], Path]) -> None:
    site = written()
    own, outside = site / "records" / "notes.txt", site.parent / "thesis.tex"
    for path in (own, outside):
        path.write_text("mine")
    digest = [hashlib.sha256(b"mine").hexdigest()]
    others = {"records/notes.txt": named, "../thesis.tex": digest, str(outside): digest, "": digest}
    (site / WRITTEN).write_text(json.dumps(json.loads((site / WRITTEN).read_text()) | others))
    written()
    assert own.read_text() == outside.read_text() == "mine"


@pytest.mark.parametrize(
    "place", ["site", "site/records", "site/runs", "site/index.html", "site/written.json", "records"]
)
def test_links_are_refused(place: str, written: Callable[[], Path], tmp_path: Path) -> None:
    root, precious = tmp_path / "results", tmp_path / "precious"
    names = ("thesis.tex", "old.html", "fair/cued_copying.csv")
    conftest.write(precious, dict.fromkeys(names, "mine"))
    (root / "site").mkdir()
    if place != "site/runs":
        shutil.rmtree(root / place, ignore_errors=True)
    (root / place).symlink_to(precious / "thesis.tex" if "." in place else precious)
    with pytest.raises(StorageError, match="is a link"):
        written()
    assert {(precious / name).read_text() for name in names} == {"mine"}
    assert {path.name for path in precious.rglob("*") if path.is_file()} == {Path(name).name for name in names}


def test_a_page_that_somebody_changed_is_not_overwritten(written: Callable[[], Path], tmp_path: Path) -> None:
    site = written()
    (site / "index.html").write_text("mine")
    with pytest.raises(StorageError, match="not what this program wrote"):
        written()
    assert (site / "index.html").read_text() == "mine"


def test_another_name_of_a_page_keeps_its_content(written: Callable[[], Path], tmp_path: Path) -> None:
    site = written()
    (tmp_path / "other").hardlink_to(site / "results.json")
    before = (tmp_path / "other").read_text()
    known = json.loads((site / WRITTEN).read_text())
    (site / "results.json").write_text("x")
    known["results.json"].append(hashlib.sha256(b"x").hexdigest())
    (site / WRITTEN).write_text(json.dumps(known))
    written()
    assert ((tmp_path / "other").read_text(), (site / "results.json").read_text()) == ("x", before)


@pytest.mark.parametrize(("name", "expected"), [("lstm", "lstm"), ("a-1.5_b", "a-1.5_b")])
def test_a_plain_name_is_its_own_file(name: str, expected: str) -> None:
    assert slug(name) == expected


@pytest.mark.parametrize("name", ["../x", "a/b", "..", "", "x" * 300, HOSTILE, "."])
def test_another_name_is_made_one(name: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_.-]{1,90}", slug(name))
    assert not slug(name).startswith(".")
    assert slug(name) != slug(name + "!")
