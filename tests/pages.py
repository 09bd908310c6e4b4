"""Follow a page as a reader does: its files, commands and Python blocks, in their order, in one folder.

A block is a file where the paragraph before it is "`NAME`:" or begins with it, and is added to one where that paragraph
ends with "to `NAME`:". It is what the block before it prints where that paragraph ends with "prints:"; a line of three
dots stands for lines that are left out. `<!-- not run in the tests: REASON -->` before a block of commands says why
they are composed alone.
"""

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from orthobench.config import ranges
from orthobench.config.launchers import split
from orthobench.study.catalogue import Catalogue
from orthobench.study.reproduce.plan import plan
from orthobench.study.sweep import jobs
from orthobench.study.verdicts.searched import cells_of
from orthobench.verbs import VERBS
from orthobench.verbs.asked import Asked
from scripts import reference
from tests.conftest import REPO

REASONS = ("cluster", "gpu", "network", "hours")
PAGES = [REPO / "README.md", *sorted((REPO / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(?P<kind>[^\n]*)\n(?P<text>.*?)^```$", flags=re.M | re.S)
MARK = re.compile(r"<!-- not run in the tests: (\w+) -->$")
FILE = re.compile(r"^`(?P<name>[\w./]+)`(?:, [^:]*)?:$")
ADDED = re.compile(r"to `(?P<name>[\w./]+)`:$")
NEEDED = re.compile(r"\b[Nn]eeds the \w+ of\s+\[[^\]]+\]\((?P<page>[\w./-]+)\)")
IN_A_CHECKOUT = "root of the checkout"
INLINE = re.compile(r"(?<!`)`((?:ORTHOBENCH_\w+=\S+ )?(?:orthobench|python -m orthobench|make) [^`\n]+)`(?!`)")
CHANGES = re.compile(r"\d+(?:\.\d+)?(?:ms|s)\b(?: \d+s)?|\b\d+m \d+s")  # a time, which no two runs have in common
# a score, which other processors round otherwise, and training amplifies it
SCORE = re.compile(r"(?<![\w.])(?:\d\.\d{3,}|\d(?:\.\d+)?e-\d+)(?![\w.])")
EACH = {"ORTHOBENCH_RUNS", "ORTHOBENCH_PLUGINS", "ORTHOBENCH_DATA"}


@dataclass(frozen=True)
class Block:
    """Block of a page: `kind` is sh, python, file, added, output or another, `name` that of a file."""

    page: Path
    line: int
    kind: str
    text: str
    reason: str = ""
    name: str = ""

    @property
    def place(self) -> str:
        """The page and the line, as an editor takes them."""
        return f"{self.page.relative_to(REPO)}:{self.line}"


def blocks(page: Path) -> Iterator[Block]:
    """Blocks of a page, in order."""
    text, end = page.read_text(encoding="utf-8"), 0
    for found in FENCE.finditer(text):
        before = text[end : found.start()].strip().rpartition("\n\n")[2]
        kind, line, end = found["kind"], text.count("\n", 0, found.start()) + 1, found.end()
        mark, file, added = MARK.search(before), FILE.match(before), ADDED.search(before)
        kind = "python" if kind.startswith("{code-cell}") else kind
        if kind in ("text", "") and before.endswith("prints:"):
            kind = "output"
        kind = "file" if file else "added" if added else kind
        name = (file or added or {"name": ""})["name"]
        body = re.sub(r"^:tags:.*\n", "", found["text"])
        yield Block(page, line, kind, body, mark[1] if mark else "", name)


ALL = [block for page in PAGES for block in blocks(page)]
TYPED = [block for block in ALL if block.kind in ("sh", "python")]
MARKED = [block for block in TYPED if block.reason]


@dataclass
class Reader:
    """A reader of pages with a folder, a shell and a Python session of their own.

    Attributes:
        folder: empty at the start; where everything is typed.
        printed: what the last block printed, errors among it.
    """

    folder: Path
    printed: str = ""
    names: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        programs = self.folder.with_name(self.folder.name + ".bin")
        programs.mkdir(parents=True)
        for name, words in (("orthobench", "-P -m orthobench "), ("python", "")):
            (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {words}"$@"\n')
            (programs / name).chmod(0o755)
        kept = {name: value for name, value in os.environ.items() if name not in EACH}
        self.env = {**kept, "PYTHONPATH": str(REPO), "PATH": f"{programs}:{os.environ['PATH']}"}
        self.exported = programs / "exported"
        self.exported.write_text("")
        self.folder.mkdir()

    def follow(self, page: Path) -> None:
        """Do all that a page says, and compare what it says is printed."""
        text = page.read_text(encoding="utf-8")
        if IN_A_CHECKOUT in text:
            shutil.copytree(REPO / "results", self.folder / "results", ignore=shutil.ignore_patterns("site"))
        for needed in NEEDED.finditer(" ".join(text.split())):
            self.prepare((page.parent / needed["page"]).resolve())
        for block in blocks(page):
            if not block.reason:
                self.do(block)

    def prepare(self, page: Path) -> None:
        """Write the files of a page that is read before, and export what it exports."""
        for block in blocks(page):
            if block.kind in ("file", "added"):
                self.do(block)
            elif block.kind == "sh" and (lines := re.findall(r"^export .*\n", block.text, flags=re.M)):
                self.shell("".join(lines), block.place)

    def do(self, block: Block) -> None:
        """Do what one block says."""
        if block.kind in ("file", "added"):
            path = self.folder / block.name
            path.parent.mkdir(parents=True, exist_ok=True)
            before = path.read_text(encoding="utf-8") + "\n\n" if block.kind == "added" else ""
            path.write_text(before + block.text, encoding="utf-8")
        elif block.kind == "sh":
            self.shell(block.text, block.place)
        elif block.kind == "python":
            self.python(block)
        elif block.kind == "output":
            missing = unlike(block.text, self.printed)
            assert missing is None, f"{block.place} shows {missing!r}, but this is printed:\n{self.printed}"

    def shell(self, text: str, place: str) -> None:
        """Type commands into the one shell of the page."""
        script = f"set -e\n. {self.exported}\n{text}\nexport -p > {self.exported}"
        done = subprocess.run(
            ["sh", "-c", script], cwd=self.folder, env=self.env, text=True, timeout=900,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        assert done.returncode == 0, f"{place} ends with {done.returncode}:\n{done.stdout}"
        self.printed = done.stdout

    def python(self, block: Block) -> None:
        """Type a block into the one Python session of the page."""
        printed = io.StringIO()
        with contextlib.chdir(self.folder), contextlib.redirect_stdout(printed):
            exec(compile("\n" * block.line + block.text, str(block.page), "exec"), self.names)
        self.printed = printed.getvalue()


def unlike(shown: str, printed: str) -> str | None:
    """First line that a page shows and that is not printed there; None where all are, but for times.

    A score is shown as another processor came to it: within a factor of one and a half.
    """
    lines = [CHANGES.sub("TIME", line.rstrip()) for line in printed.splitlines()]
    at, anywhere = 0, True
    for line in shown.splitlines():
        if line.strip() == "...":
            anywhere = True
            continue
        wanted = CHANGES.sub("TIME", line.rstrip())
        found = next((place for place in range(at, len(lines)) if _alike(lines[place], wanted)), None)
        if found is None or (found > at and not anywhere):
            return line
        at, anywhere = found + 1, False
    return None if anywhere or at == len(lines) else f"an end after {shown.splitlines()[-1]}"


def _alike(line: str, wanted: str) -> bool:
    own, others = ([float(score) for score in SCORE.findall(text)] for text in (line, wanted))
    texts = {" ".join(SCORE.sub("SCORE", text).split()) for text in (line, wanted)}
    return len(texts) == 1 and all(2 * max(pair) <= 3 * min(pair) for pair in zip(own, others, strict=True))


def commands(text: str) -> Iterator[str]:
    """Commands of a block that are orthobench's or make's, without comments, variables and where output goes."""
    for line in re.sub(r"\\\n", " ", text).splitlines():
        for part in re.split(r" && | \| |; ", line):
            typed = re.sub(r"^(?:\w+=\S* )+", "", part.partition(" > ")[0].strip())
            if typed.startswith(("orthobench ", "python -m orthobench ", "make ")):
                yield typed


def composed(line: str, own: tuple[Path, ...] = ()) -> None:
    """Check a command without running it: its verb, options, and every run that it names, as `show` and `plan` do.

    Args:
        line: the command.
        own: what --config-dir names.

    Raises:
        OrthobenchError: the program would refuse it.
    """
    words = shlex.split(line, comments=True)
    if words[0] == "make":
        recipe = subprocess.run(["make", "-n", *words[1:]], cwd=REPO, capture_output=True, text=True, timeout=60)
        assert recipe.returncode == 0, recipe.stderr
        for command in recipe.stdout.splitlines():
            if " -m orthobench " in command:
                composed("orthobench " + command.partition(" -m orthobench ")[2].strip(), own)
        return
    words = words[3:] if words[0] == "python" else words[1:]
    while "--config-dir" in words:
        at = words.index("--config-dir")
        del words[at : at + 2]
    catalogue = Catalogue(own)
    if words in (["--help"], ["--version"]):
        return
    if words[0] not in VERBS:
        _composed_runs([word for word in words if word != "-m"], catalogue)
        return
    given = reference.parser(words[0]).parse_intermixed_args(words[1:])
    given.names, settings = ([word for word in given.words if ("=" in word) is wanted] for wanted in (False, True))
    if words[0] == "rerun" and given.names:
        (table, row), given = given.names, None
        option = "models" if catalogue.table(table).search else "rows"
        asked = replace(Asked.of([f"experiment={table}"]), **{option: (row,)})
        _composed_tables(asked, catalogue, "full")
    elif words[0] == "reproduce" and not given.cheapest:  # which is of all tables
        _composed_tables(Asked.of(settings, given), catalogue, given.preset)
    elif words[0] in ("show", "tune", "plan") and settings and not given.names:
        _composed_runs([word for word in settings if not ranges.is_range(word)], catalogue)


def _composed_runs(words: list[str], catalogue: Catalogue) -> None:
    _, words = split(words)  # a launcher's settings need its package
    if any(word.startswith("experiment=") for word in words):
        _composed_tables(Asked.of(words), catalogue, "full")
        return
    assert all(catalogue.settings(job).run_id for job in jobs(catalogue.parse(words)))


def _composed_tables(asked: Asked, catalogue: Catalogue, preset: str | None) -> None:
    """Rows that are named, or the first row, of the first two tables that are named."""
    _, extra = split(list(asked.extra))
    selection = replace(asked, extra=tuple(extra)).selection(catalogue, preset)
    for table in selection.tables[:2]:
        rows, models = selection.rows, selection.models
        if rows is None and models is None:
            known = cells_of(table) if table.search else [row.base for row in table.variants.values()] or table.rows
            first = tuple(known)[:1]
            rows, models = (None, first) if table.search else (first, None)
        found = plan(replace(selection, tables=[table], rows=rows, models=models))
        assert found.runs or found.recorded
