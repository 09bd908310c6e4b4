"""Gradients that are clipped or scaled: in several reverses, as in one."""

import copy
from typing import Any

import pytest
import torch

import orthobench
from orthobench.parametrizations.accumulated import accumulated

TINY = ("task=adding", "T=8", "recipe=none", "model.hidden_size=6", "task.batch_size=8", "optimizer=sgd")
CASES = [
    ("model=urnn_full", "model.rms_gradient=true"),
    ("model=rnn", "model.recurrent_gradient_clip=1e-3"),
    ("model=gru", "model.recurrent_gradient_clip=1e-3"),
    ("model=scornn", "model.recurrent_gradient_clip=1e-3"),
]
every_case = pytest.mark.parametrize("words", CASES, ids=" ".join)


def gradients(exp: Any, model: Any, parts: int, several: bool) -> list[torch.Tensor]:
    """Of two steps' worth of reverses, each in so many parts; the second step's."""
    x, target, *_ = (t.double() if t.is_floating_point() else t for t in exp.task.sample(8, 0))
    for hook in accumulated(model):
        hook.several = several
    for _ in range(2):
        model.zero_grad()
        for a, b in zip(x.chunk(parts), target.chunk(parts), strict=True):
            (exp.task.loss(model(a)[0], b) / parts).backward()
        for hook in accumulated(model):
            hook.clear()
    return [p.grad for p in model.parameters()]


@every_case
def test_parts_of_a_batch_are_the_batch(words: tuple[str, ...]) -> None:
    exp = orthobench.build(*words, *TINY)
    model = exp.model.double()
    whole, parts, apart = (
        gradients(exp, copy.deepcopy(model), n, several) for n, several in ((1, False), (4, True), (4, False))
    )
    for a, b in zip(whole, parts, strict=True):
        torch.testing.assert_close(a, b)
    assert any(not torch.allclose(a, b, rtol=1e-3) for a, b in zip(whole, apart, strict=True))


def test_a_run_clips_the_gradient_of_its_step(tmp_path: Any) -> None:
    words = ("model=rnn", *TINY, "optimizer.lr=0.5", "trainer.max_steps=2", "trainer.accumulate_grad_batches=2")
    clipped, plain = (
        orthobench.build(*words, f"runs_root={tmp_path}", *more)
        for more in (("model.recurrent_gradient_clip=1e-3",), ())
    )
    model = copy.deepcopy(plain.model)
    clipped.run()
    for step in range(2):
        model.zero_grad()
        for i in range(2):
            x, target, *_ = plain.task.batch("train", 0, 2 * step + i)
            (plain.task.loss(model(x)[0], target) / 2).backward()
        for name, p in model.named_parameters():
            assert p.grad is not None
            g = p.grad.clamp(-1e-3, 1e-3) if "recurrent" in name else p.grad
            p.data.sub_(0.5 * g)
    for p, expected in zip(clipped.model.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(p, expected)
