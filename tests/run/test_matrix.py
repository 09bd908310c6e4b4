"""Every cell with every parametrization: forward, backward, a step with its hooks, and a checkpoint."""

from pathlib import Path

import pytest
import torch

import orthobench
from orthobench.common.registry import find, names
from orthobench.common.schema import fields
from orthobench.errors import ConfigError
from orthobench.models.build import build_optimizer, build_schedule
from orthobench.parametrizations.base import Parametrization
from orthobench.parametrizations.free import Free
from orthobench.recording.checkpoint import SafeCheckpointIO
from orthobench.run.learner import Learner
from orthobench.run.run import Run

MAPS = sorted(names("parametrization"))
WITHOUT = sorted(cell for cell in names("cell") if find("cell", cell, "model.cell").matrix_names == ())  # no matrix
CELLS = sorted(set(names("cell")) - set(WITHOUT))
COMPLEX_MAPS, COMPLEX_CELLS = {"unitary_product", "stiefel"}, {"complex_elman"}
REFUSED = [(cell, recurrent) for cell in CELLS if cell not in COMPLEX_CELLS for recurrent in sorted(COMPLEX_MAPS)]
PAIRS = [(cell, recurrent) for cell in CELLS for recurrent in MAPS if (cell, recurrent) not in REFUSED]
# After one step: casts of float64 products are within 1e-6; a Neumann series of order 2 is off by ||M||^3, M about the
# learning rate times sqrt(n), and one with the released code's delta by ||M||.
TOLERANCE = {"paper": 1e-5, "code": 1e-2}


def pair(cell: str, recurrent: str, *words: str) -> Run:
    """The smallest run of a pair, with every gate constrained where the cell has several."""
    cls = find("cell", cell, "model.cell")
    gates = list(getattr(cls, "gates", ()))
    every = [f"model.orthogonal=[{','.join(gates)}]"] if "orthogonal" in fields(cls) else []
    sizes = ["model.hidden_size=8", "task.batch_size=3", "task.val_size=3", "task.test_size=3"]
    names = [f"model.cell={cell}", f"model.recurrent={recurrent}"]
    return orthobench.build("model=rnn", "task=copying", "T=4", "recipe=none", *names, *every, *sizes, *words)


def step(exp: Run) -> Learner:
    """One training step, as the trainer takes it."""
    optimizer = build_optimizer(exp.settings, exp.model)
    learner = Learner(exp.model, exp.task, optimizer, build_schedule(exp.settings), exp.duration)
    optimizer.zero_grad()
    learner.training_step(exp.task.batch("train", 0, 0), 0).backward()
    optimizer.step()
    learner.after_step()
    return learner


def test_a_free_matrix_is_told_of_a_step_too(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[float] = []
    monkeypatch.setattr(Free, "after_step", lambda found: told.append(found.learning_rate))
    step(pair("elman", "free", "optimizer.lr=0.25"))
    assert told == [0.25]


def output(model: torch.nn.Module, exp: Run) -> torch.Tensor:
    with torch.no_grad():
        return model(exp.task.batch("val", 0, 0)[0])[0]


@pytest.mark.parametrize(
    ("cell", "recurrent", "word", "reason"),
    [
        *((*one, "seed=1", "is a complex matrix here, but model.cell={} has a real state") for one in REFUSED),
        *(
            (cell, "givens", "model.complex=true", "is a complex matrix here")
            for cell in sorted(set(CELLS) - COMPLEX_CELLS)
        ),
        *(
            (cell, one, "seed=1", "does not apply: .* has no recurrent matrix")
            for cell in WITHOUT
            for one in MAPS
            if one != "free"
        ),
    ],
)
@pytest.mark.sampled(15)
def test_a_matrix_that_a_cell_cannot_have_is_refused(cell: str, recurrent: str, word: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=f"model.recurrent={recurrent} {reason.format(cell)}"):
        pair(cell, recurrent, word)


@pytest.mark.parametrize("network", ["mlp", "spectral_resnet"])
def test_a_complex_matrix_in_a_feed_forward_network_is_refused(network: str) -> None:
    with pytest.raises(ConfigError, match=r"model\.recurrent=stiefel is a complex matrix here"):
        orthobench.build(f"model={network}", "task=mnist_flat", "model.recurrent=stiefel")


@pytest.mark.sampled(24)
@pytest.mark.parametrize(("cell", "recurrent"), [*PAIRS, *((cell, "free") for cell in WITHOUT)])
def test_a_step_trains_every_parameter_and_keeps_the_manifold(cell: str, recurrent: str) -> None:
    exp = pair(cell, recurrent)
    before = {name: value.clone() for name, value in exp.model.state_dict().items()}  # with base points that move
    step(exp)
    for name, p in exp.model.named_parameters():
        assert p.grad is not None, name
        assert p.grad.isfinite().all(), name
        assert p.isfinite().all(), name
    after = exp.model.state_dict()
    assert any(
        not torch.equal(before[name], after[name])
        for name in after
        if ("cells" if cell in WITHOUT else "recurrent") in name
    )
    for parametrization in exp.model.constrained():
        assert parametrization.contains(parametrization(), TOLERANCE["paper"])


@pytest.mark.slow
@pytest.mark.parametrize(("cell", "recurrent"), PAIRS)
def test_a_checkpoint_gives_the_same_model(cell: str, recurrent: str, tmp_path: Path) -> None:
    exp = pair(cell, recurrent)
    step(exp)
    SafeCheckpointIO().save_checkpoint({"state_dict": exp.model.state_dict()}, tmp_path / "one.ckpt")
    other = pair(cell, recurrent, "seed=2")
    assert not torch.equal(output(other.model, exp), output(exp.model, exp))
    other.model.load_state_dict(SafeCheckpointIO().load_checkpoint(tmp_path / "one.ckpt")["state_dict"])
    assert torch.equal(output(other.model, exp), output(exp.model, exp))


@pytest.mark.slow
@pytest.mark.parametrize(("cell", "recurrent"), PAIRS)
def test_auto_and_reference_give_the_same_gradients(cell: str, recurrent: str) -> None:
    """Float32 sums over 24 steps in another order; gradients near one."""
    found = []
    for engine in ("auto", "reference"):
        exp = pair(cell, recurrent, f"engine={engine}")
        exp.task.loss(exp.model(exp.task.batch("train", 0, 0)[0])[0], exp.task.batch("train", 0, 0)[1]).backward()
        found.append([p.grad for p in exp.model.parameters()])
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("variant", ["paper", "code"])
def test_a_neumann_step_stays_within_its_tolerance_with_a_map_for_each_gate(variant: str) -> None:
    exp = pair("gru", "neumann_cayley", f"variant={variant}")
    step(exp)
    found = exp.model.constrained()
    assert all(p.contains(p(), TOLERANCE[variant]) for p in found)
    assert len({id(p) for p in found if isinstance(p, Parametrization)}) == len(found) == 3


@pytest.mark.parametrize(
    "words",
    [
        ["model=gru", "model.recurrent=householder"],
        ["model=ncgru", "model.recurrent=matrix_exp"],
        ["model=sgornn", "model.recurrent=svd"],
        ["model=spectral_rnn", "model.cell=lstm"],
        ["model=sgornn", "model.cell=gru", "model.orthogonal=[r,u,c]"],
        ["model=urnn_full"],
        ["model=eunn", "model.recurrent=scaled_cayley"],
        ["model=goru", "model.recurrent=neumann_cayley"],
        ["model=lstm", "model.recurrent=givens", "model.peephole=true"],
    ],
    ids=" ".join,
)
@pytest.mark.sampled(4)
def test_a_pair_that_nobody_published_runs_and_records(words: list[str]) -> None:
    sizes = ["model.hidden_size=8", "task.batch_size=3", "task.val_size=3", "task.test_size=3", "trainer.max_steps=3"]
    record = orthobench.build(*words, "task=copying", "T=5", "recipe=none", *sizes).run()
    assert record["status"] == "done"
    assert record["steps"] == 3
    assert record["orthogonality"]["max"] < (1.0 if "model.recurrent=svd" in words else 0.1)
