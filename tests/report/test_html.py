"""The page: escaped, self-contained, and alive in a browser at 400 and 1400 pixels."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from orthobench.analysis import curves, published, records
from orthobench.analysis.comparison import compare
from orthobench.analysis.curves import CurvePoint
from orthobench.analysis.status import COUNTS, STATUSES
from orthobench.config.table import load
from orthobench.report.document import Document, Grid, Section
from orthobench.report.figures import figures
from orthobench.report.html import marked, page, render
from tests.report.made_up import made_up, record

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
HOSTILE = "<img src=x onerror=alert(1)>"
ASK = """<script>
addEventListener("load", () => setTimeout(() => {
  const table = document.querySelector("#sgornn-table2 table"), column = 2;
  const value = row => parseFloat(row.cells[column].textContent.replace(/,/g, ""));
  const values = () => [...table.tBodies[0].rows].map(value);
  const button = table.tHead.rows[0].cells[column].querySelector("button");
  button.click(); const up = values(); button.click(); const down = values();
  const wide = [...document.querySelectorAll("body *")].filter(
    one => one.getBoundingClientRect().right > innerWidth + 1 && !one.closest(".wide, svg, details"));
  const links = [...document.querySelectorAll("a[href^='#']")];
  const status = [...document.querySelectorAll("#sgornn-table2 td.status")].map(one => one.getBoundingClientRect());
  const ids = [...document.querySelectorAll("main [id]")].filter(one => !one.closest("svg")).map(one => one.id);
  const box = document.querySelector(".filter input");
  box.value = "LSTM sgornn/table2"; box.dispatchEvent(new Event("input"));
  const kept = [...document.querySelectorAll("main tbody tr")].filter(row => row.checkVisibility());
  const other = document.querySelector("#scornn-table1").checkVisibility();
  box.value = ""; box.dispatchEvent(new Event("input"));
  const ink = one => getComputedStyle(one).color;
  const found = {
    filtered: kept.length > 0 && kept.every(row => row.textContent.toLowerCase().includes("lstm")) && !other,
    unfiltered: document.querySelectorAll("main [hidden]").length,
    status: status.length > 0 && status.every(one => one.width > 0 && one.left >= 0 && one.right <= innerWidth),
    twice: ids.length - new Set(ids).size,
    ink: [...document.querySelectorAll("figure svg")].every(one => ink(one) === ink(document.body)),
    up: up.every((v, i) => !i || up[i - 1] <= v), down: down.every((v, i) => !i || down[i - 1] >= v),
    sorted: table.tHead.rows[0].cells[column].getAttribute("aria-sort"),
    width: innerWidth, fits: document.documentElement.scrollWidth <= innerWidth, wide: wide.length,
    broken: links.filter(a => !document.querySelector(a.getAttribute("href"))).length, links: links.length > 40,
    images: document.querySelectorAll("img").length, figures: document.querySelectorAll("figure svg").length,
  };
  parent.postMessage(JSON.stringify(found), "*");
}, 0));
</script>"""
FRAME = """<!doctype html><body style="margin:0"><pre></pre>
<iframe src="page.html" style="width:{width}px;height:900px;border:0"></iframe>
<script>addEventListener("message", e => document.querySelector("pre").textContent = e.data)</script>"""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("results")
    seeds = range(1, 11)
    lines = [made_up("sgornn", s, best_val___test__accuracy=0.94, last___test__accuracy=0.94 + s / 5000) for s in seeds]
    lines += [
        made_up("lstm", s, last___test__accuracy=0.9 + s / 500, gpu=HOSTILE, parameters__total=19009) for s in seeds
    ]
    record(root, "sgornn/table2", lines)
    record(
        root, "sgornn/figure1", [made_up("vprnn_0.01", s, last___val__loss=0.01, baseline__loss=1 / 6) for s in (1, 2)]
    )
    fair = [
        made_up(f"{m}_lr{r}", s, best_val___val__accuracy=a, best_val___test__accuracy=a, baseline__accuracy=0.5)
        for m, a in (("lstm", 0.9), ("scornn", 0.8))
        for r in ("3e-2", "1e-2", "3e-3", "1e-3", "3e-4")
        for s in (101, 102, 1, 2, 3)
    ]
    record(root, "fair/har2", fair)
    curve = [
        CurvePoint(line.run_id, "full", line.row, line.seed, "val/loss", t, 0.2 / (1 + t * line.seed))
        for line in records.read(root, "sgornn/figure1")
        for t in (0, 100, 200)
    ]
    curves.add(root, "sgornn/figure1", curve)
    return root


@pytest.fixture(scope="module")
def text(results: Path) -> str:
    return page(results)


@pytest.mark.slow
def test_it_needs_nothing_else(text: str) -> None:
    outside = re.findall(r"""(?:src|href)=["']([^"'#][^"']*)""", text)
    assert set(outside) <= {"data:,"}
    assert "default-src 'none'" in text
    assert "url(http" not in text
    assert "@import" not in text


@pytest.mark.slow
def test_what_a_record_says_is_text(text: str) -> None:
    assert HOSTILE not in text
    assert "&lt;img src=x onerror=alert(1)&gt;" in text


@pytest.mark.slow
def test_statuses_are_words_and_the_summary_counts_them(text: str) -> None:
    assert all(f">{status}</button>" in text for status in (*STATUSES, *COUNTS))
    rows = [row for paper in published.papers() for row in published.load(paper)]
    scores = sum(row.counts is None and not row.lost for row in rows)
    assert f"{scores} published numbers and claims: " in text
    assert "151 parameter counts: " in text, "no score, so not among them"
    assert "reproduced" in text.split("</p>")[0]


def test_whatever_a_document_says_is_text() -> None:
    grid = Grid(["status", HOSTILE], [[f"partial {HOSTILE}", HOSTILE]], runs=[HOSTILE], subject=HOSTILE, case="<5")
    words = {name: f"{name} {HOSTILE}" for name in ("title", "heading")}
    facts = (f"`{HOSTILE}` *{HOSTILE}* [{HOSTILE}](x)",)
    section = Section("a", **words, facts=facts, grids=(grid,), paragraphs=(HOSTILE, f"- {HOSTILE}"), notes=(HOSTILE,))
    text = render([Document("p", HOSTILE, (section,), grid, ("partial",))])
    assert "<img" not in text
    assert text.count("&lt;img") >= 12
    assert '<td class="status partial"><b aria-hidden="true">…</b> partial &lt;img' in text


def test_code_and_emphasis_are_marked() -> None:
    assert str(marked("`a<b` *is* [words](there)")) == "<code>a&lt;b</code> <em>is</em> words"


@pytest.mark.slow
def test_the_same_records_give_the_same_page(results: Path, text: str) -> None:
    assert page(results) == text


def test_curves_are_drawn_the_same_each_time(results: Path) -> None:
    comparison = compare(load("sgornn/figure1"), results)
    drawn = figures(comparison, results)
    assert list(drawn) == ["Figure 1: T=500"]
    assert drawn == figures(comparison, results)
    assert drawn["Figure 1: T=500"].startswith("<svg")


def test_curves_are_read_back(results: Path) -> None:
    points = curves.read(results, "sgornn/figure1")
    assert len(points) == 6
    curves.add(results, "sgornn/figure1", points)
    assert curves.read(results, "sgornn/figure1") == points
    long = curves.thinned([[float(i), 0.0] for i in range(1001)])
    assert len(long) <= curves.POINTS + 1
    assert (long[0][0], long[-1][0]) == (0.0, 1000.0)


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: apt-get install chromium")
@pytest.mark.parametrize("width", [400, 1400])
def test_it_works_in_a_browser(width: int, text: str, tmp_path: Path) -> None:
    import json

    assert CHROMIUM is not None
    (tmp_path / "page.html").write_text(text.replace("</body>", ASK + "</body>"), encoding="utf-8")
    (tmp_path / "frame.html").write_text(FRAME.format(width=width), encoding="utf-8")
    done = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
         "--virtual-time-budget=8000", "--window-size=1500,1000",
         f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom",
         (tmp_path / "frame.html").as_uri()],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert not [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    answer = json.loads(re.findall(r"<pre>(.*?)</pre>", done.stdout, flags=re.S)[0])
    assert answer == {
        "up": True, "down": True, "sorted": "descending", "width": width, "fits": True, "wide": 0, "broken": 0,
        "images": 0, "links": True, "figures": 4,
        "filtered": True, "unfiltered": 0, "status": True, "twice": 0, "ink": True,
    }  # fmt: skip
