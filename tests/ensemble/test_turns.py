"""Members take turns, and meet where they ask for the same work."""

import threading

import pytest
import torch

from orthobench.ensemble.turns import Turns
from orthobench.errors import ConfigError


def test_members_take_turns_and_meet_by_what_they_ask() -> None:
    meeting, served, running = Turns(), [], []

    def work(name: str, keys: list[str]) -> str:
        answers = []
        for key in keys:
            running.append(threading.current_thread())
            answers.append(meeting.meet(key, name, serve))
            assert running[-1] is not None
        if name == "c":
            raise ConfigError("c fails")
        return name + "".join(answers)

    def serve(names: list[str]) -> list[str]:
        served.append("".join(names))
        return [name.upper() for name in names]

    with pytest.raises(ConfigError, match="c fails"):
        meeting.run([lambda: work("a", ["x", "x"]), lambda: work("b", ["x", "y"]), lambda: work("c", ["x"])])
    assert served == ["abc", "a", "b"]
    assert meeting.run([lambda: work("a", ["x", "x"]), lambda: work("b", ["x"])]) == ["aAA", "bB"]


def test_an_error_of_the_shared_arithmetic_is_everyones() -> None:
    meeting = Turns()

    def serve(names: list[str]) -> list[str]:
        raise ValueError("no")

    def work() -> str:
        with pytest.raises(ValueError, match="no"):
            meeting.meet("x", None, serve)
        return "caught"

    assert meeting.run([work, work]) == ["caught", "caught"]


def test_members_keep_their_random_states() -> None:
    meeting = Turns()

    def work(seed: int) -> float:
        torch.manual_seed(seed)
        meeting.meet("x", None, lambda requests: requests)
        return float(torch.rand(()))

    found = meeting.run([lambda: work(1), lambda: work(2)])
    assert found == [float(torch.rand((), generator=torch.Generator().manual_seed(seed))) for seed in (1, 2)]
