"""The dynamics of a trained recurrent model: its matrices, and what becomes of states and gradients over time.

Everything is computed in float64 with the reference engine, on sequences of the test split. The largest Lyapunov
exponent is that of one tangent vector per sequence, renormalised after every step (Benettin et al. 1980, "Lyapunov
characteristic exponents for smooth dynamical systems", part 2): the mean over the steps of ln ||J_t v||, with ||v|| = 1
and J_t the Jacobian of the whole state of a layer, for the inputs that the layer has. In a stack the exponent of the
whole is the largest of its layers', because no layer sees a later one.

A recurrence could also be computed for all steps at once, by Newton's method on h_t - f(h_{t-1}, x_t) = 0 with a scan
for each linear system (Lim et al. 2024, "Parallelizing non-linear sequential models over the sequence length"; Gonzalez
et al. 2024, "Towards scalable and stable parallelization of nonlinear RNNs"). The number of its sweeps tells whether
that would pay for this cell on these sequences.
"""

import copy
import math
import warnings
from typing import Any

import torch
from torch import Tensor

from orthobench.cells.base import Cell, Matrices, State
from orthobench.errors import ConfigError
from orthobench.models.contract import faults_of_strangers
from orthobench.run.callbacks.hidden_gradients import hidden_gradients
from orthobench.run.gates import gates
from orthobench.run.load import Finished
from orthobench.tasks.base import Batch


def dynamics(run: Finished, sequences: int = 8) -> dict[str, Any]:
    """Dynamics of a run's model on the first sequences of the test split.

    Where lengths differ they are the first of those that are as long as the longest of the first batch, so that nothing
    is computed over padding.

    Returns:
        `T`, `sequences`, `layers` (each with `matrices`, `lyapunov`, `newton_sweeps`, `state_norm` and `gates`)
        and `hidden_gradient`; lists over time begin with t = 1.

    Raises:
        ConfigError: the model is not recurrent, or the data have changed since.
        DataError: the task's data are missing or damaged.
    """
    if run.settings.parts.cell is None:
        name = run.settings.model["name"]
        raise ConfigError(
            f"inspect does not apply to {run.run_id}: model={name} is feed-forward, and has no dynamics"
            ": name a run of a recurrent network."
        )
    run.refuse_changed_data()
    run.task.check()
    batch = _longest(run.task.batch("test", 0, 0), sequences)
    batch = [part.double() if part.is_floating_point() else part for part in batch]
    learner = copy.deepcopy(run.learner)
    model: Any = in_float64(learner.model).eval()
    model.engine = "reference"
    layers = []
    with torch.no_grad(), faults_of_strangers(model, "inspect, in float64,"):
        for cell, x in zip(model.cells, model.layer_inputs(batch[0]), strict=True):
            norms, exponents, _ = along(cell, x)
            layers.append({
                "cell": type(cell).__name__,
                "matrices": matrices(cell),
                "lyapunov": exponents.tolist(),
                "newton_sweeps": newton_sweeps(cell, x),
                "state_norm": norms.mean(0).tolist(),
                "gates": gates(cell, *_start(cell, x)),
            })  # fmt: skip
    T = batch[0].shape[1]
    gradients = hidden_gradients(learner, batch, list(range(1, T + 1)))
    return {
        "T": T,
        "sequences": len(batch[0]),
        "layers": layers,
        "hidden_gradient": [gradients[t] for t in range(1, T + 1)],
    }


def _longest(batch: Batch, sequences: int) -> list[Tensor]:
    """Sequences whose last output that is asked for is the latest of the batch, up to that step."""
    if len(batch) < 3:
        return [part[:sequences] for part in batch]
    x, target, asked = batch
    T = asked.shape[1]
    ends = T - asked.bool().flip(1).to(torch.int8).argmax(1)
    end = int(ends.max())
    chosen = torch.nonzero(ends == end)[:sequences, 0]
    over_time = target.dim() > 1 and target.shape[1] == T > 1
    return [x[chosen, :end], target[chosen, :end] if over_time else target[chosen], asked[chosen, :end]]


def in_float64(model: torch.nn.Module) -> torch.nn.Module:
    """The model itself, with every parameter and buffer in double precision, complex ones too."""
    for module in model.double().modules():
        for name, buffer in module.named_buffers(recurse=False):
            if buffer.is_complex():
                setattr(module, name, buffer.to(torch.complex128))
        for p in module.parameters(recurse=False):
            if p.is_complex():
                p.data = p.data.to(torch.complex128)
    return model


def matrices(cell: Cell) -> dict[str, dict[str, Any]]:
    """By name, of each recurrent matrix (N, N): eigenvalues by falling modulus, and singular values."""
    found: dict[str, dict[str, Any]] = {}
    for name, parametrization in cell.recurrent.items():
        W = parametrization().detach()
        values = torch.linalg.eigvals(W)
        values = values[values.abs().argsort(descending=True, stable=True)]
        found[name] = {
            "constrained": bool(parametrization.constrained),
            "modulus": values.abs().tolist(),
            "phase": values.angle().tolist(),
            "singular_values": torch.linalg.svdvals(W).tolist(),
        }
    return found


def along(cell: Cell, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """A layer along its inputs, from its initial state.

    Args:
        cell: the layer's cell, in float64.
        x: inputs (B, T, I), or tokens (B, T).

    Returns:
        ||h_t|| (B, T), the largest Lyapunov exponent in nats per step (B,), and what the layer shows (B, T, F). An
        exponent is -inf where a step forgets the state entirely.
    """
    W, projected, state = _start(cell, x)
    generator = torch.Generator().manual_seed(0)  # of the first direction of the tangent vectors
    tangent = _normalised(tuple(torch.randn(s.shape, dtype=s.dtype, generator=generator) for s in state))[0]
    norms, seen = [], []
    total = torch.zeros(len(x), dtype=torch.float64)
    for p_t in projected.unbind(0):
        state, pushed, output = _pushed(cell, p_t, state, tangent, W)
        tangent, growth = _normalised(pushed)
        total += growth.log()
        norms.append(state[0].abs().flatten(1).norm(dim=1))
        seen.append(output)
    return torch.stack(norms, 1), total / max(len(seen), 1), torch.stack(seen, 1)


def newton_sweeps(cell: Cell, x: Tensor, tolerance: float = 1e-6) -> int:
    """Sweeps of Newton's method over all steps, from states of zero, until no state is far from that of the plain loop.

    A sweep sets h_t to f(h_{t-1}, x_t) + J_t (new h_{t-1} - h_{t-1}), for t = 1, 2, ..., T in the states of the sweep
    before. After k sweeps the first k states are exact, so that T sweeps always do, and sweep k + 1 begins after them.

    Args:
        cell: the layer's cell, in float64.
        x: inputs (B, T, I), or tokens (B, T).
        tolerance: the largest difference that counts as none, beside the largest entry of the states.
    """
    W, projected, start = _start(cell, x)
    exact, state = [], start
    for p_t in projected.unbind(0):
        state = cell.advance(p_t, state, W)[1]
        exact.append(state)
    near = tolerance * max((float(s.abs().max()) for after in exact for s in after), default=0.0)
    guess = [tuple(torch.zeros_like(s) for s in after) for after in exact]
    for known in range(len(exact)):
        new = guess[known - 1] if known else start
        old = new
        for t in range(known, len(exact)):
            moved = tuple(a - b for a, b in zip(new, old, strict=True))
            value, pushed, _ = _pushed(cell, projected[t], old, moved, W)
            new, old = tuple(a + b for a, b in zip(value, pushed, strict=True)), guess[t]
            guess[t] = new
        pairs = (pair for one, other in zip(guess, exact, strict=True) for pair in zip(one, other, strict=True))
        if float(torch.stack([(a - b).abs().max() for a, b in pairs]).max()) <= near:
            return known + 1
    return len(exact)


def _start(cell: Cell, x: Tensor) -> tuple[Matrices, Tensor, State]:
    """Matrices, projected inputs and initial state of a layer, complex where the layer is."""
    W, projected = cell.matrices(), cell.project(x)
    state = tuple(s.contiguous() for s in cell.initial_state(len(x)))  # a learnt one is expanded
    if W:
        projected = projected.to(W[0].dtype)
        state = tuple(s.to(W[0].dtype) if s.is_complex() or W[0].is_complex() else s for s in state)
    return W, projected, state


def _pushed(cell: Cell, p_t: Tensor, state: State, tangent: State, W: Matrices) -> tuple[State, State, Tensor]:
    """The state after a step, J_t v, and what the layer shows of the step."""

    def step(*before: Tensor) -> tuple[State, Tensor]:
        output, after = cell.advance(p_t, before, W)
        return after, output

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # torch's own rules for jvp are scripted
        after, pushed, *output = torch.func.jvp(step, state, tangent, has_aux=True)
    return after, pushed, output[0]


def _normalised(tangent: State) -> tuple[State, Tensor]:
    """The vectors over all states of a sequence at length 1, and their lengths (B,); a zero vector stays zero."""
    length = sum(v.abs().flatten(1).pow(2).sum(1) for v in tangent) ** 0.5
    assert isinstance(length, Tensor)
    scale = length.clamp(min=math.ulp(0.0))
    return tuple(v / scale.view(-1, *[1] * (v.dim() - 1)) for v in tangent), length
