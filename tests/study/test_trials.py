"""Which trials of a search go on, stage by stage, and which one is chosen."""

from collections.abc import Sequence
from math import inf

import pytest

from orthobench.study.records.records import Line
from orthobench.study.tables.search import CellSearch
from orthobench.study.verdicts.trials import SearchState, state

STAGES = [{"trials": 4, "seeds": [101]}, {"trials": 2, "seeds": [102, 103]}, {"trials": 1, "seeds": [104]}]
SEARCH = CellSearch.of({"sobol": 1, "stages": STAGES}, [1, 2], "search")
TRIVIAL = 1.0
Run = tuple[int, float | None, float]  # seed, step at which it had solved the task, loss


def line(seed: int, step: float | None, loss: float, status: str = "done") -> Line:
    solved = {} if step is None else {"crossed/solved": step}
    return Line({"seed": seed, "status": status, "val/loss@min": loss, "baseline/loss": TRIVIAL} | solved)


def after(*trials: Sequence[Run]) -> SearchState:
    return state(SEARCH, {i: [line(*run) for run in runs] for i, runs in enumerate(trials)})


FIRST = ([(101, None, 0.9)], [(101, 500, 0.1)], [(101, 300, 0.2)], [(101, 900, 0.01)])


def test_all_trials_come_first_whatever_is_recorded() -> None:
    assert after().due == {i: (101,) for i in range(4)}
    assert after([], *FIRST[1:]).due == {0: (101,)}
    assert after().learnt is None


def test_the_best_go_on_by_solved_seeds_then_steps() -> None:
    assert after(*FIRST).due == {2: (102, 103), 1: (102, 103)}
    assert after(*FIRST).stages[1] == (2, 1)


def test_the_choice_counts_all_seeds_so_far() -> None:
    luckless = [*FIRST[2], (102, None, 0.3), (103, 300, 0.2)]
    steady = [*FIRST[1], (102, 600, 0.1), (103, 700, 0.1)]
    assert after(FIRST[0], steady, luckless, FIRST[3]).due == {1: (104,)}
    done = after(FIRST[0], [*steady, (104, None, 0.5)], luckless, FIRST[3])
    assert (done.over, done.chosen, done.learnt) == (True, 1, True), "the last stage has one trial, which is chosen"


def test_equal_steps_are_told_apart_by_the_loss() -> None:
    tied = ([(101, None, 0.5)], [(101, None, 0.4)], [(101, None, 0.6)], [(101, None, 0.3)])
    assert after(*tied).stages[1] == (3, 1)


def test_the_best_of_those_left_behind_is_chosen_where_all_others_fail_later() -> None:
    failed: list[Run] = [(102, None, 2.0), (103, None, 2.0)]
    found = after([(101, None, 0.9)], [(101, None, 0.1), *failed], [(101, None, 0.2), *failed], [(101, None, 0.95)])
    assert (found.due, found.chosen) == ({}, 0), "it is below the trivial predictor"
    half: list[Run] = [(101, 300, 0.1), (102, None, inf), (103, None, inf), (104, None, inf)]
    assert after(FIRST[0], half, [(101, None, 0.2), *failed], FIRST[0]).chosen == 1, "it was solved once"


def test_a_diverged_seed_is_not_solved() -> None:
    lines = {i: [line(*run) for run in runs] for i, runs in enumerate(FIRST)}
    lines[2] = [line(101, 300, 0.2, "diverged")]
    assert state(SEARCH, lines).stages[1] == (1, 3)


@pytest.mark.parametrize("loss", [1.0, 2.0, float("inf")])
def test_a_trial_above_the_trivial_predictor_is_never_taken_further(loss: float) -> None:
    silent = [(101, None, loss)]
    assert after(silent, silent, FIRST[2], silent).stages[1] == (2,), "there is one trial in place of two"
    nothing = after(silent, silent, silent, silent)
    assert (nothing.due, nothing.chosen, nothing.learnt) == ({}, None, False)


def test_reported_seeds_have_no_part_in_the_choice() -> None:
    with_reported = [*FIRST[0], (1, 10, 0.0), (2, 10, 0.0)]
    assert after(with_reported, *FIRST[1:]).stages == after(*FIRST).stages
