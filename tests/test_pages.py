"""Pages: their links, and everything that they tell a reader to type."""

import re
import shlex
from pathlib import Path

import pytest

from tests.conftest import REPO
from tests.pages import ALL, INLINE, MARKED, REASONS, TYPED, Block, Reader, commands, composed, unlike
from tests.pages import PAGES as WITH_README

PAGES = WITH_README[1:]

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


SAMPLE = ("layers",)  # of the pages that are followed, those of the default set
FOLLOWED = sorted({block.page for block in TYPED if not block.reason})
OPEN = re.compile(r"\.\.\.|\b(?:RUN|MODEL|TASK|TABLE|KEY|VALUE)\b|\b(?:newer|my)\.")  # words that a reader fills in


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, id=page.stem, marks=[] if page.stem in SAMPLE else pytest.mark.slow) for page in FOLLOWED],
)
def test_a_page_is_followed_word_for_word(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ORTHOBENCH_RUNS")
    monkeypatch.setenv("MPLBACKEND", "Agg")
    Reader(tmp_path / "empty").follow(page)


@pytest.mark.parametrize("block", MARKED, ids=lambda block: block.place)
def test_a_block_that_is_not_run_is_composed(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The summary of pytest counts these by their reason."""
    assert block.reason in REASONS
    assert block.kind == "sh"
    own = ()
    if "--config-dir my_conf" in block.text:
        own = (tmp_path / "empty" / "my_conf",)
        monkeypatch.setenv("ORTHOBENCH_PLUGINS", "my_cells")
        monkeypatch.syspath_prepend(tmp_path / "empty")
        Reader(tmp_path / "empty").prepare(REPO / "docs" / "tutorials" / "your-own-cell.md")
    for command in commands(block.text):
        composed(command, own)
    pytest.skip(f"composed and checked, not run: {block.reason}")


def test_few_blocks_are_not_run() -> None:
    assert len(MARKED) <= 25
    assert all(block.kind in ("sh", "python") for block in ALL if block.reason), "a mark stands before commands"


def test_no_fenced_block_is_overlooked() -> None:
    """Every fence of a kind that is typed, shown or written is one of the kinds that a page has."""
    kinds = {"sh", "python", "file", "added", "output", "yaml", "text", "", "{toctree}"}
    assert {block.kind for block in ALL} <= kinds
    assert len(TYPED) > 50


@pytest.mark.parametrize("line", sorted({line for page in WITH_README for line in INLINE.findall(page.read_text())}))
def test_a_command_in_a_sentence_is_one_of_today(line: str) -> None:
    if not OPEN.search(line) and "my_conf" not in line and len(shlex.split(line)) > 1:
        for command in commands(line):
            composed(command)


@pytest.mark.parametrize(
    ("shown", "printed", "missing"),
    [
        ("a\nb\n", "a\nb\n", None),
        ("took 3.1s\n", "took 12s\n", None),
        ("...\nc\n", "a\nb\nc\n", None),
        ("a\nc\n", "a\nb\nc\n", "c"),
        ("a\n", "a\nb\n", "an end after a"),
        ("a\n...\n", "a\nb\n", None),
        ("loss 0.1\n", "loss 0.2\n", "loss 0.1"),
        ("loss 0.1000\n", "loss 0.2000\n", "loss 0.1000"),
        ("loss 0.0001805 (baseline 0.09452) of run-1\n", "loss 0.0001931 (baseline 0.09452) of run-1\n", None),
        ("loss 1.2e-05\n", "loss 1.1e-05\n", None),
        ("  gru  0.00752  0.1234\n", "  gru  0.008047  0.1234\n", None),
        ("version 0.2.0, 0.1234\n", "version 0.2.1, 0.1234\n", "version 0.2.0, 0.1234"),
        ("loss 0.1, score 0.5\n", "loss 0.1, score 0.6\n", "loss 0.1, score 0.5"),
        ("loss 0.1 of run-1\n", "loss 0.1 of run-2\n", "loss 0.1 of run-1"),
        ("loss 0.1\n", "loss 0.1, loss 0.1\n", "loss 0.1"),
    ],
)
def test_what_is_shown_is_compared(shown: str, printed: str, missing: str | None) -> None:
    assert unlike(shown, printed) == missing
