import pytest
import torch

from orthobench.tasks.drawn.even_pairs import EvenPairs


@pytest.mark.parametrize("labels", ["last", "every"])
def test_the_answer_is_whether_the_first_bit_is_the_last(labels: str) -> None:
    x, target, mask = EvenPairs(labels=labels).sample(300, 1)
    for bits, answers, due in zip(x.tolist(), target.tolist(), mask.tolist(), strict=True):
        steps = [t for t, one in enumerate(due) if one]
        assert all(answers[t] == (bits[0] == bits[t]) for t in steps)
        assert labels == "every" or len(steps) == 1


def test_the_order_blind_answer() -> None:
    """The likelier answer by the number of ones, estimated from other sequences."""
    task = EvenPairs(length=(5, 5))
    (x, target, _), (other, true, _) = task.sample(200_000, 1), task.sample(100_000, 2)
    equal = torch.stack([target[:, 4][x.sum(1) == k].double().mean() for k in range(6)])
    found = ((equal > 0.5).long()[other.sum(1)] == true[:, 4]).double().mean().item()
    assert found == pytest.approx(task.order_blind["accuracy"], abs=0.005)
    assert EvenPairs(labels="every").order_blind == {}
