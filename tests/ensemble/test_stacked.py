"""The arithmetic of stacked members is compared with that of single ones in float64."""

from pathlib import Path
from typing import Any

import pytest
import torch

from orthobench.ensemble import member as member_module
from orthobench.ensemble.running import run_members
from orthobench.ensemble.stacked import STACKED, Stacked
from orthobench.parametrizations import base
from orthobench.run.run import Run
from orthobench.scan.graph import capture
from orthobench.study.catalogue import SHIPPED
from tests.ensemble.helpers import FLOAT64, TINY, check_stacked, checkpoint, curve, members, record, requests
from tests.scan.test_graph import Again

MODELS = [
    "scornn", "rnn", "exprnn", "sgornn", "ncgru", "lstm", "gru", "spectral_rnn", "ornn", "urnn_exp", "urnn_full",
    "urnn_restricted", "eunn", "goru",
]  # fmt: skip


@pytest.mark.parametrize(
    "words",
    [*((f"model={model}", "task=copying") for model in MODELS), ("model=scornn", "task=adding"),
     ("model=gru", "task=parenthesis"), ("model=rnn", "task=recall", "model.layers=2"),
     ("model=urnn_exp", "model.gradient=geodesic", "task=adding"), ("model=scornn", "task=copying", "engine=native"),
     ("model=lstm", "task=adding", "engine=fused"),
     ("model=urnn_full", "task=adding", "model.rms_gradient=true")],
    ids=" ".join,
)  # fmt: skip
@pytest.mark.sampled(8)
def test_stacked_members_have_the_gradients_of_single_ones(words: tuple[str, ...]) -> None:
    check_stacked(requests(words))


def test_so_have_stacked_models_with_a_penalty() -> None:
    asked = requests(("model=nnrnn", "task=adding", "model.gain_penalty=30"))
    for i, (learner, _) in enumerate(asked):
        with torch.no_grad():
            learner.model.constrained()[0].gains.add_(0.1 + 0.1 * i)
    losses = [float(loss) for loss, _ in Stacked(asked[0][0].model, STACKED).train(asked)]
    assert all(loss > 30 * 3 * (0.1 + 0.1 * i) ** 2 for i, loss in enumerate(losses))  # six units have three gains
    check_stacked(asked)


def test_so_have_stacked_feed_forward_models() -> None:
    words = (
        "model=spectral_resnet",
        "task=mnist_flat",
        "model.hidden_size=6",
        "model.layers=3",
        "model.ends=constrained",
    )
    check_stacked(requests(words, ("recipe=none",)))


def test_gradients_clipped_over_several_batches_are_left_to_single_members(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("model=gru", "task=adding", "model.recurrent_gradient_clip=1e-3", "trainer.accumulate_grad_batches=2")
    asked = requests(words)
    together = Stacked(asked[0][0].model, STACKED)
    found, single = together.train(asked), [Stacked(r[0].model, STACKED).train([r])[0] for r in asked]
    assert together.forms == ["apart"]
    assert "gradients of matrices are clipped or scaled over several batches" in capsys.readouterr().out
    for (_, gradients), (_, wanted) in zip(found, single, strict=True):
        assert all(torch.equal(g, one) for g, one in zip(gradients, wanted, strict=True) if g is not None)


@pytest.mark.parametrize("batches", [1, 2])
def test_a_stacked_ensemble_runs_from_start_to_end(tmp_path: Path, batches: int) -> None:
    words = ("model=scornn", "task=copying", "optimizer=sgd", "trainer.precision=64-true", "engine=reference")
    words = (*words, f"trainer.accumulate_grad_batches={batches}")
    single, together = members(tmp_path / "single", *words), members(tmp_path / "together", *words)
    for exp in single:
        exp.run()
    assert run_members(together, STACKED) == [0, 0, 0]
    for one, member in zip(single, together, strict=True):
        torch.testing.assert_close(checkpoint(member)["state_dict"], checkpoint(one)["state_dict"], **FLOAT64)
        assert record(member)["ensemble"]["computed"] == "stacked"
        found, expected = record(member)["metrics"]["last"], record(one)["metrics"]["last"]
        assert found == pytest.approx(expected, rel=1e-6)  # the readout's metrics are rounded to float32 on the way


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many steps were made at once, each time that it was tried."""
    made: list[int] = []
    real = member_module.run_jointly
    monkeypatch.setattr(member_module, "run_jointly", lambda *a: (found := real(*a), made.append(found[0][0]))[0])
    return made


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "words",
    [
        ("model=scornn", "optimizer.recurrent=rmsprop", "schedule=linear"),
        ("model=irnn", "optimizer=sgd", "optimizer.momentum=0.5", "schedule=linear"),
        ("model=rnn", "optimizer.weight_decay=0.1", "trainer.gradient_clip_val=0.01"),
        ("model=gru", "optimizer=rmsprop_tf", "trainer.gradient_clip_algorithm=value"),
        ("model=nnrnn", "model.gain_penalty=3", "model.upper_decay=0.1"),
        ("model=rnn", "optimizer=adamw", "optimizer.weight_decay=0.1", "schedule=warmup_cosine"),
        ("model=urnn_restricted",),
        ("model=exprnn", "schedule=warmup_cosine"),
        ("model=exprnn", "model.gradient=geodesic", "schedule=linear"),
        ("model=ncgru", "variant=code", "model.reset_period=3"),
        ("model=spectral_rnn",),
        ("model=urnn_full", "model.rms_gradient=true"),
    ],
    ids=" ".join,
)
def test_steps_between_two_that_write_are_made_at_once_and_counted(
    tmp_path: Path, words: tuple[str, ...], made: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    if words[0] == "model=ncgru":
        monkeypatch.setattr(
            base, "reading_waits", lambda t: True
        )  # as on a GPU, where inverses are stacked as they are
    more = ("task=adding", "trainer.precision=64-true", "engine=reference", "trainer.max_steps=11")
    more = (*more, "trainer.log_every_n_steps=5", "trainer.val_check_interval=7", *words)
    common = [(*TINY, f"seed={seed}", *more) for seed in (1, 2)]
    single, together = (
        [Run.fitted(SHIPPED.settings((*w, f"runs_root={tmp_path / name}"))) for w in common] for name in ("one", "two")
    )
    for exp in single:
        exp.run()
    assert run_members(together, STACKED) == [0, 0]
    assert made == [0, 3, 1, 2], "from step 1 (the first was computed alone) to 4, from 5 to 6, from 7 to 9"
    for one, other in zip(single, together, strict=True):
        torch.testing.assert_close(checkpoint(other)["state_dict"], checkpoint(one)["state_dict"], **FLOAT64)
        assert repr(checkpoint(other)["loops"]) == repr(checkpoint(one)["loops"])
        states, expected = (checkpoint(exp)["optimizer_states"][0] for exp in (other, one))
        assert states["param_groups"] == expected["param_groups"]
        torch.testing.assert_close(states["state"], expected["state"], **FLOAT64)
        assert checkpoint(other)["lr_schedulers"] == checkpoint(one)["lr_schedulers"]
        assert [row.split(",")[:3] for row in curve(other)] == [row.split(",")[:3] for row in curve(one)]
        assert record(other)["metrics"]["last"] == pytest.approx(record(one)["metrics"]["last"], rel=1e-6)


@pytest.mark.parametrize(
    ("words", "tried"),
    [
        (("model=sgornn",), False),
        (("model=rnn", "trainer.accumulate_grad_batches=2"), False),
        (("model=rnn", "trainer.log_every_n_steps=1"), False),
        (("model=rnn", "trainer.log_every_n_steps=4"), True),  # members with rates of their own
    ],
    ids=str,
)
@pytest.mark.sampled(2)
def test_steps_with_more_to_do_are_made_one_by_one(
    words: tuple[str, ...], tried: bool, made: list[int], tmp_path: Path
) -> None:
    assert run_members(members(tmp_path, "task=adding", *words), STACKED) == [0, 0, 0]
    assert made or not tried
    assert not any(made)


def test_a_member_that_diverges_between_two_looks_leaves_the_others(tmp_path: Path) -> None:
    words = [word for word in TINY if "clip" not in word and "log_every" not in word]
    more = ("model=irnn", "task=adding", "optimizer=sgd", "optimizer.lr=1e-3", "engine=reference")
    runs = [
        Run.fitted(SHIPPED.settings((*words, *more, f"seed={seed}", f"runs_root={tmp_path / 'together'}")))
        for seed in (1, 2)
    ]
    task, batch = runs[1].task, runs[1].task.batch
    task.batch = lambda split, epoch, index: (  # type: ignore[method-assign]
        tuple(part * 1e30 for part in batch(split, epoch, index)) if index == 2 else batch(split, epoch, index)
    )
    assert run_members(runs, STACKED) == [0, 4]
    assert [record(exp)["status"] for exp in runs] == ["done", "diverged"]
    assert record(runs[1])["diverged"]["step"] == 3
    assert record(runs[1])["diverged"]["last_loss"] is not None


def test_what_cannot_be_stacked_is_computed_in_another_form(capsys: pytest.CaptureFixture[str]) -> None:
    asked = requests(("model=scornn", "task=copying"))

    def loss(y: Any, *rest: Any) -> Any:
        assert isinstance(y, torch.Tensor)
        return y.sum() if y.sum() > 0 else -y.sum()

    for learner, _ in asked:
        learner.task.loss = loss
    together = Stacked(asked[0][0].model, STACKED)
    assert [float(value) for value, _ in together.train(asked)] == [
        float(loss(learner.model(batch[0])[0]).detach()) for learner, batch in asked
    ]
    assert together.forms == ["apart"]
    assert "cannot be computed stacked" in capsys.readouterr().out


def test_as_many_members_at_once_as_fit(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    asked = requests(("model=scornn", "task=copying"))
    together, sizes = Stacked(asked[0][0].model, STACKED), []
    train = together._train

    def limited(chunk: list[Any]) -> Any:
        sizes.append(len(chunk))
        if len(chunk) > 2:
            raise torch.OutOfMemoryError
        return train(chunk)

    monkeypatch.setattr(together, "_train", limited)
    found = together.train(asked)
    assert sizes == [3, 1, 1, 1]
    assert len(found) == 3
    assert "3 members at once do not fit in memory; 1 at once" in capsys.readouterr().out


def leaves(tensors: Any) -> set[int]:
    """The ids of the tensors from which some are computed."""
    seen, ahead = set[Any](), [t.grad_fn for t in tensors]
    while ahead:
        node = ahead.pop()
        if node is not None and node not in seen:
            seen.add(node)
            ahead += [other for other, _ in node.next_functions]
    return {id(node.variable) for node in seen if hasattr(node, "variable")}


@pytest.mark.parametrize("words", [("model=scornn", "task=copying"), ("model=lstm", "task=adding")], ids=" ".join)
def test_a_graph_of_all_members_reaches_no_leaf_that_is_used_outside(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A leaf belongs to the stream that used it first, and a capture that meets it is invalid."""
    monkeypatch.setattr(capture, "Graph", Again)
    monkeypatch.setattr(Stacked, "_is_captured", lambda self, model, size: self.forms[0] == "stacked")
    inside: list[set[int]] = []
    real = capture.Program.__init__

    def watched(self: Any, function: Any, arguments: Any, needed: Any, parameters: Any) -> None:
        inside.append(leaves(function(*(a.detach() for a in arguments))))
        assert inside[-1] <= {id(p) for p in parameters}
        real(self, function, arguments, needed, parameters)

    monkeypatch.setattr(capture.Program, "__init__", watched)
    asked = requests(words)
    stacked = Stacked(asked[0][0].model, STACKED)
    for _ in range(3):  # the first one looks which parameters have gradients
        stacked.train(asked)
    packed = stacked.packed([learner for learner, _ in asked])
    assert inside
    assert {id(p) for p in packed.values}.isdisjoint(*inside)
    check_stacked(asked)
