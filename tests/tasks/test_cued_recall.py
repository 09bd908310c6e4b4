"""Cued copying and cued recall against plain readings of their sequences."""

import numpy as np
import pytest
import torch
from numpy.polynomial.polynomial import polypow
from scipy.stats import chisquare
from torch import Tensor
from torch.nn import functional as F

from orthobench.tasks.drawn.cued_copying import CuedCopying
from orthobench.tasks.drawn.cued_recall import CuedRecall
from orthobench.tasks.scaled import _poisson, mean_of_most

KEYS, VALUES = 32, 8


def parse(tokens: list[int]) -> tuple[dict[int, int], list[int], list[tuple[int, int]]]:
    """Pairs by key, the times of the pairs, and (time, key) of every query."""
    pairs, stored, queries, t = {}, [], [], 0
    while t < len(tokens):
        token = tokens[t]
        assert token <= KEYS, "a value is only seen after its key"
        if token and token in pairs:
            queries.append((t, token))
        elif token:
            t += 1
            pairs[token] = tokens[t] - 1 - KEYS
            stored.append(t - 1)
            assert 0 <= pairs[token] < VALUES
        t += 1
    return pairs, stored, queries


def looked_up(x: Tensor) -> Tensor:
    """What a dictionary answers."""
    answers = torch.zeros_like(x)
    for row, tokens in enumerate(x.tolist()):
        pairs, _, queries = parse(tokens)
        for t, key in queries:
            answers[row, t] = pairs[key]
    return F.one_hot(answers, VALUES).float()


def test_structure() -> None:
    task = CuedRecall()
    x, target, mask = task.sample(300, 1)
    assert (task.input_size, task.output_size, task.length) == (41, 8, 128)
    for tokens, answers, due in zip(x.tolist(), target, mask, strict=True):
        pairs, stored, queries = parse(tokens)
        assert 4 <= len(pairs) <= 16
        assert sorted(key for _, key in queries) == sorted(pairs)
        assert max(stored) < min(t for t, _ in queries)
        assert np.nonzero(due.numpy())[0].tolist() == [t for t, _ in queries]
        assert [int(answers[t]) for t, _ in queries] == [pairs[key] for _, key in queries]


@pytest.mark.parametrize("length", [48, 64, 256])
def test_a_dictionary_is_perfect(length: int) -> None:
    task = CuedRecall().at_length(length)
    x, target, mask = task.batch("test", 0, 0)
    assert float(task.measure(looked_up(x), target, mask)["score"]) == pytest.approx(1, abs=1e-6)


def test_an_answer_that_does_not_see_the_pairs_scores_nothing() -> None:
    task = CuedRecall()
    _, target, mask = task.sample(4000, 1)
    y = torch.from_numpy(np.random.default_rng(1).normal(size=(*target.shape, VALUES)))
    error = (7 / 64 * float((1 / mask.sum(1)).mean()) / 4000) ** 0.5 / (7 / 8)
    assert abs(float(task.measure(y, target, mask)["score"])) < 4 * error


def test_any_value_of_the_sequence_scores_one_over_the_number_of_pairs() -> None:
    task = CuedRecall(pairs=(4, 4), length=(20, 20))
    x, target, mask = task.sample(4000, 1)
    shown = x[x > KEYS].view(4000, 4) - 1 - KEYS
    chosen = np.random.default_rng(1).integers(0, 4, target.shape)
    y = F.one_hot(shown.gather(1, torch.from_numpy(chosen)), VALUES).float()
    assert float(task.measure(y, target, mask)["score"]) == pytest.approx(1 / 4, abs=0.02)  # four standard errors


def test_numbers_of_pairs_keys_and_values_are_uniform() -> None:
    found = [parse(tokens)[0] for tokens in CuedRecall().sample(4000, 1)[0].tolist()]
    keys = [key - 1 for pairs in found for key in pairs]
    values = [value for pairs in found for value in pairs.values()]
    for drawn, count in (([len(pairs) - 4 for pairs in found], 13), (keys, KEYS), (values, VALUES)):
        assert chisquare(np.bincount(drawn, minlength=count)).pvalue > 1e-4


def test_queries_are_in_any_order() -> None:
    x = CuedRecall(pairs=(3, 3), length=(9, 9)).sample(6000, 1)[0].numpy()  # no blanks: k v k v k v q q q
    order = (x[:, [6, 7, 8]][:, :, None] == x[:, [0, 2, 4]][:, None]).argmax(2)
    counts = np.unique(order, axis=0, return_counts=True)[1]
    assert len(counts) == 6
    assert chisquare(counts).pvalue > 1e-4


def test_times_are_those_of_uniform_places_among_the_blanks() -> None:
    x = CuedRecall(pairs=(1, 1), length=(10, 10)).sample(20_000, 1)[0].numpy()  # one pair, one query, seven blanks
    pair, query = (x > 0).argmax(1), 9 - (x[:, ::-1] > 0).argmax(1)
    before_pair, before_query = pair, query - 2
    counts = np.bincount(8 * before_pair + before_query, minlength=64).reshape(8, 8)
    expected = np.triu(np.full((8, 8), 2 / 64), 1) + np.eye(8) / 64  # both places uniform, the earlier is the pair's
    assert counts[expected == 0].sum() == 0
    assert chisquare(counts[expected > 0], 20_000 * expected[expected > 0]).pvalue > 1e-4


def test_lengths_are_uniform() -> None:
    x = CuedRecall(pairs=(1, 1), length=(3, 6)).sample(40_000, 1)[0].numpy()
    end = x.shape[1] - (x[:, ::-1] > 0).argmax(1)  # at the query; a sequence of L steps ends there once in ...
    expected = np.zeros(4)
    for length in range(3, 7):
        blanks = length - 3
        for place in range(blanks + 1):  # the later of two uniform places
            expected[place] += ((2 * place + 1) / (blanks + 1) ** 2) / 4
    assert chisquare(np.bincount(end - 3, minlength=4), 40_000 * expected).pvalue > 1e-4


def test_the_order_blind_predictor_gives_the_commonest_value() -> None:
    task = CuedRecall(pairs=(1, 4), length=(32, 64), test_size=20_000, eval_batch_size=20_000)
    _, target, mask = task.batch("test", 0, 0)
    asked = F.one_hot(target, task.output_size) * mask[..., None].long()
    y = asked.sum(1, keepdim=True).expand(*target.shape, -1).float()
    found = task.measure(y, target, mask)
    assert {name: float(found[name]) for name in task.order_blind} == pytest.approx(task.order_blind, abs=0.01)


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
def test_structure_of_copying(K: int, delay: tuple[int, int], onset: int) -> None:
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


def test_onset_delay_and_digits_are_uniform_and_independent() -> None:
    x = CuedCopying().sample(20_000, 1)[0].numpy()
    start, marker = (x > 0).argmax(1), (x == MARKER).argmax(1)
    delay, digits = marker - start - 3, x[np.arange(len(x))[:, None], start[:, None] + np.arange(3)]
    for drawn, low, high in ((start, 0, 10), (delay, 10, 40), (digits, 1, 8)):
        assert (drawn.min(), drawn.max()) == (low, high)
        assert chisquare(np.bincount(drawn.ravel() - low, minlength=high - low + 1)).pvalue > 1e-4
    assert chisquare(np.bincount(31 * start + delay - 10, minlength=341)).pvalue > 1e-4
    assert chisquare(np.bincount((digits - 1) @ [64, 8, 1])).pvalue > 1e-4


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

    def test_fewer_digits_are_better_and_there_is_no_baseline(self, task: CuedCopying) -> None:
        assert (task.metric, task.higher_is_better, task.metric_of("emitted").direction) == ("emitted", False, "lower")
        assert task.baseline == task.order_blind == CuedCopying(digits=1).order_blind == {}
        assert task.baseline_reason
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


@pytest.mark.parametrize(("draws", "symbols"), [(1, 5), (7, 3), (16, 8), (40, 64)])
def test_the_mean_of_the_commonest_is_that_of_whole_powers(draws: int, symbols: int) -> None:
    shares = [_poisson(times, draws / symbols) for times in range(draws)]
    powers = (polypow(shares[: most + 1], symbols) for most in range(draws))
    none_beyond = [power[draws] / _poisson(draws, draws) if draws < len(power) else 0.0 for power in powers]
    assert mean_of_most(draws, symbols) == pytest.approx(sum(1 - share for share in none_beyond), rel=1e-10)


def test_the_mean_of_the_commonest_of_many_draws_is_near_that_of_a_simulation() -> None:
    counts = np.random.default_rng(1).multinomial(1024, [1 / 64] * 64, size=20_000).max(1)
    assert mean_of_most(1024, 64) == pytest.approx(counts.mean(), abs=4 * counts.std() / 20_000**0.5)
