"""A paper that the program has never heard of: its files alone make every verb know it, outside and inside."""

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from orthobench.__main__ import main
from orthobench.study.catalogue import SHIPPED, Catalogue
from orthobench.study.records import curves, records
from orthobench.study.records.curves import CurvePoint
from tests.conftest import REPO, Refused, write
from tests.report.made_up import made_up
from tests.report.site.conftest import undrawn

EXPERIMENT = """
description: "Sixth, Table 1: adding"
track: published
seeds: [1, 2, 3]
margin: {test/loss: 0.01}
common: [task=adding, recipe=none, T=5, trainer.max_steps=2, task.val_size=2, task.test_size=2]
cells:
  lstm: [model=lstm]
  gru: [model=gru]
figures:
  - {title: "Figure 1: loss", curve: [val/loss]}
presets: {}
"""
PUBLISHED = """
rows:
  - {table: table1, row: LSTM, column: Test loss, metric: test/loss, section: "1", seeds: 1, select: last, kind: result,
    value: 0.05, cell: lstm}
  - {table: table1, row: GRU, column: Test loss, metric: test/loss, section: "1", seeds: 1, select: last, kind: result,
    value: 0.09, cell: gru}
  - {table: table1, row: LSTM, column: Test loss, metric: test/loss, section: "1", seeds: 1, select: last, kind: claim,
    claim: The LSTM is better., test: {better: [lstm], than: [gru]}}
"""
BIB = "@misc{sixth2026,\n  title = {A Sixth Paper},\n}\n"
FILES = {"experiment/sixth/table1.yaml": EXPERIMENT, "published/sixth.yaml": PUBLISHED, "published/sixth.bib": BIB}
COMMANDS = {
    ("reproduce", "sixth"): ("0 runs to do, 6 recorded already", "wrote results/tables/sixth.md"),
    ("plan", "sixth/table1"): ("sixth/table1: 6 of 6 runs recorded, 0 to do",),
    ("compare", "sixth"): ("Table 1 (`sixth/table1`)", "The LSTM is better.", "reproduced"),
    ("plot", "all"): ("wrote results/figures/sixth-table1-loss.svg",),
    ("cite", "sixth", "sixth/table1"): ("@misc{sixth2026",),
    **({("site",): ("wrote results/site/index.html",)} if find_spec("altair") else {}),  # which the extra `site` brings
    ("tables",): ("wrote results/tables/sgornn.md",),
    ("list", "tables"): ("Sixth, Table 1: adding",),
}


def record(results: Path, folder: Path) -> None:
    """Three finished runs of each model, which no training made."""
    lines, points = [], []
    for cell, loss in (("lstm", 0.05), ("gru", 0.09)):
        for seed in (1, 2, 3):
            words = ["experiment=sixth/table1", f"cell={cell}", f"seed={seed}"]
            run_id = Catalogue((folder,)).settings(words).run_id
            lines.append(made_up(cell, seed, run_id=run_id, last___test__loss=loss + seed / 1e4))
            points += [CurvePoint(run_id, "full", cell, seed, "val/loss", step, loss) for step in (0, 10)]
    records.write(results, "sixth/table1", lines)
    curves.add(results, "sixth/table1", points)


@pytest.mark.slow
def test_every_verb_knows_it(here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    undrawn(monkeypatch)
    folder = write(here / "mine", FILES)
    record(here / "results", folder)
    for words, expected in COMMANDS.items():
        assert main([*words, "--config-dir", str(folder)]) == 0
        out = capsys.readouterr().out
        assert all(text in out for text in expected), (words, out)
    if ("site",) in COMMANDS:
        page = (here / "results" / "site" / "papers" / "sixth.html").read_text()
        assert "sixth-table1" in page
        assert "The LSTM is better." in page
    assert main(["tables", "--check", "--config-dir", str(folder)]) == 0
    assert "sixth" in Catalogue((folder,)).papers()
    assert "sixth" not in SHIPPED.papers()


def test_a_second_paper_of_one_name_is_refused(tmp_path: Path, refused: Refused) -> None:
    write(tmp_path, {"published/scornn.yaml": PUBLISHED})
    refused(["tables", "--check", "--config-dir", str(tmp_path)], "two papers of one name")


@pytest.mark.slow
def test_inside_the_repository(tmp_path: Path) -> None:
    root = tmp_path / "checkout"
    for part in ("orthobench", "conf", "results/published"):
        shutil.copytree(REPO / part, root / part, ignore=shutil.ignore_patterns("__pycache__"))
    outside = write(tmp_path / "mine", FILES)
    record(root / "results", outside)
    for name, text in FILES.items():
        write(root / ("results" if name.startswith("published") else "conf"), {name: text})
    program = """
import sys
from orthobench.__main__ import main
for words in sys.argv[1:]:
    assert main(words.split()) == 0, words
    print(end="\\f")
"""
    done = subprocess.run(
        [sys.executable, "-c", program, *(" ".join(words) for words in COMMANDS)],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    for (words, expected), out in zip(COMMANDS.items(), done.stdout.split("\f")[:-1], strict=True):
        assert all(text in out for text in expected), (words, out)
