"""Numbers in words, as tables show them."""

import pytest

from orthobench.report import numbers


@pytest.mark.parametrize(
    ("horizon", "holes", "text"),
    [(160, (), "160"), (None, (), "none"), (160, (10,), "160, not 10"), (400, (50, 51, 100), "400, not 50, 51 or 100")],
)
def test_a_horizon_tells_its_holes(horizon: int | None, holes: tuple[int, ...], text: str) -> None:
    assert numbers.horizon_text(horizon, holes) == text
