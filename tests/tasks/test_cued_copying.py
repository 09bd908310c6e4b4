import numpy as np
import pytest
import torch
from scipy.stats import chisquare
from torch import Tensor
from torch.nn import functional as F

from orthobench.tasks.drawn.cued_copying import CuedCopying
from orthobench.tasks.scaled import mean_of_most

MARKER = 9


def waits_for_the_marker(x: Tensor, K: int) -> Tensor:
    """What a machine with K registers answers: it stores digits, and says them after the marker."""
    answers = torch.zeros_like(x)
    for row, tokens in enumerate(x.tolist()):
        stored, speaking = [], False
        for t, token in enumerate(tokens):
            if speaking and stored:
                answers[row, t] = stored.pop(0)
            if 1 <= token <= 8:
                stored.append(token)
            speaking |= token == MARKER
        assert not speaking or not stored
    return F.one_hot(answers, 9).float()


def keeps_time(x: Tensor, K: int, delay: int) -> Tensor:
    """What a machine answers that says the digits a fixed time after the last of them, marker or no marker."""
    start = (x > 0).int().argmax(1, keepdim=True)
    steps = start + torch.arange(K)
    answers = torch.zeros_like(x).scatter(1, steps + K + delay + 1, x.gather(1, steps))
    return F.one_hot(answers, 9).float()


@pytest.mark.parametrize(("K", "delay", "onset"), [(1, (1, 1), 0), (3, (10, 40), 10), (10, (5, 7), 2)])
def test_structure(K: int, delay: tuple[int, int], onset: int) -> None:
    task = CuedCopying(digits=K, delay=delay, onset=onset)
    x, target, mask = (part.numpy() for part in task.sample(200, 1))
    assert (task.T, task.input_size, task.output_size) == (onset + 2 * K + 1 + delay[1], 10, 9)
    for tokens, answers, due in zip(x, target, mask, strict=True):
        (places,), (marker,) = np.nonzero((tokens > 0) & (tokens < MARKER)), np.nonzero(tokens == MARKER)[0]
        assert places.tolist() == list(range(places[0], places[0] + K))
        assert places[0] <= onset
        assert delay[0] <= marker - places[-1] - 1 <= delay[1]
        expected = np.zeros_like(tokens)
        expected[marker + 1 : marker + 1 + K] = tokens[places]
        assert answers.tolist() == expected.tolist()
        assert np.nonzero(due)[0].tolist() == list(range(marker + 1, marker + 1 + K))


@pytest.fixture(scope="module")
def many() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Onsets, delays and digits of 20,000 sequences."""
    x = CuedCopying().sample(20_000, 1)[0].numpy()
    start, marker = (x > 0).argmax(1), (x == MARKER).argmax(1)
    return start, marker - start - 3, x[np.arange(len(x))[:, None], start[:, None] + np.arange(3)]


@pytest.mark.parametrize(
    ("which", "low", "high"), [(0, 0, 10), (1, 10, 40), (2, 1, 8)], ids=["onset", "delay", "digits"]
)
def test_draws_are_uniform(many: tuple[np.ndarray, ...], which: int, low: int, high: int) -> None:
    assert (many[which].min(), many[which].max()) == (low, high)
    assert chisquare(np.bincount(many[which].ravel() - low, minlength=high - low + 1)).pvalue > 1e-4


def test_onset_and_delay_are_independent(many: tuple[np.ndarray, ...]) -> None:
    start, delay, digits = many
    pairs = np.bincount(31 * start + delay - 10, minlength=341)
    assert chisquare(pairs).pvalue > 1e-4
    assert chisquare(np.bincount(64 * (digits[:, 0] - 1) + 8 * (digits[:, 1] - 1) + digits[:, 2] - 1)).pvalue > 1e-4


@pytest.mark.parametrize(("K", "delay"), [(1, 10), (3, 40), (3, 160)])
def test_a_machine_that_waits_for_the_marker_is_perfect(K: int, delay: int) -> None:
    task = CuedCopying(digits=K).at_length(delay)
    x, target, mask = task.batch("test", 0, 0)
    found = task.measure(waits_for_the_marker(x, K), target, mask)
    assert float(found["score"]) == pytest.approx(1, abs=1e-6)


def test_a_machine_that_guesses_has_the_score_and_loss_of_the_baseline() -> None:
    task = CuedCopying(test_size=4000, eval_batch_size=4000)
    _, target, mask = task.batch("test", 0, 0)
    guess = np.random.default_rng(1).integers(1, 9, target.shape)
    y = torch.full((*target.shape, 9), -1e9, dtype=torch.float64)
    y[..., 0][mask == 0] = 0
    y[..., 1:] += 1e9 * (mask[..., None] == 1)
    y += 1e-9 * F.one_hot(torch.from_numpy(guess), 9)
    found = task.measure(y, target, mask)
    error = (1 / 8 * 7 / 8 / 12_000) ** 0.5 / (7 / 8)
    assert abs(float(found["score"])) < 4 * error
    assert float(found["loss"]) == pytest.approx(task.baseline["loss"], rel=1e-6)


class TestWithoutTheMarker:
    @pytest.fixture
    def task(self) -> CuedCopying:
        return CuedCopying(delay=(25, 25), marker=False, test_size=100)

    def test_nothing_is_asked_and_nothing_is_due(self, task: CuedCopying) -> None:
        x, target, mask = task.batch("test", 0, 0)
        asked, _, due = CuedCopying(delay=(25, 25), test_size=100).batch("test", 0, 0)
        assert torch.equal(x, torch.where(asked == MARKER, 0, asked))
        assert torch.equal(mask, due)
        assert not target.any()

    @pytest.mark.parametrize(("machine", "emitted"), [("waits", 0.0), ("keeps time", 1.0)])
    def test_digits_that_come_without_a_cue_are_counted(self, task: CuedCopying, machine: str, emitted: float) -> None:
        x, target, mask = task.batch("test", 0, 0)
        y = waits_for_the_marker(x, 3) if machine == "waits" else keeps_time(x, 3, 25)
        found = task.measure(y, target, mask)
        assert tuple(found) == task.metrics == ("loss", "emitted")
        assert float(found["emitted"]) == pytest.approx(emitted)

    def test_fewer_digits_are_better(self, task: CuedCopying) -> None:
        assert (task.metric, task.higher_is_better, task.metric_of("emitted").direction) == ("emitted", False, "lower")
        assert task.baseline == {}
        assert task.baseline_reason

    def test_it_stays_so_at_another_delay(self, task: CuedCopying) -> None:
        assert not task.at_length(80).marker


@pytest.mark.parametrize("digits", [2, 3, 10])
def test_the_order_blind_predictor_gives_the_commonest_digit(digits: int) -> None:
    task = CuedCopying(digits=digits, test_size=20_000, eval_batch_size=20_000)
    _, target, mask = task.batch("test", 0, 0)
    due = target[mask.bool()].view(-1, digits)
    shown = torch.stack([(due == symbol).sum(1) for symbol in range(9)], 1)
    y = F.one_hot(shown.argmax(1)[:, None].expand_as(target), 9).float()
    found = task.measure(y, target, mask)
    assert {name: float(found[name]) for name in task.order_blind} == pytest.approx(task.order_blind, abs=0.01)


def test_the_order_blind_predictor_is_known_of_many_digits_too() -> None:
    draws, symbols = 300, 8
    counts = np.random.default_rng(1).multinomial(draws, [1 / symbols] * symbols, size=20_000)
    assert mean_of_most(draws, symbols) == pytest.approx(counts.max(1).mean(), abs=0.1)


def test_where_order_does_not_matter_there_is_no_order_blind_predictor() -> None:
    assert CuedCopying(digits=1).order_blind == {}
    assert CuedCopying(marker=False).order_blind == {}
