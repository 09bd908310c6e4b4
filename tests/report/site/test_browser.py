"""The pages in headless Chromium: no request, nothing in the console, no sideways scrolling, alive by keyboard."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from orthobench.report.site import charts
from orthobench.report.site.places import Places
from orthobench.report.site.write import write

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
SCHEMES = {"light": "1", "dark": "0"}  # values of Chromium's setting preferredColorScheme
ASK = """
addEventListener("load", async () => {
  const pause = ms => new Promise(done => setTimeout(done, ms));
  await pause(2500);
  const plots = [...document.querySelectorAll("[data-plot]")];
  const choices = [];
  for (const section of plots) {
    for (const select of section.querySelectorAll("select")) {
      const before = [...section.querySelectorAll("tbody tr:not([hidden])")].length;
      select.selectedIndex = select.options.length - 1;
      select.dispatchEvent(new Event("input", { bubbles: true }));
      await pause(100);
      choices.push(before > 0 && section.querySelectorAll("tbody tr:not([hidden])").length > 0);
    }
    const most = section.querySelector("input[type=number]");
    if (most) {
      most.value = "0"; most.dispatchEvent(new Event("input", { bubbles: true })); await pause(100);
      choices.push(section.querySelectorAll("tbody tr:not([hidden])").length === 0);
      most.value = ""; most.dispatchEvent(new Event("input", { bubbles: true })); await pause(300);
    }
  }
  const blank = plots.filter(section => section.payload.match.length).flatMap(section => {
    const shown = [...section.querySelectorAll("tbody tr:not([hidden])")];
    return [...section.querySelectorAll("thead th:not([hidden])")].filter(
      head => shown.length && !shown.some(row => row.cells[head.cellIndex].textContent.trim()));
  });
  const header = document.querySelector("th.number:not([hidden]) button");
  if (header) header.click();
  const active = [...document.querySelectorAll("a, button, select, input, summary, [tabindex]")];
  const reached = active.filter(one => one.tabIndex < 0);
  const unnamed = [...document.querySelectorAll("select, input, .chart")].filter(
    one => !one.closest("label") && !one.getAttribute("aria-label"));
  const ids = [...document.querySelectorAll("[id]")].filter(one => !one.closest("svg")).map(one => one.id);
  const wide = [...document.querySelectorAll("body *")].filter(
    one => one.getBoundingClientRect().right > innerWidth + 1 && !one.closest(".wide, svg, pre, details, .skip"));
  parent.postMessage(JSON.stringify({
    drawn: plots.every(section => section.querySelector(".chart svg")), plots: plots.length,
    choices: choices.every(Boolean),
    sorted: !header || header.closest("th").getAttribute("aria-sort") === "ascending",
    fits: document.documentElement.scrollWidth <= innerWidth, width: innerWidth,
    wide: wide.map(one => one.outerHTML.slice(0, 80)), reached: reached.length, unnamed: unnamed.length,
    blank: blank.length, twice: ids.length - new Set(ids).size,
    paper: getComputedStyle(document.body).backgroundColor,
    ink: [...document.querySelectorAll(".chart svg text")].map(one => one.getAttribute("fill")).includes("#e8ebee"),
    asked: performance.getEntriesByType("resource").map(one => one.name),
  }), "*");
});
"""
FRAME = """<!doctype html><body style="margin:0"><pre></pre>
<iframe src="{page}" style="width:{width}px;height:900px;border:0"></iframe>
<script>addEventListener("message", e => document.querySelector("pre").textContent = e.data)</script>"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: apt-get install chromium"),
]


@pytest.fixture(scope="module")
def folder(data: dict[str, Any], results: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("altair", reason="Altair is not installed: pip install 'orthobench[site]'")
    pytest.importorskip("vl_convert", reason="vl-convert is not installed: pip install 'orthobench[site]'")
    root = tmp_path_factory.mktemp("browser")
    shutil.copytree(results, root, dirs_exist_ok=True)
    site = write(data, root, charts.javascript()).parent
    script = site / "assets" / "site.js"
    script.write_text(script.read_text() + ASK)
    return site


def _pages(data: dict[str, Any]) -> dict[str, str]:
    places = Places(data)
    run = next(run for run in data["runs"].values() if run["curves"])
    return {
        "index": "index.html",
        "lengths": "lengths.html",
        "runs": "runs.html",
        "cells": "cells.html",
        "cell": places.cell("gru"),
        "task": places.task("cued_copying"),
        "paper": places.paper("sgornn"),
        "run": places.run(run["run_id"]),
    }


PLOTS = {"index": 1, "lengths": 1, "runs": 0, "cells": 0, "cell": 1, "task": 1, "paper": 1, "run": 1}


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", [400, 1400])
@pytest.mark.parametrize("name", PLOTS)
def test_a_page(name: str, width: int, scheme: str, folder: Path, data: dict[str, Any], tmp_path: Path) -> None:
    assert CHROMIUM is not None
    frame = tmp_path / "frame.html"
    frame.write_text(FRAME.format(page=(folder / _pages(data)[name]).as_uri(), width=width), encoding="utf-8")
    done = subprocess.run(
        [
            CHROMIUM,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--enable-logging=stderr",
            "--virtual-time-budget=15000",
            f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}",
            "--window-size=1500,1000",
            f"--user-data-dir={tmp_path / 'profile'}",
            "--dump-dom",
            frame.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    answer = json.loads(
        re.findall(r"<pre>(.*?)</pre>", done.stdout, flags=re.S)[0].replace("&lt;", "<").replace("&gt;", ">")
    )
    asked = answer.pop("asked")
    assert all(one.startswith(folder.as_uri()) for one in asked)
    dark = scheme == "dark"
    assert answer == {
        "drawn": True,
        "plots": PLOTS[name],
        "choices": True,
        "sorted": True,
        "fits": True,
        "width": width,
        "wide": [],
        "reached": 0,
        "unnamed": 0,
        "blank": 0,
        "twice": 0,
        "paper": "rgb(20, 24, 28)" if dark else "rgb(255, 255, 255)",
        "ink": dark and PLOTS[name] > 0,
    }
