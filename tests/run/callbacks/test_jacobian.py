"""The callback; tests/cells/test_gradient_bounds.py tests the chain of Jacobians itself."""

import math

import pytest
import torch

import orthobench
from orthobench.cells.elman import Elman
from orthobench.run.callbacks.jacobian import chained_jacobian, summary
from tests.making import draw, network
from tests.run.callbacks.watching import SMALL, finished, steps

SCORES = {"jacobian", "jacobian/min", "jacobian/max", "jacobian/lower", "jacobian/upper"}


def test_a_run_records_it_at_every_validation_when_asked() -> None:
    _, curve = finished("model=urnn_exp", "model.activation=abs", "diagnostics.jacobian=2")
    for name in SCORES:
        assert steps(curve, name) == [0, 3, 6]
        assert all(value == pytest.approx(math.sqrt(8), rel=1e-5) for _, value in curve.of(name))  # float32


def test_norms_lie_between_the_bounds() -> None:
    exp = orthobench.build(*SMALL, "model=sgornn")
    with torch.no_grad():
        found = summary(exp.model, exp.task.batch("val", 0, 0)[0][:4])
    order = [found[name] for name in ("jacobian/lower", "jacobian/min", "jacobian", "jacobian/max", "jacobian/upper")]
    assert order == sorted(order)


@pytest.mark.parametrize("model", ["ncgru", "ugru", "lstm"])
def test_gated_cells_have_no_bound(model: str) -> None:
    exp = orthobench.build(*SMALL, f"model={model}")
    with torch.no_grad():
        assert set(summary(exp.model, exp.task.batch("val", 0, 0)[0][:4])) == SCORES - {
            "jacobian/lower",
            "jacobian/upper",
        }


def test_in_a_stack_the_last_layer_is_measured() -> None:
    model, x = network(Elman, layers=2), draw(3, 5, 3)
    with torch.no_grad():
        expected = torch.linalg.matrix_norm(chained_jacobian(model.cells[1], model.layer_inputs(x)[-1]))
        assert summary(model, x)["jacobian"] == pytest.approx(expected.mean().item())


def test_the_last_layer_reads_what_the_others_give() -> None:
    model, x = network(Elman, layers=2), draw(3, 5, 3)
    hidden, _ = orthobench.recurrence(model.cells[1], model.layer_inputs(x)[-1])
    y = hidden @ model.output_weight.T + model.output_bias
    torch.testing.assert_close(y, model(x)[0], rtol=0, atol=1e-12)
