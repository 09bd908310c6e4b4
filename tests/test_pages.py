"""The pages: their links, and those about your own data, sweeps and finished runs, followed word for word."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from orthobench.study.catalogue import SHIPPED
from orthobench.study.sweep import jobs
from scripts import reference
from tests.conftest import REPO

OWN = (REPO / "docs" / "tutorials" / "your-own-data.md").read_text(encoding="utf-8")
SWEEPS = (REPO / "docs" / "how-to" / "compare-and-tune.md").read_text(encoding="utf-8")
FINISHED = (REPO / "docs" / "how-to" / "finished-runs.md").read_text(encoding="utf-8")


PAGES = sorted((REPO / "docs").rglob("*.md"))
LINK = re.compile(r"\]\(([^)\s#:]+)(?:#[^)\s]*)?\)")


def links(page: Path) -> list[Path]:
    return [(page.parent / link).resolve() for link in LINK.findall(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    assert [link for link in links(page) if not link.exists()] == []


def test_a_page_is_reached_from_the_front_page_in_two_clicks() -> None:
    first = links(REPO / "README.md")
    reached = {*first, *(link for page in first if page.suffix == ".md" for link in links(page))}
    assert [page for page in PAGES if page not in reached] == []


def test_the_index_has_every_page() -> None:
    text = (REPO / "docs" / "index.md").read_text(encoding="utf-8")
    trees = "\n".join(re.findall(r"toctree\}(.*?)```", text, flags=re.S))
    names = {page.relative_to(REPO / "docs").with_suffix("").as_posix() for page in PAGES} - {"index"}
    assert set(re.findall(r"^([\w/-]+)$", trees, flags=re.M)) == names


def test_pages_that_files_name_exist() -> None:
    files = [path for folder in ("orthobench", "conf", "tests", "scripts") for path in (REPO / folder).rglob("*.*")]
    texts = (path.read_text(encoding="utf-8") for path in files if path.suffix in (".py", ".yaml"))
    named = {name for text in texts for name in re.findall(r"docs/[\w/-]+\.md", text)}
    assert [name for name in sorted(named) if not (REPO / name).is_file()] == []


def test_tests_that_pages_name_exist() -> None:
    known = {path.name for path in (REPO / "tests").rglob("*.py")}
    named = {name for page in PAGES for name in re.findall(r"\btest_\w+\.py\b", page.read_text(encoding="utf-8"))}
    assert sorted(named - known) == []


COMMANDS = [
    line
    for page in PAGES
    for block in re.findall(r"^```sh\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    for line in block.splitlines()
    if line.startswith(("orthobench ", "python -m orthobench "))
]


@pytest.mark.parametrize("line", dict.fromkeys(COMMANDS))
def test_a_command_of_a_page_is_one_of_today(line: str) -> None:
    """Its verb and its options exist; a run that needs no file of the reader's is composed and checked."""
    from orthobench.verbs import VERBS

    words = shlex.split(line.partition(" > ")[0], comments=True)
    words = words[3:] if words[0] == "python" else words[1:]
    while "--config-dir" in words:
        at = words.index("--config-dir")
        words[at : at + 2] = ["own"]
    if words[0] in VERBS:
        reference.parser(words[0]).parse_intermixed_args([word for word in words[1:] if word != "own"])
    elif not any(word.startswith(("own", "task.path=", "init_from=", "experiment=")) for word in words):
        settings = [word for word in words if word != "-m" and "launcher" not in word]
        assert all(SHIPPED.settings(job).run_id for job in jobs(SHIPPED.parse(settings))[:2])


def blocks(page: str, kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", page, flags=re.M | re.S)


def shell(folder: Path, commands: list[str]) -> str:
    """What the commands print; `orthobench` and `python` are those of this checkout."""
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    for name, words in (("orthobench", "-m orthobench "), ("python", "")):
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {words}"$@"\n')
        (programs / name).chmod(0o755)
    env = {**os.environ, "PYTHONPATH": str(REPO), "PATH": f"{programs}:{os.environ['PATH']}"}
    env["ORTHOBENCH_RUNS"] = str(folder / "runs")
    script = "set -e\n" + "".join(commands)
    done = subprocess.run(["sh", "-c", script], cwd=folder, env=env, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_own_data_and_the_text_that_it_writes(tmp_path: Path) -> None:
    for name, text in re.findall(r"^`([\w.]+)`:\n\n```\w+\n(.*?)^```", OWN, flags=re.M | re.S):
        (tmp_path / name).write_text(text, encoding="utf-8")
    (code,) = blocks(OWN, "python")
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, timeout=120)
    shell(tmp_path, blocks(OWN, "sh"))
    kinds = [path.parent.name.rsplit("-", 1)[0] for path in (tmp_path / "runs").glob("*/record.json")]
    assert sorted(kinds) == ["series-gru", "series-scornn", "series-sgornn"] + ["text-lstm"] * 2
    (command,) = [block for block in blocks(FINISHED, "sh") if "LANGUAGE_RUN" in block]
    run = max((tmp_path / "runs").glob("text-lstm-*"), key=lambda path: "words" in (path / "config.yaml").read_text())
    printed = [shell(tmp_path, [command.replace("LANGUAGE_RUN", run.name)]) for _ in range(2)]
    assert printed[0].startswith("the cat ")
    assert printed[0] == printed[1]


@pytest.mark.slow
def test_what_to_do_with_a_finished_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: see the extra `export`")
    pytest.importorskip("onnxscript", reason="onnxscript is not installed: see the extra `export`")
    commands = [block for block in blocks(FINISHED, "sh") if "LANGUAGE_RUN" not in block]
    shell(tmp_path, commands[:1])
    (run,) = [path.name for path in (tmp_path / "runs").iterdir() if path.name.startswith("adding")]
    out = shell(tmp_path, [block.replace("RUN", run) for block in commands[1:]])
    assert len(re.findall(r"of the model at two lengths$", out, flags=re.M)) == 2
    assert "has its first 4 steps: going on from them" in out
    assert {path.name for path in (tmp_path / "runs" / run / "exports").iterdir()} == {
        "best.pt",
        "best.pt2",
        "best.onnx",
    }
    monkeypatch.chdir(tmp_path)
    (code,) = blocks(FINISHED, "python")
    names: dict[str, object] = {}
    exec(compile(code.replace("RUN", run), "docs/how-to/finished-runs.md", "exec"), names)
    assert tuple(getattr(names["y"], "shape", ())) == (20, 1)


@pytest.mark.slow
def test_own_sweeps(tmp_path: Path) -> None:
    pytest.importorskip("optuna", reason="optuna is not installed: see the extra `tune`")
    out = shell(tmp_path, blocks(SWEEPS, "sh"))
    assert "8 of 8 runs done" in out
    assert len(re.findall(r"^  (gru|lstm) .* best ", out, flags=re.M)) == 2 + 1, "of all, and of the chosen"
    assert len(list((tmp_path / "runs" / "figures").glob("*.svg"))) == 2
    logs = [path.read_text() for path in (tmp_path / "runs" / ".launched").glob("*.log")]
    assert sum("has its first 4 steps: going on from them" in text for text in logs) == 4
    assert out.count("2 of 2 runs done") == 2
    assert "[6/6] optimizer.lr=" in out
    (study,) = (tmp_path / "runs").glob("tune-adding-scornn-*")
    assert {"importance.svg", "journal.log", "conf"} <= {path.name for path in study.iterdir()}
    assert "on adding, T=20, seed 2" in out.split("recipe=tuned")[-1]
