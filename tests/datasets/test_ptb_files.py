import contextlib
import os
from collections import Counter
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orthobench.datasets import ptb
from orthobench.datasets.vocabulary import plain, vocabulary, with_torchtext
from orthobench.errors import DataError

HERE = Path("ptb.txt")
TEXT = b" no it was n't black monday \n but while the <unk> N fell \n"
SPELT = b"n o _ i t \n N \n "


def test_every_line_of_words_ends_with_eos() -> None:
    assert ptb.words(TEXT, HERE) == [
        *["no", "it", "was", "n't", "black", "monday", "<eos>", "but", "while", "the", "<unk>", "N", "fell", "<eos>"]
    ]


def test_the_line_end_is_a_character_and_the_lone_blank_after_it_is_none() -> None:
    assert ptb.characters(SPELT, HERE) == ["n", "o", "_", "i", "t", "\n", "N", "\n"]


def test_words_spelt_out_are_the_character_file() -> None:
    assert ptb.spelt_out(b" no it \n N \n", HERE) == SPELT


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(st.text("ab<>é", min_size=1, max_size=4), max_size=4), min_size=1, max_size=5))
def test_spelling_out_and_reading_back_gives_the_words(lines: list[list[str]]) -> None:
    content = "".join(" ".join(line) + "\n" for line in lines).encode()
    text = "".join(ptb.characters(ptb.spelt_out(content, HERE), HERE))
    assert text.replace("_", " ").encode() == content


@pytest.mark.parametrize("parse", [ptb.words, ptb.characters])
@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is empty"),
        (b"a b \nc \xff d \n ", "line 2: byte 0xff is not UTF-8"),
        (b"a \nb \0 \n ", "line 2: a NUL byte"),
        (b"a b \nc d", "line 2: a line is cut short"),
        (b"a " * (ptb.LONGEST_LINE // 2 + 1) + b"\n ", "line 1: 1048578 characters"),
    ],
    ids=["empty", "not UTF-8", "NUL", "cut short", "one long line"],
)
def test_malformed_text_is_named_by_line_and_rule(parse, content: bytes, sentence: str) -> None:
    if parse is ptb.words:
        content = content.removesuffix(b" ")
    with pytest.raises(DataError, match=sentence) as caught:
        parse(content, HERE)
    assert str(caught.value).startswith("ptb.txt")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"ab c \n ", b"a b \ncd \n ", b"a  b \n "])
def test_characters_without_their_blanks_are_refused(content: bytes) -> None:
    with pytest.raises(DataError, match=r"line \d, column \d+: every character must be followed by one blank"):
        ptb.characters(content, HERE)


def test_a_token_that_training_lacks_is_refused() -> None:
    ids = plain(Counter(ptb.words(b"a b\n", HERE)))
    assert ptb.encode(["b", "a", "<eos>"], ids, HERE).tolist() == [2, 1, 0]
    with pytest.raises(DataError, match=r"ptb.txt, token 2: 'zebra' is not in the training text"):
        ptb.encode(["a", "zebra", "yak"], ids, HERE)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=40), st.sampled_from([ptb.words, ptb.characters]))
def test_any_bytes_are_read_or_refused(content: bytes, parse) -> None:
    with contextlib.suppress(DataError):
        assert all(isinstance(token, str) for token in parse(content, HERE))


@pytest.mark.parametrize("level", ["word", "char"])
@pytest.mark.parametrize("state", ["no folder", "empty", "one missing", "changed"])
def test_absent_and_changed_files_are_data_errors(tmp_path: Path, state: str, level: ptb.Level) -> None:
    files = ptb.WORDS if level == "word" else ptb.CHARACTERS
    if state != "no folder":
        (tmp_path / "ptb").mkdir()
    if state in ("one missing", "changed"):
        for file in files[: 2 if state == "one missing" else 3]:
            (tmp_path / "ptb" / file.name).write_bytes(TEXT)
    with pytest.raises(DataError, match="damaged or another file" if state == "changed" else "prepare ptb"):
        ptb.load(tmp_path, level)


@pytest.mark.data
@pytest.mark.parametrize(
    ("level", "counts", "size"),
    [("word", (929_589, 73_760, 82_430), 10_000), ("char", (5_017_482, 393_042, 442_423), 50)],
)
def test_the_real_files_have_the_published_counts(level: ptb.Level, counts: tuple[int, ...], size: int) -> None:
    corpus = ptb.load(Path(os.environ["ORTHOBENCH_DATA"]), level)
    assert (len(corpus.train), len(corpus.valid), len(corpus.test)) == counts
    assert len(corpus.tokens) == size == corpus.train.max() + 1
    assert max(corpus.valid.max(), corpus.test.max()) < size
    if level == "word":
        assert corpus.tokens[:3] == ("the", "<unk>", "<eos>")
        assert np.bincount(corpus.train)[2] == 42_068


@pytest.mark.data
def test_the_real_character_files_are_the_words_spelt_out() -> None:
    home = Path(os.environ["ORTHOBENCH_DATA"]) / "ptb"
    for words, characters in zip(ptb.WORDS, ptb.CHARACTERS, strict=True):
        content = (home / words.name).read_bytes()
        assert ptb.spelt_out(content, home / words.name) == (home / characters.name).read_bytes()


@pytest.mark.data
@pytest.mark.filterwarnings("ignore")
def test_torchtext_gives_the_same_ids_for_the_real_words() -> None:
    pytest.importorskip("torchtext")
    path = Path(os.environ["ORTHOBENCH_DATA"]) / "ptb" / "ptb.train.txt"
    counts = Counter(ptb.words(path.read_bytes(), path))
    assert with_torchtext(counts) == plain(counts)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text(max_size=3), max_size=60))
@pytest.mark.filterwarnings("ignore")
def test_torchtext_gives_the_same_ids(tokens: list[str]) -> None:
    pytest.importorskip("torchtext", reason="torchtext is not installed")
    counts = Counter(tokens)
    assert list(with_torchtext(counts).items()) == list(plain(counts).items())


@pytest.mark.parametrize("broken", [ImportError, OSError])
def test_without_torchtext_the_most_frequent_is_first_and_ties_are_in_alphabetical_order(
    broken: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "".join(plain(Counter("banana split"))) == "an bilpst"
    monkeypatch.setattr("orthobench.datasets.vocabulary.with_torchtext", Mock(side_effect=broken("libtorchtext.so")))
    assert vocabulary(Counter("hello")) == {"l": 0, "e": 1, "h": 2, "o": 3}
