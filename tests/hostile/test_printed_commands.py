"""Whatever somebody's records hold, a shell that reads the output of `best` runs our commands alone."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from orthobench.__main__ import main
from orthobench.common.terminal import command, comment
from orthobench.errors import ConfigError
from orthobench.recording.digest import seal
from tests import own_runs

BREAKS = (
    "\n",
    "\r\n",
    "\r",
    "\x0b",
    "\x0c",
    "\x85",
    "\u2028",
    "\n\n#\n",
    "`touch ran`",
    "$(touch ran)",
    "'; touch ran;'",
)
TOUCH = "touch ran"
RECORDS: dict[str, dict[str, Any]] = {
    "version": {"code": {"version": "0.1.0{}touch ran{}#"}},
    "commit": {"code": {"git": "abc{}touch ran{}#"}},
    "plug-in": {"sources": {"plugins": {"x{}touch ran{}#": "0"}}},
    "data": {"sources": {"data": {"x{}touch ran{}#": "0"}}},
    "setting": {"config": {"task": {"path": "x{}touch ran{}#"}}},
    "unknown setting": {"config": {"model": {"x{}touch ran{}#": 1}}},
}


def damaged(record: Any, changes: dict[str, Any], odd: str) -> Any:
    """A record with other values, in which `{}` is a line break or another thing that means something to a shell."""
    for key, value in changes.items():
        if isinstance(value, dict):
            value = damaged(dict(record.get(key) or {}), value, odd)
        record = record | {key.format(odd, odd): value.format(odd, odd) if isinstance(value, str) else value}
    return record


@pytest.mark.sampled(8)
@pytest.mark.parametrize("odd", BREAKS, ids=ascii)
@pytest.mark.parametrize("kind", RECORDS)
def test_best(kind: str, odd: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("model=lstm", "task=copying", "T=20") if kind != "setting" else ("model=lstm", "task=text")
    path = own_runs.run(tmp_path / "runs", *words) / "record.json"
    path.write_text(json.dumps(seal(damaged(json.loads(path.read_text()), RECORDS[kind], odd))))
    main(["best", str(tmp_path / "runs")])
    out = capsys.readouterr().out
    lines = out.split("\n")
    assert all(not line or line.startswith(("# ", "orthobench ")) for line in lines)
    assert all(line.isprintable() for line in lines)
    for line in (line for line in lines if line.startswith("orthobench ")):
        assert not [word for word in shlex.split(line)[1:] if not word.startswith("-") and "=" not in word]
        assert shlex.join(shlex.split(line)) == line


def test_a_folder_whose_name_is_a_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = tmp_path / f"runs\n{TOUCH}\n#"
    own_runs.run(tmp_path / "runs", "model=lstm", "task=copying", "T=20").parent.rename(root)
    assert main(["best", str(root)]) == 2
    told = capsys.readouterr()
    assert all(line.startswith("# ") for line in told.out.splitlines())
    assert "line break" in told.err


@pytest.mark.parametrize("odd", ["a\nb", "a\rb", "a\x1bb", "a\u2028b", "a\u202eb"], ids=ascii)
def test_a_word_that_a_terminal_would_not_show(odd: str) -> None:
    with pytest.raises(ConfigError, match="no command is shown"):
        command(["orthobench", odd])
    assert comment(odd).isprintable()


def test_words_are_quoted() -> None:
    words = ["orthobench", "task.path='a b'", "$(x)", "`x`", "a;b", "#", "*", "~", "é"]
    assert shlex.split(command(words)) == words
