"""Every command and block of the README does what it says."""

import re
import shlex
from pathlib import Path

import pytest

from tests.conftest import REPO
from tests.pages import Reader

TEXT = (REPO / "README.md").read_text(encoding="utf-8")
MAKEFILE = (REPO / "Makefile").read_text(encoding="utf-8")
LINES = [line for block in re.findall(r"^```sh\n(.*?)^```", TEXT, flags=re.M | re.S) for line in block.splitlines()]
INLINE = [code for code in re.findall(r"(?<!`)`([^`\n]+)`(?!`)", TEXT) if code.startswith(("orthobench ", "make "))]
CSV = "id,t,speed,target\n" + "".join(
    f"{i},{t},{i % 3}.5,{'up' if i % 2 else 'down'}\n" for i in range(20) for t in (0, 1)
)


def test_it_is_short() -> None:
    assert len(TEXT.splitlines()) <= 120


def test_the_makefile_has_its_targets() -> None:
    targets = {line.split()[1] for line in [*LINES, *INLINE] if line.startswith("make ")}
    assert targets == {"install", "test-all", "test-kernels"}
    for target in targets:
        assert re.search(rf"^{target}:", MAKEFILE, flags=re.M), target


def test_make_run_is_the_job_that_it_shows() -> None:
    assert "python -m orthobench model=scornn task=copying T=200 trainer.max_steps=2000" in MAKEFILE
    assert "scornn (n=190, 21,764 parameters) on copying, T=200, seed 1" in TEXT


@pytest.mark.slow
def test_its_commands_in_an_empty_folder(tmp_path: Path) -> None:
    reader = Reader(tmp_path / "empty")
    (reader.folder / "my.csv").write_text(CSV)
    reader.prepare(REPO / "README.md")
    quick = " trainer.max_steps=2 trainer.val_check_interval=1 task.val_size=4 task.test_size=4"
    runs = [re.sub(r" trainer\.max_steps=\d+", "", line) for line in LINES if "task=" in line]
    assert len(runs) == 3
    commands = [line for line in LINES if line.startswith("mkdir ")] + [line + quick for line in runs]
    commands += [re.sub(r"max_steps=\d+", "max_steps=2", line) for line in INLINE if " compare " in line or "=" in line]
    commands = [line + " --preset smoke" if " reproduce " in line else line for line in commands]
    reader.shell("\n".join(commands), "README.md")
    kinds = {path.parent.name.rsplit("-", 1)[0] for path in (reader.folder / "runs").glob("*/record.json")}
    assert {"adding-scornn", "adding-gru", "adding-lstm", "adding-mgu", "series-gru"} <= kinds
    assert any(kind.startswith("copying-lstm") for kind in kinds), "the row of a published table"


@pytest.mark.parametrize("words", [line for line in INLINE if line.split()[1] in ("list", "doctor", "show")])
def test_a_verb(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    from orthobench.__main__ import main

    assert main(shlex.split(words)[1:]) == 0
    assert capsys.readouterr().out


def test_the_layer() -> None:
    (code,) = [block for block in re.findall(r"^```python\n(.*?)^```", TEXT, flags=re.M | re.S) if "layers" in block]
    names: dict[str, object] = {}
    exec(compile(code, "README.md", "exec"), names)
    assert tuple(getattr(names["output"], "shape", ())) == (32, 100, 190)


def test_the_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)]+)\)", TEXT):
        assert (REPO / target).exists(), target


def test_ci_does_nothing_that_it_does_not_say() -> None:
    commands = [line for line in (REPO / ".ci" / "run").read_text().splitlines() if line.startswith("make")]
    assert set(commands) <= set(INLINE)


@pytest.mark.parametrize("page", ["models.md", "tasks.md"])
def test_the_lists_are_what_the_program_prints(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Renewed by `python scripts/lists.py`."""
    monkeypatch.syspath_prepend(str(REPO / "scripts"))
    from lists import rendered  # type: ignore[import-not-found]

    assert rendered(page) == (REPO / "docs" / "reference" / page).read_text(encoding="utf-8")
