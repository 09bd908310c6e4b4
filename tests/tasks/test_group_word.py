from collections import Counter
from functools import reduce
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import chisquare
from torch import Tensor
from torch.nn import functional as F

from orthobench.errors import ConfigError
from orthobench.tasks.drawn.group_word import GroupWord, commonest_products, commutators, product_table

GROUPS = ["z60", "s3", "s4", "a5", "s5", "a4xz5"]
ORDER = {"z60": 60, "s3": 6, "s4": 24, "a5": 60, "s5": 120, "a4xz5": 60}


def cycles_parity(p: tuple[int, ...]) -> int:
    """0 for an even permutation, by its cycles."""
    seen, swaps = set(), 0
    for start in range(len(p)):
        i, size = start, 0
        while i not in seen:
            seen.add(i)
            i, size = p[i], size + 1
        swaps += max(size - 1, 0)
    return swaps % 2


def elements(group: str) -> list[Any]:
    """The elements as the documentation numbers them: whole numbers, permutations, or pairs of both."""
    if group == "z60":
        return list(range(60))
    if group == "a4xz5":
        return list(product((p for p in permutations(range(4)) if cycles_parity(p) == 0), range(5)))
    found = permutations(range(int(group[1])))
    return [p for p in found if group[0] == "s" or cycles_parity(p) == 0]


def times(group: str, a: Any, b: Any) -> Any:
    """The product of two elements."""
    if group == "z60":
        return (a + b) % 60
    if group == "a4xz5":
        return times("a4", a[0], b[0]), (a[1] + b[1]) % 5
    return tuple(a[i] for i in b)


def multiplied(x: Tensor, group: str) -> Tensor:
    """What one who multiplies the elements answers at every step."""
    own = elements(group)
    number = {element: i for i, element in enumerate(own)}
    answers = []
    for word in x.tolist():
        state, row = own[0], []
        for token in word:
            state = times(group, state, own[token])
            row.append(number[state])
        answers.append(row)
    return F.one_hot(torch.tensor(answers), len(own)).float()


@pytest.mark.parametrize("group", GROUPS)
def test_the_table_is_that_of_the_group(group: Any) -> None:
    own = elements(group)
    assert len(own) == ORDER[group]
    number = {element: i for i, element in enumerate(own)}
    expected = [[number[times(group, a, b)] for b in own] for a in own]
    assert product_table(group).tolist() == expected


@pytest.mark.parametrize("length", [1, 40, 256])
@pytest.mark.parametrize("group", GROUPS)
def test_multiplying_is_perfect(group: Any, length: int) -> None:
    task = GroupWord(group=group, eval_batch_size=20).at_length(length)
    x, target, mask = task.batch("test", 0, 0)
    found = task.measure(multiplied(x, group), target, mask)
    assert float(found["score"]) == pytest.approx(1, abs=1e-6)
    assert float(found["last_score"]) == pytest.approx(1, abs=1e-6)
    x, target, mask = GroupWord(group=group).sample(20, 1)
    assert float(task.measure(multiplied(x, group), target, mask)["score"]) == pytest.approx(1, abs=1e-6), "of a range"


@pytest.mark.parametrize("group", GROUPS)
def test_the_latest_element_alone_scores_nothing(group: Any) -> None:
    task = GroupWord(group=group, length=(20, 20))
    x, target, mask = task.sample(2000, 1)
    found = task.measure(F.one_hot(x, task.output_size).float(), target, mask)
    assert float(found["score"]) == pytest.approx(1 / 20, abs=4 * 0.5 / 40_000**0.5)  # the first is its own product
    assert abs(float(found["last_score"])) < 4 * 0.45 / 2000**0.5


@pytest.mark.parametrize("group", GROUPS)
def test_elements_are_uniform_and_guessed_once_in_as_many(group: Any) -> None:
    task, many = GroupWord(group=group, length=(4, 4)), ORDER[group]
    x = task.sample(64_800, 1)[0].numpy()
    assert chisquare(np.bincount(x.ravel(), minlength=many)).pvalue > 1e-4
    assert group != "s3" or chisquare(np.bincount(x @ 6 ** np.arange(4), minlength=1296)).pvalue > 1e-4, "dependent"
    assert task.baseline["accuracy"] == pytest.approx(1 / many)
    assert task.baseline["loss"] == pytest.approx(np.log(many))


@pytest.mark.parametrize("group", GROUPS)
def test_commutators_are_those_of_the_textbook(group: str) -> None:
    known = {
        "z60": lambda a: a == 0,
        **dict.fromkeys(("s3", "s4", "s5"), lambda a: cycles_parity(a) == 0),
        "a5": lambda a: True,
        "a4xz5": lambda a: a[1] == 0 and tuple(a[0][i] for i in a[0]) == (0, 1, 2, 3),
    }
    assert commutators(group) == {i for i, a in enumerate(elements(group)) if known[group](a)}  # type: ignore[arg-type]


def test_scores_step_by_one_answer_over_what_chance_leaves() -> None:
    task = GroupWord(length=(3, 40), test_size=1000)
    assert task.resolution("accuracy", "test") == 0.001
    assert task.resolution("last_score", "test") == pytest.approx(0.001 / (1 - task.last_chance))
    assert task.resolution("score", "test") == pytest.approx(0.001 / (1 - task.chance))
    assert task.resolution("loss", "test") == 0.0


@pytest.mark.parametrize("group", ["s3", "a4xz5"])
def test_the_order_blind_predictor_multiplies_in_any_order(group: Any) -> None:
    task = GroupWord(group, length=(30, 40), test_size=20_000, eval_batch_size=20_000)
    x, target, mask = task.batch("test", 0, 0)
    product = reduce(lambda a, b: product_table(group)[a, b], np.sort(x.numpy(), 1).T)
    y = F.one_hot(torch.from_numpy(product), task.output_size)[:, None].expand(*x.shape, -1).float()
    found = task.measure(y, target, mask)
    assert float(found["last_score"]) == pytest.approx(task.order_blind["last_score"], abs=0.015)


def test_the_commonest_product_of_a_few_elements_is_that_of_all_their_orders() -> None:
    for n, share in enumerate(commonest_products("s3")[:5], start=1):
        products = Counter[tuple[tuple[int, ...], int]]()
        for word in product(range(6), repeat=n):
            products[tuple(sorted(word)), int(reduce(lambda a, b: product_table("s3")[a, b], word))] += 1
        most = Counter[tuple[int, ...]]()
        for (shown, _), times in products.items():
            most[shown] = max(most[shown], times)
        assert share == pytest.approx(most.total() / 6**n)


def test_short_sequences_tell_the_order_blind_predictor_more() -> None:
    known = {n: GroupWord(length=(n, n)).order_blind["last_score"] for n in (3, 10, 19, 20, 40)}
    assert known == pytest.approx({3: 0.5611, 10: 0.2300, 19: 0.2011, 20: 0.2, 40: 0.2}, abs=1e-4)
    assert GroupWord(length=(3, 40)).order_blind["last_score"] == pytest.approx(0.2320, abs=1e-4)
    assert GroupWord("a4xz5", length=(3, 40)).order_blind == {}, "too many multisets"
    assert GroupWord("z60").order_blind == GroupWord("a5").order_blind == {}, "all or nothing is left"


@pytest.mark.parametrize(("group", "count"), [("s3", 3), ("s4", 6), ("s5", 10)])
def test_swaps_are_transpositions_and_move_the_state(group: Any, count: int) -> None:
    task = GroupWord(group=group, generators="swaps")
    x, target, mask = task.sample(50, 1)
    assert task.input_size == count
    assert x.max() < count
    times = product_table(group)
    for row in range(50):
        now = 0
        for t in range(int(mask[row].sum())):
            now = times[now, task.generators[x[row, t]]]
            assert target[row, t] == now
    assert all(times[g, g] == 0 for g in task.generators)


def test_the_law_of_generators_is_that_of_their_products() -> None:
    task = GroupWord(group="s3", generators=[1, 3], length=(5, 5))
    _, target, _ = task.sample(200_000, 1)
    law = task.law(5)
    for t in range(5):
        found = torch.bincount(target[:, t], minlength=6).double() / len(target)
        torch.testing.assert_close(found, torch.from_numpy(law[t]), rtol=0, atol=5e-3)
    assert task.order_blind == {}


def test_a_sequence_is_right_where_all_of_its_labels_are() -> None:
    task = GroupWord()
    _, target, mask = task.sample(4, 1)
    y = torch.nn.functional.one_hot(target, 6).float()
    y[0, 2] = y[0, 2].roll(1)
    y[1, -1] = y[1, -1].roll(1)  # behind the end of all but the longest
    wrong = 1 + int(mask[1, -1])
    assert float(task.measure(y, target, mask)["sequence_score"]) == 1 - wrong / 4


@pytest.mark.parametrize(
    ("group", "generators"), [("a5", "swaps"), ("s3", [3]), ("s3", [0, 6]), ("s3", [1, 1]), ("s3", [])]
)
def test_generators_that_do_not_generate_are_refused(group: Any, generators: Any) -> None:
    with pytest.raises(ConfigError, match=r"task\.generators"):
        GroupWord(group=group, generators=generators)


def test_all_elements_are_no_setting() -> None:
    assert GroupWord.resolve({"group": "s3", "generators": "all"}, Path()) == {"group": "s3"}
