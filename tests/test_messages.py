"""Every error message of the package, in one file that is read from end to end: tests/messages.txt."""

import pytest

from scripts.messages import FILE, SENTENCES, messages, sentences


def test_the_file_is_fresh() -> None:
    """Renewed by `python scripts/messages.py --write`; read what is new in it."""
    assert FILE.read_text(encoding="utf-8").splitlines() == messages()


def test_there_are_messages_of_every_room() -> None:
    assert len(messages()) > 600


def test_a_message_has_two_sentences_at_most() -> None:
    assert [line for line in messages() if sentences(line.partition(": ")[2]) > SENTENCES] == []


@pytest.mark.parametrize(
    ("text", "count"),
    [("a is b: write c.", 1), ("a is b. Write c.", 2), ("{x} is b. Run `a. B`. Or not.", 3), ("3.5 is no 1.", 1)],
)
def test_sentences(text: str, count: int) -> None:
    assert sentences(text) == count
