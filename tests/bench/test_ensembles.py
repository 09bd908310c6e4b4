"""The loop of one member and of ten, without data and arithmetic."""

import pytest

from orthobench.bench import ensembles
from orthobench.ensemble import member


@pytest.mark.slow
def test_ten_members_and_one_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ensembles, "SKIPPED", 2)
    ahead: list[int] = []
    real = member.run_ahead
    monkeypatch.setattr(member, "run_ahead", lambda *a: (found := real(*a), ahead.append(found[0][0]))[0])
    one, ten = ensembles.loops(rounds=1, steps=8)
    assert (one.variant, ten.variant, one.ratio) == ("one member", "10 members", 1.0)
    assert one.cpu_ms > 0
    assert ten.cpu_ms > 0
    assert sum(ahead) == 6, "the first step was each member's own, and the last one is"
