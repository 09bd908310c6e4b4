"""Files of one's own that are not as they should be, and what a cell of one's own cannot do later."""

import re
from pathlib import Path

import pytest

from orthobench.__main__ import main
from tests.conftest import Refused
from tests.models.test_own_cells import HEAD, WORDS, folder, plugin

assert folder, "the fixture"
LINE = HEAD[: HEAD.index("h = torch.tanh")].count("\n") + 1


@pytest.mark.parametrize(
    ("ending", "text", "told"),
    [
        ("yml", "cell: gru\n", "/model/mine.yml is there, and must end in .yaml"),
        ("yaml", "cell:\tgru\n", "cannot start any token"),
        ("yaml", "cell: t_own\n", "model.cell=t_own is not known: TOwn in own_"),
        ("yaml", "cell: t_own\n", "is known as town, and so must be the file and the setting that name it."),
    ],
)
def test_a_file_that_cannot_be_used_is_told(
    ending: str, text: str, told: str, folder: Path, monkeypatch: pytest.MonkeyPatch, refused: Refused
) -> None:
    plugin(folder, monkeypatch, HEAD.replace("class Own(", "class TOwn("))
    (folder / "model" / "mine.yaml").rename(folder / "model" / f"mine.{ending}").write_text(text)
    refused(["--config-dir", str(folder), "model=mine", *WORDS], told)


@pytest.mark.parametrize(
    ("old", "new", "words", "told"),
    [
        ("(p_t", "((0 if p_t.isnan().any() else 1) * p_t", ["export", "--format", "pt2"], r"torch.export ends in .*"),
        ("@ W", "@ torch.eye(4) @ W", ["inspect"], rf"float64, ends in RuntimeError: expected .*\.py, line {LINE}\)\."),
    ],
)
def test_what_cannot_be_computed_of_a_cell_is_one_sentence(
    old: str,
    new: str,
    words: list[str],
    told: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    plugin(folder, monkeypatch, HEAD.replace(old, new))
    monkeypatch.chdir(folder)
    sizes = ["trainer.max_steps=2", "task.val_size=2", "task.test_size=2", "logger=none"]
    assert main(["--config-dir", str(folder), "model=mine", *WORDS, *sizes]) == 0
    (run,) = Path("runs").iterdir()
    assert main([*words, str(run)]) == 2
    (error,) = capsys.readouterr().err.splitlines()[-1:]
    assert re.search(told, error)
