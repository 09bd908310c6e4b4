"""Choose the measurements that apply to a model: the cheap ones always, the others if `diagnostics.*` asks for them."""

from typing import Any

from orthobench.cells.scalar_gated import ScalarGated
from orthobench.models.base import Network
from orthobench.parametrizations.matrix_exp import MatrixExp
from orthobench.parametrizations.neumann_cayley import NeumannCayley
from orthobench.parametrizations.svd import SVD
from orthobench.recording.curve import Curve
from orthobench.run.callbacks.generalisation_gap import GeneralisationGap
from orthobench.run.callbacks.hidden_gradients import HiddenGradients
from orthobench.run.callbacks.jacobian import Jacobian
from orthobench.run.callbacks.lie_algebra import LieAlgebra
from orthobench.run.callbacks.log import Log
from orthobench.run.callbacks.neumann import NeumannNorm
from orthobench.run.callbacks.scalar_gates import ScalarGates
from orthobench.run.callbacks.singular_values import SingularValues
from orthobench.tasks.duration import Duration


def diagnostics(asked: dict[str, Any], model: Network, curve: Curve, duration: Duration, every: int) -> list[Log]:
    """The callbacks for a model.

    Args:
        asked: the `diagnostics` section of the settings.
        model: the model.
        curve, duration, every: see `Log`.
    """
    maps, cells = model.parametrizations(), [cell for cell in model.cells if isinstance(cell, ScalarGated)]
    spectral = maps if asked["singular_values"] else [p for p in maps if isinstance(p, SVD)]
    neumann = [p for p in maps if isinstance(p, NeumannCayley)]
    exponential = [p for p in maps if isinstance(p, MatrixExp)]
    found: list[tuple[Any, type[Log]]] = [
        (spectral, SingularValues),
        (neumann, NeumannNorm),
        (cells, ScalarGates),
        (exponential, LieAlgebra),
        (asked["hidden_gradients"], HiddenGradients),
        (asked["jacobian"], Jacobian),
        (asked["train_batches"], GeneralisationGap),
    ]
    return [callback(curve, duration, every, subject) for subject, callback in found if subject]
