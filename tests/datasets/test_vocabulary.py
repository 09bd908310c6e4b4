import sys
import warnings
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orthobench.datasets.vocabulary import plain, vocabulary, with_torchtext


@pytest.fixture(autouse=True, scope="module")
def _torchtext() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("torchtext", reason="torchtext is not installed")


def test_most_frequent_first_and_ties_in_alphabetical_order() -> None:
    assert plain(Counter("banana split")) == {"a": 0, "n": 1, " ": 2, "b": 3, "i": 4, "l": 5, "p": 6, "s": 7, "t": 8}


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text(max_size=3), max_size=60))
def test_torchtext_gives_the_same_ids(tokens: list[str]) -> None:
    counts = Counter(tokens)
    assert list(with_torchtext(counts).items()) == list(plain(counts).items())


@pytest.mark.parametrize("broken", [None, "raises"])
def test_a_run_does_not_need_torchtext(broken: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torchtext", None)
    monkeypatch.setitem(sys.modules, "torchtext.vocab", None)
    if broken:

        def fail(counts: Counter[str]) -> dict[str, int]:
            raise OSError("libtorchtext.so: undefined symbol")

        monkeypatch.setattr("orthobench.datasets.vocabulary.with_torchtext", fail)
    assert vocabulary(Counter("hello")) == {"l": 0, "e": 1, "h": 2, "o": 3}
