"""docs/reference/layers.md, followed word for word: its commands first, then its code from top to bottom."""

import re
from pathlib import Path

import pytest

from tests.conftest import REPO, Run

PAGE = (REPO / "docs" / "reference" / "layers.md").read_text(encoding="utf-8")
CODE = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.M | re.S)
COMMANDS = re.findall(r"^```sh\npython -m orthobench (.*?)\n```", PAGE, flags=re.M)


@pytest.mark.slow
def test_the_page_runs(
    cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in COMMANDS:
        done = cli(*command.split())
        assert done.returncode == 0, done.stderr
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for code in CODE:
        exec(compile(code, "docs/reference/layers.md", "exec"), names)
    out = capsys.readouterr().out
    assert "ScoRNN: roh=95 does not apply here: did you mean 'rho'?" in out
    losses = re.findall(r"^(\w+) +([\d.]+) -> ([\d.]+)$", out, flags=re.M)
    assert len(losses) == 12
    assert all(float(last) < 0.4 for _, _, last in losses), losses


def test_every_layer_is_on_the_page() -> None:
    from orthobench import layers

    missing = [name for name in layers.__all__ if name != "Layer" and f"`{name}`" not in PAGE]
    assert not missing
