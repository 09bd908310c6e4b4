"""A few odd inputs of every kind; `python -m tests.outside --fuzz 500` makes many."""

import pytest

from tests.outside import all_kinds, fuzz


@pytest.mark.parametrize("name", all_kinds())
def test_odd_inputs_are_right_or_refused_with_a_sentence(name: str) -> None:
    found = fuzz(name, 12)
    assert not found.faults, found.faults[0]
    assert found.right + found.refused == 12
