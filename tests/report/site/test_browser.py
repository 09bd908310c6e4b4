"""The pages in headless Chromium: no request, an empty console, no overlap, no sideways scrolling, a keyboard."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orthobench.report.site import charts
from orthobench.report.site.places import Places
from orthobench.report.site.write import write
from tests.report.site.browser import CHROMIUM, Browser

PAPER = {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 24, 28)"}
PLOTS = {"index": 1, "lengths": 1, "runs": 0, "cells": 0, "cell": 1, "task": 1, "paper": 1, "run": 1}
LOOK = """(() => {
  const box = one => one.getBoundingClientRect();
  const seen = one => one.getAttribute("opacity") !== "0" && one.textContent.trim() && box(one).width > 0;
  const meet = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
    Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1;
  const meeting = found => found.flatMap((one, i) => found.slice(i + 1).filter(other => meet(box(one), box(other)))
    .map(other => [one.textContent.trim().slice(0, 40), other.textContent.trim().slice(0, 40)]));
  const charts = [...document.querySelectorAll(".chart svg")];
  const blocks = [...document.querySelectorAll("main, main section, main article, .controls")].map(one =>
    [...one.children].filter(child => box(child).width && box(child).height));
  const shown = [...document.querySelectorAll("[data-plot] table")].filter(one => one.tBodies[0].rows.length);
  return {
    drawn: charts.length,
    texts: charts.flatMap(one => meeting([...one.querySelectorAll("text")].filter(seen))),
    blocks: blocks.flatMap(meeting),
    cut: charts.flatMap(one => [...one.querySelectorAll("text")].filter(seen)
      .filter(text => box(text).right > box(one).right + 1 || box(text).left < box(one).left - 1)
      .map(text => text.textContent)),
    wide: [...document.querySelectorAll("body *")].filter(
      one => box(one).right > innerWidth + 1 && !one.closest(".wide, svg, pre, details, .skip")).length,
    scrolls: document.documentElement.scrollWidth > innerWidth,
    unnamed: [...document.querySelectorAll("select, input, .chart")].filter(
      one => !one.closest("label") && !one.getAttribute("aria-label")).length,
    twice: (ids => ids.length - new Set(ids).size)(
      [...document.querySelectorAll("[id]")].filter(one => !one.closest("svg")).map(one => one.id)),
    blank: shown.flatMap(table => [...table.querySelectorAll("thead th:not([hidden])")].filter(head => ![...table
      .querySelectorAll("tbody tr:not([hidden])")].some(row => row.cells[head.cellIndex].textContent.trim()))).length,
    paper: getComputedStyle(document.body).backgroundColor,
  };
})()"""
NAMES = """[...document.querySelectorAll(".chart .names_marks text, .chart .ends_marks text")]
  .filter(one => one.getAttribute("opacity") !== "0").map(one => one.textContent)"""
FOUND = """[...document.querySelectorAll("tr.found")].map(row => row.cells[0].textContent.trim())"""
REACHABLE = """(() => {
  const found = [...document.querySelectorAll("a[href], button, select, input, summary, [tabindex]")].filter(
    one => one.tabIndex >= 0 && one.checkVisibility() && !one.closest("svg, [hidden]"));
  found.forEach((one, place) => { one.dataset.place = place; });
  return found.length;
})()"""
HERE = "Number(document.activeElement?.dataset.place ?? -1)"

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: apt-get install chromium")


@pytest.fixture(scope="module")
def folder(data: dict[str, Any], results: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("altair", reason="Altair is not installed: pip install 'orthobench[site]'")
    pytest.importorskip("vl_convert", reason="vl-convert is not installed: pip install 'orthobench[site]'")
    root = tmp_path_factory.mktemp("browser")
    shutil.copytree(results, root, dirs_exist_ok=True)
    return write(data, root, charts.javascript()).parent


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    found = Browser(tmp_path_factory.mktemp("profile"))
    yield found
    found.close()


@pytest.fixture(scope="module")
def pages(data: dict[str, Any]) -> dict[str, str]:
    places = Places(data)
    run = next(run for run in data["runs"].values() if run["curves"])
    lists = {name: f"{name}.html" for name in ("index", "lengths", "runs", "cells")}
    cell, task, paper = places.cell("gru"), places.task("cued_copying"), places.paper("sgornn")
    return lists | {"cell": cell, "task": task, "paper": paper, "run": places.run(run["run_id"])}


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1400, "light")])
def test_all_kinds_of_pages_are_drawn_without_overlap(
    width: int, scheme: str, folder: Path, browser: Browser, pages: dict[str, str]
) -> None:
    right = {"texts": [], "blocks": [], "cut": [], "wide": 0, "scrolls": False, "unnamed": 0, "twice": 0, "blank": 0}
    for name, page in pages.items():
        browser.open(folder / page, width, scheme=scheme)
        assert browser.ask(LOOK) == right | {"drawn": PLOTS[name], "paper": PAPER[scheme]}, name
        assert browser.said() == [], name
        assert all(one.startswith(folder.as_uri()) or one == "data:," for one in browser.requested()), name


def test_every_choice_shows_something_and_a_limit_nothing(folder: Path, browser: Browser) -> None:
    browser.open(folder / "index.html", 1400)
    rows = 'document.querySelectorAll("[data-plot] tbody tr:not([hidden])").length'
    change = 'one.dispatchEvent(new Event("input", { bubbles: true }))'
    selects = 'document.querySelectorAll("[data-plot] select")'
    for place in range(browser.ask(f"{selects}.length")):
        browser.ask(f"(one => {{ one.selectedIndex = one.options.length - 1; {change}; }})({selects}[{place}])")
        assert browser.ask(rows) > 0
    browser.ask(f"(one => {{ one.value = 0; {change}; }})(document.querySelector('input[type=number]'))")
    assert browser.ask(rows) == 0
    assert browser.said() == []


@pytest.mark.parametrize("page", ["index.html", "lengths.html"])
def test_every_cell_can_be_found(page: str, folder: Path, browser: Browser) -> None:
    browser.open(folder / page, 390)
    everyone = browser.ask('[...document.querySelectorAll("datalist option")].map(one => one.value)')
    shown = set(
        browser.ask(
            '[...document.querySelectorAll("[data-plot] tbody tr:not([hidden]) th")].map(one => one.textContent)'
        )
    )
    assert shown <= set(everyone)
    field = 'document.querySelector("input[type=search][data-role=find]")'
    for name in shown:
        browser.ask(f"{field}.focus(), {field}.select()")
        browser.type(name)
        browser.ask("new Promise(done => setTimeout(done, 300))")
        assert browser.ask(FOUND) == [name]
        assert name in browser.ask(NAMES)
    assert browser.said() == []


def test_the_keyboard_reaches_everything_and_sorts(folder: Path, browser: Browser, pages: dict[str, str]) -> None:
    for page in ("index.html", pages["task"]):
        browser.open(folder / page, 1400)
        wanted, met = browser.ask(REACHABLE), set()
        for _ in range(wanted + 5):
            browser.press("Tab")
            met.add(browser.ask(HERE))
        assert not set(range(wanted)) - met
    browser.ask('document.querySelector("th.number:not([hidden]) button").focus()')
    for way in ("ascending", "descending"):
        browser.press("Enter", "\r")
        head = browser.ask("""(head => [head.getAttribute("aria-sort"), [...head.closest("table").tBodies[0].rows]
          .map(row => parseFloat(row.cells[head.cellIndex].textContent)).filter(one => !Number.isNaN(one))]
        )(document.activeElement.closest("th"))""")
        assert head == [way, sorted(head[1], reverse=way == "descending")]


def test_without_a_script_the_text_is_there(folder: Path, browser: Browser, pages: dict[str, str]) -> None:
    for page in ("index.html", pages["run"], pages["cell"]):
        browser.open(folder / page, 1400, script=False)
        text = browser.text()
        assert "needs JavaScript; the table has the same numbers" in text
        assert "What the figure shows" not in text
        assert "gru" in text or "vprnn" in text
