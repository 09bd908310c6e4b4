"""Steps made ahead: what a graph replays for all members, batches drawn by threads, parameters packed as one."""

import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from orthobench.ensemble import member as member_module
from orthobench.ensemble.feed import Feed
from orthobench.ensemble.joint_steps import _alike
from orthobench.ensemble.packed import Packed
from orthobench.ensemble.running import run_members
from orthobench.ensemble.stacked import STACKED
from orthobench.models import optim
from orthobench.run.run import Run
from orthobench.scan.graph import capture
from orthobench.scan.graph import engine as graph
from orthobench.study.catalogue import SHIPPED
from tests.ensemble.helpers import TINY, checkpoint, record, requests
from tests.recorded import Recorded

CPU = torch.device("cpu")
LONGER = ("trainer.max_steps=14", "trainer.log_every_n_steps=5", "trainer.val_check_interval=7", "task.val_size=8")


def two(root: Path, *words: str) -> list[Run]:
    return [
        Run.fitted(SHIPPED.settings((*TINY, *LONGER, *words, f"seed={seed}", f"runs_root={root}"))) for seed in (1, 2)
    ]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "words",
    [
        ("model=scornn", "task=copying", "optimizer.recurrent=rmsprop"),
        ("model=lstm", "task=adding", "schedule=linear"),
        ("model=gru", "task=denoise", "optimizer.weight_decay=0.1"),
        ("model=nnrnn", "task=adding", "model.gain_penalty=3"),
        ("model=exprnn", "task=copying"),
        ("model=urnn_full", "task=copying"),
    ],
    ids=" ".join,
)
def test_an_ensemble_of_replays_is_the_same_ensemble(
    tmp_path: Path, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = (*words, "trainer.precision=64-true")
    plain = two(tmp_path / "plain", *words, "engine=reference")
    assert run_members(plain, STACKED) == [0, 0]
    monkeypatch.setattr(capture, "Graph", Recorded)
    monkeypatch.setattr(capture.Shelf, "closed", False)
    monkeypatch.setattr(Recorded, "reverses", [0, 0])
    monkeypatch.setattr(graph, "why_not", lambda cell: None)
    replayed = two(tmp_path / "replayed", *words, "engine=graph")
    assert run_members(replayed, STACKED) == [0, 0]
    assert Recorded.reverses[0] == 2, "of one cell in the first step, and of all that follow, ahead or not"
    assert Recorded.reverses[1] == 14, "once in the first step, and in all thirteen others"
    assert "could not" not in capsys.readouterr().err
    for one, other in zip(plain, replayed, strict=True):
        torch.testing.assert_close(checkpoint(other)["state_dict"], checkpoint(one)["state_dict"], rtol=1e-7, atol=1e-8)
        assert record(other)["metrics"]["last"] == pytest.approx(record(one)["metrics"]["last"], rel=1e-6)
        assert record(other)["ensemble"]["computed"] == "stacked"


def numbered(start: int, every: int = 10) -> Any:
    """A source of batches that are numbered; each tenth is smaller."""
    count = iter(range(start, start + 1000))

    def draw() -> tuple[torch.Tensor, torch.Tensor]:
        number = next(count)
        rows = 2 if number % every == 0 else 3
        return torch.full((rows, 4), float(number)), torch.full((rows,), number)

    return draw


@pytest.mark.parametrize("ahead", [False, True])
def test_batches_come_in_order_and_what_was_drawn_is_given(ahead: bool) -> None:
    feed, sources = Feed(2, CPU, ahead), [numbered(0), numbered(100)]
    found = [target[:, 0].tolist() for _, target in feed.batches(sources, 37, lambda: True)]
    assert found == [[k, 100 + k] for k in range(37)]
    answers = iter([True, True, True, False])
    found += [target[:, 0].tolist() for _, target in feed.batches(sources, 100, lambda: next(answers, False))]
    assert len(found) > 37
    found += [target[:, 0].tolist() for _, target in feed.batches(sources, 5, lambda: True)]
    assert found == [[k, 100 + k] for k in range(len(found))]
    assert list(feed.batches(sources, 0, lambda: True)) == []
    assert list(feed.batches(sources, 3, lambda: False)) == []


def test_a_source_that_fails_ends_the_steps() -> None:
    def broken() -> Any:
        raise OSError("no such file")

    with pytest.raises(OSError, match="no such file"):
        list(Feed(1, CPU, True).batches([broken], 3, lambda: True))


def test_batches_are_drawn_while_a_step_is_made() -> None:
    feed, drawn = Feed(1, CPU, True), threading.Event()
    source = numbered(1)
    list(feed.batches([source], 4, lambda: True))

    def draw() -> Any:
        batch = source()
        if batch[1][0] == 6:
            drawn.set()
        return batch

    steps: Any = feed.batches([draw], 2, lambda: True)
    next(steps)
    assert drawn.wait(10), "the second batch, though only the first was asked for"
    steps.close()


@pytest.mark.parametrize("model", ["gru", "urnn_full", "sgornn"])
def test_packed_parameters_are_the_members_own(model: str) -> None:
    learners = [learner for learner, _ in requests((f"model={model}", "task=copying"))]
    models: list[Any] = [learner.model for learner in learners]
    names = [name for name, _ in models[0].named_parameters()]
    kinds = {name: name == names[-1] for name in names[1:]}
    packed = Packed(models, kinds).load(models)
    assert len(packed.packs) == 2
    named = packed.named()
    assert list(named)[: len(names)] == names
    for i, own in enumerate(models):
        for name, t in [*own.named_parameters(), *own.named_buffers()]:
            assert torch.equal(named[name][i], t), name
    total = torch.stack([(t.abs() ** 2).sum() for t in named.values() if t.requires_grad]).sum()
    gradients = torch.autograd.grad(total, packed.values)
    for pack, g in zip(packed.packs, gradients, strict=True):
        for name, row in pack.gradients(g).items():
            for own, found in zip(models, row, strict=True):
                torch.testing.assert_close(found, 2 * own.get_parameter(name).detach())
    with torch.no_grad():
        for pack in packed.packs:
            pack.values.mul_(2)
    before = [dict((n, p.detach().clone()) for n, p in own.named_parameters()) for own in models]
    packed.store(models)
    for own, old in zip(models, before, strict=True):
        for name, p in own.named_parameters():
            assert torch.equal(p, old[name] if name == names[0] else 2 * old[name])


class Whole(optim.SGD):
    """A rule that looks at a parameter as a whole; it says nothing about it."""

    def step(self, p: Any, g: Any, memory: Any, lr: float) -> None:
        """Steps of one length."""
        for one, own in zip(p, g, strict=True):
            one.sub_(own * lr / own.norm())


def test_a_rule_of_ones_own_sees_each_parameter_by_itself() -> None:
    models = [nn.Linear(3, 2) for _ in range(2)]

    def learners(rule: optim.Rule) -> Any:
        from types import SimpleNamespace

        found = []
        for model in models:
            group = {"params": list(model.parameters()), "lr": 0.1, "rule": rule, "name": "free", "constrained": False}
            found.append(SimpleNamespace(model=model, optimizer=optim.Optimizer([group])))
        return found

    assert _alike(learners(optim.SGD()))
    assert _alike(learners(optim.Adamw()))
    assert not _alike(learners(Whole()))
    one, other = learners(optim.Adam())
    other.optimizer.state[next(models[1].parameters())]["steps"] = 3
    assert not _alike([one, other])


@pytest.mark.gpu
@pytest.mark.parametrize(
    "words",
    [("model=lstm", "task=adding"), ("model=scornn", "task=copying"), ("model=gru", "task=denoise"),
     ("model=lstm", "task=parenthesis"), ("model=scornn", "task=copying", "task.train_size=10")],
    ids=" ".join,
)  # fmt: skip
def test_on_a_gpu_steps_made_ahead_are_replayed_and_keep_to_single_runs(
    tmp_path: Path, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    more = (*words, "trainer.accelerator=gpu", "optimizer=sgd", "trainer.max_steps=60", "trainer.log_every_n_steps=20")
    single, together = two(tmp_path / "single", *more), two(tmp_path / "together", *more)
    for exp in single:
        exp.run()
    programs: list[Any] = []
    real = capture.Program.__init__
    monkeypatch.setattr(capture.Program, "__init__", lambda self, *a: (real(self, *a), programs.append(self))[0])
    made: list[int] = []
    ahead = member_module.run_jointly
    monkeypatch.setattr(member_module, "run_jointly", lambda *a: (found := ahead(*a), made.append(found[0][0]))[0])
    assert run_members(together) == [0, 0]
    assert sum(made) > 30
    assert bool(programs) == (words[0] != "model=scornn")  # whose matrices are computed
    assert "could not" not in capsys.readouterr().err
    for one, other in zip(single, together, strict=True):
        assert record(other)["ensemble"]["computed"] == "stacked"
        assert record(other)["metrics"]["last"] == pytest.approx(record(one)["metrics"]["last"], rel=1e-3)
        torch.testing.assert_close(checkpoint(other)["state_dict"], checkpoint(one)["state_dict"], rtol=1e-3, atol=1e-4)


@pytest.mark.gpu
def test_on_a_gpu_batches_drawn_by_threads_are_those_of_the_cpu() -> None:
    exp = [Run.fitted(SHIPPED.settings((*TINY, "model=lstm", "task=denoise", f"seed={seed}"))) for seed in (1, 2)]

    def source(task: Any) -> Any:
        count = iter(range(1000))
        return lambda: task.batch("train", 0, next(count))

    device = torch.device("cuda", 0)
    found = list(Feed(2, device).batches([source(one.task) for one in exp], 40, lambda: True))
    assert len(found) == 40
    for k, batch in enumerate(found):
        for j, t in enumerate(batch):
            assert torch.equal(t.cpu(), torch.stack([one.task.batch("train", 0, k)[j] for one in exp]))
