"""What a person at a terminal sees, and a pipe does not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from orthobench.common.terminal import waiting


def test_what_is_waited_for_is_wiped_away(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with waiting("a few steps of l\x1bstm"):
        assert capsys.readouterr().err == "a few steps of l\\x1bstm ..."
    assert capsys.readouterr().err == "\r\x1b[K"


def test_a_pipe_sees_nothing_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyError), waiting("a few steps"):
        raise KeyError
    assert capsys.readouterr().err == ""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("words", [["list"], ["--help"], ["best", "--help"], ["show", "model=lstm"], ["--version"]])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_has_gone_is_no_error(words: list[str], unbuffered: str) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "orthobench", *words],
        stdout=write,
        stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
        check=False,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_is_told(unbuffered: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "orthobench", "list"],
            stdout=full,
            stderr=subprocess.PIPE,
            env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
            text=True,
            check=False,
        )
    assert done.returncode == 6
    assert done.stderr == "orthobench: standard output cannot be written: No space left on device.\n"


OPENED = "from orthobench.common.program import *; sys.exit(carried_out(lambda: os.open(os.devnull, 0) < 3))"


@pytest.mark.parametrize("words", ["-m orthobench list >&-", f"-c '{OPENED}' <&- >&- 2>&-"])
def test_no_standard_streams_at_all(words: str) -> None:
    done = subprocess.run(["sh", "-c", f"{sys.executable} {words}"], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
