"""What a person at a terminal sees, and a pipe does not."""

import pytest

from orthobench.terminal import waiting


def test_what_is_waited_for_is_wiped_away(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with waiting("a few steps of l\x1bstm"):
        assert capsys.readouterr().err == "a few steps of l\\x1bstm ..."
    assert capsys.readouterr().err == "\r\x1b[K"


def test_a_pipe_sees_nothing_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyError), waiting("a few steps"):
        raise KeyError
    assert capsys.readouterr().err == ""
