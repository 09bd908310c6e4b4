import numpy as np
import pytest
import torch
from scipy.stats import chisquare
from torch import Tensor
from torch.nn import functional as F

from orthobench.tasks.drawn.cued_recall import CuedRecall

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


@pytest.fixture(scope="module")
def many() -> tuple[list, np.ndarray]:
    """What 4,000 sequences hold, and their tokens."""
    x = CuedRecall().sample(4000, 1)[0]
    return [parse(tokens) for tokens in x.tolist()], x.numpy()


def test_numbers_of_pairs_are_uniform(many: tuple[list, np.ndarray]) -> None:
    assert chisquare(np.bincount([len(pairs) - 4 for pairs, _, _ in many[0]], minlength=13)).pvalue > 1e-4


def test_keys_and_values_are_uniform(many: tuple[list, np.ndarray]) -> None:
    keys = [key - 1 for pairs, _, _ in many[0] for key in pairs]
    values = [value for pairs, _, _ in many[0] for value in pairs.values()]
    assert chisquare(np.bincount(keys, minlength=KEYS)).pvalue > 1e-4
    assert chisquare(np.bincount(values, minlength=VALUES)).pvalue > 1e-4


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
