"""The measurement of fair2/ by controls of which theory knows the answer: solutions by hand, and known defects.

Each takes the place of a trained model in the path that every run's tests at other lengths take.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

import orthobench
from orthobench.models.build import build_optimizer, build_schedule
from orthobench.models.segments import at_steps
from orthobench.run.evaluate import at_lengths
from orthobench.run.learner import Learner
from orthobench.run.trainer import make_trainer, quieten
from orthobench.study.catalogue import SHIPPED
from orthobench.study.records.records import Line
from orthobench.study.verdicts.searched_cell import SearchedCell
from orthobench.study.verdicts.trials import SearchState
from orthobench.tasks.drawn.cued_copying import CuedCopying
from orthobench.tasks.drawn.cued_recall import CuedRecall
from orthobench.tasks.drawn.group_word import product_table
from orthobench.tasks.metric import Metric

MARKER, K, LEAK, LEAST = 9, 10, 0.99, 0.05
Predictor = Callable[[Tensor, Any], Tensor]  # tokens (B, T) and the task; answers (B, T), as one hears them in order


@cache
def words(case: str) -> tuple[str, ...]:
    """A row of a table of fair2, with few sequences."""
    row = [*SHIPPED.table(f"fair2/{case}").row("gru_trial0"), "seed=1", "logger=none"]
    sizes = ("task.val_size=16", "task.test_size=16", "task.eval_batch_size=16")
    return (*(word for word in row if word.partition("=")[0] not in [size.partition("=")[0] for size in sizes]), *sizes)


def lengths_of(case: str, predict: Predictor | None, tmp_path: Path, *more: str) -> dict[int, dict[str, float]]:
    """The scores by length; of an untrained model where there is no predictor."""
    quieten()
    exp = orthobench.build(*words(case), *more, f"runs_root={tmp_path}")
    learner = Learner(
        exp.model, exp.task, build_optimizer(exp.settings, exp.model), build_schedule(exp.settings), exp.duration
    )
    if predict is not None:
        exp.model.forward = lambda x, state=None, steps=None: (  # type: ignore[method-assign]
            at_steps(F.one_hot(predict(x, learner.task), exp.task.output_size).float(), steps),
            [],
        )
    trainer = make_trainer(exp.settings.trainer, exp.task, exp.duration, [], False, str(tmp_path))
    return {int(length): scores for length, scores in at_lengths(trainer, learner).items()}


def horizon(found: dict[int, dict[str, float]], score: str) -> int | None:
    values = {f"length/{n}:{name}": value for n, scores in found.items() for name, value in scores.items()}
    line = Line({"seed": 1, "status": "done", "crossed/solved": 100, **values})
    metric = Metric(score, "", "higher", (None, 1.0))
    state = SearchState({}, 0, ())
    return SearchedCell("control", {}, state, (line,), (1,), metric, tuple(sorted(found))).horizon


def register(x: Tensor, task: Any, readable: int | None = None) -> Tensor:
    """K registers: digits are stored, and said after the marker if they were stored at most `readable` steps before."""
    answers = torch.zeros_like(x)
    for row, tokens in enumerate(x):
        digits = ((tokens > 0) & (tokens < MARKER)).nonzero()[:, 0]
        for marker in (tokens == MARKER).nonzero()[:, 0].tolist():
            due = torch.arange(marker + 1, marker + 1 + len(digits))
            kept = (due - digits <= readable) if readable else torch.ones_like(due, dtype=torch.bool)
            answers[row, due[kept]] = tokens[digits[kept]]
    return answers


def leaking(x: Tensor, task: Any) -> Tensor:
    """Registers whose content is multiplied by 0.99 at every step, and is read while more than 0.05 of it is left."""
    steps, left = 0, 1.0
    while left * LEAK > LEAST:
        steps, left = steps + 1, left * LEAK
    return register(x, task, steps)


def clock(x: Tensor, task: Any) -> Tensor:
    """Digits, said 41 steps after each was shown, marker or no marker: right where the delay is 30."""
    digits = x.where(x < MARKER, 0)
    return F.pad(digits, (K + 31, 0))[:, : x.shape[1]]


def silent(x: Tensor, task: Any) -> Tensor:
    return torch.zeros_like(x)


def automaton(x: Tensor, task: Any) -> Tensor:
    """Six states, moved by a table."""
    table, state = torch.from_numpy(product_table("s3")), torch.zeros(len(x), dtype=torch.long)
    answers = []
    for token in x.T:
        state = table[state, token]
        answers.append(state)
    return torch.stack(answers, 1)


def store(pairs: int | None) -> Predictor:
    """Keys with their values, of the first pairs that are shown; the others are answered with the first value."""

    def predict(x: Tensor, task: Any) -> Tensor:
        answers = torch.zeros_like(x)
        for row, tokens in enumerate(x.tolist()):
            known: dict[int, int] = {}
            seen = set()
            for t, token in enumerate(tokens):
                if token > task.keys and tokens[t - 1] not in seen:
                    seen.add(tokens[t - 1])
                    if pairs is None or len(known) < pairs:
                        known[tokens[t - 1]] = token - task.keys - 1
                answers[row, t] = known.get(token, 0)
        return answers

    return predict


def blind(x: Tensor, task: Any) -> Tensor:
    """The commonest of the digits, at every due step."""
    answers = register(x, task)
    common = torch.stack([F.one_hot(row[row > 0], 9).sum(0).argmax() if row.any() else row[0] for row in answers])
    return common[:, None].where(answers > 0, 0)


@pytest.mark.parametrize(
    ("case", "solution", "score", "longest"),
    [
        ("cued_copying", register, "test/score", 10_240),
        ("group_word", automaton, "test/last_score", 10_240),
        ("cued_recall", store(None), "test/score", 512),
    ],
)
def test_a_solution_holds_at_every_length(
    tmp_path: Path, case: str, solution: Predictor, score: str, longest: int
) -> None:
    found = lengths_of(case, solution, tmp_path)
    assert {scores[score] for scores in found.values()} == {1.0}
    assert {scores.get("test/emitted", 0.0) for scores in found.values()} == {0.0}
    assert horizon(found, score) == max(found) == longest


def test_a_store_of_two_pairs_recalls_two_of_sixteen(tmp_path: Path) -> None:
    """The other fourteen are guesses: the normalised score is 2 / 16."""
    found = lengths_of("cued_recall", store(2), tmp_path, "task.test_size=800", "task.eval_lengths=[128]")
    assert found[128]["test/score"] == pytest.approx(2 / 16, abs=0.02)
    assert horizon(found, "test/score") is None


def test_a_leak_is_measured_as_its_horizon(tmp_path: Path) -> None:
    """0.99^298 is the last power above 0.05: what is due within 298 steps is read, the delay plus ten digits."""
    assert LEAK**298 > LEAST > LEAK**299
    found = lengths_of("cued_copying", leaking, tmp_path, "task.eval_lengths=[40,80,160,280,287,288,320]")
    assert [found[n]["test/score"] for n in (40, 80, 160, 280, 287)] == [1.0] * 5
    assert found[288]["test/score"] == found[320]["test/score"] == pytest.approx(-1 / 7)
    assert horizon(found, "test/score") == 287


def test_a_silent_network_scores_a_seventh_below_nothing(tmp_path: Path) -> None:
    found = lengths_of("cued_copying", silent, tmp_path)
    assert [scores["test/score"] for scores in found.values()] == pytest.approx([-1 / 7] * len(found))


def test_an_order_blind_predictor_scores_what_theory_says(tmp_path: Path) -> None:
    found = lengths_of("cued_copying", blind, tmp_path, "task.test_size=2000", "task.eval_lengths=[40,80]")
    expected = CuedCopying(digits=K).order_blind["score"]
    assert [scores["test/score"] for scores in found.values()] == pytest.approx([expected] * 2, abs=0.01)


def test_a_clock_is_right_at_one_delay_and_speaks_unasked(tmp_path: Path) -> None:
    found = lengths_of("cued_copying", clock, tmp_path, "task.eval_lengths=[29,30,31,80]")
    assert found[30]["test/score"] == 1.0
    assert max(found[n]["test/score"] for n in (29, 31, 80)) < 0.1
    assert found[30]["test/emitted"] == 1.0
    assert found[80]["test/score"] == pytest.approx(-1 / 7), "it has long been silent"


def test_an_untrained_cell_knows_nothing(tmp_path: Path) -> None:
    found = lengths_of("cued_copying", None, tmp_path, "task.eval_lengths=[40,80]", "task.test_size=200")
    assert all(-1 / 7 - 1e-9 <= scores["test/score"] < 0.03 for scores in found.values())


def test_the_cases_have_no_shortcut() -> None:
    """No predictor above comes near the level at which a case is solved, but for the solutions."""
    assert CuedCopying(digits=K).order_blind["score"] < 0.5
    assert CuedRecall(pairs=(16, 16)).order_blind["score"] < 0.5
