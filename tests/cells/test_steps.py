"""Cells whose state is one or two vectors, against their steps in NumPy, from a random state."""

from typing import Any

import numpy as np
import pytest
import torch

from orthobench.cells.cornn import CoRNN
from orthobench.cells.elman import Elman
from orthobench.cells.goru import GORU
from orthobench.cells.gru import GRU
from orthobench.cells.lem import LEM
from orthobench.cells.lipschitz import Lipschitz
from orthobench.cells.lru import LRU
from orthobench.cells.lstm import LSTM
from orthobench.cells.mingru import MinGRU
from orthobench.cells.minlstm import MinLSTM
from orthobench.cells.rotation import Rotation
from orthobench.cells.unicornn import UnICORNN
from orthobench.parametrizations.givens import Givens
from orthobench.parametrizations.skew_symmetric import SkewSymmetric
from orthobench.scan import recurrence
from tests.making import arrays, draw, random_cell, sigmoid

Arrays = dict[str, np.ndarray]
Step = tuple[np.ndarray, ...]  # what is seen of a step, and the states after it
ACTIVATIONS = {
    "tanh": lambda z, b: np.tanh(z + b),
    "relu": lambda z, b: np.maximum(z + b, 0),
    "leaky_relu": lambda z, b: np.where(z + b > 0, z + b, 0.3 * (z + b)),
    "abs": lambda z, b: np.abs(z + b),
    "modrelu": lambda z, b: np.sign(z) * np.maximum(np.abs(z) + b, 0),
}


def sums(a: Arrays, gates: str, x: np.ndarray, h: np.ndarray) -> list[np.ndarray]:
    """What every gate gets of the input, the state and its bias."""
    return [x @ a[f"U_{gate}"].T + h @ a[f"W_{gate}"].T + a[f"b_{gate}"] for gate in gates]


def complexes(U: np.ndarray) -> np.ndarray:
    """A complex matrix from its real parts, stacked above its imaginary ones."""
    return U[: len(U) // 2] + 1j * U[len(U) // 2 :]


def elman(a: Arrays, x: np.ndarray, h: np.ndarray, activation: str, **_: Any) -> Step:
    h = ACTIVATIONS[activation](x @ a["U_h"].T + h @ a["W_h"].T, a["b_h"])
    return h, h


def gru(a: Arrays, x: np.ndarray, h: np.ndarray, reset: str, activation: str) -> Step:
    u, r = sigmoid(*sums(a, "u", x, h)), 1.0 if reset == "none" else sigmoid(*sums(a, "r", x, h))
    recalled = (r * h) @ a["W_c"].T if reset == "before" else r * (h @ a["W_c"].T)
    h = u * h + (1 - u) * ACTIVATIONS[activation](x @ a["U_c"].T + recalled, a["b_c"])
    return h, h


def goru(a: Arrays, x: np.ndarray, h: np.ndarray, **_: Any) -> Step:
    r, g = map(sigmoid, sums(a, "ru", x, h))
    z = x @ a["U_c"].T + r * (h @ a["W_c"].T)
    h = g * h + (1 - g) * ACTIVATIONS["modrelu"](z, a["b_c"])  # the stored bias holds the authors' 0.001
    return h, h


def lstm(a: Arrays, x: np.ndarray, h: np.ndarray, c: np.ndarray, peephole: bool) -> Step:
    i, f, g, o = sums(a, "ifgo", x, h)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    h = sigmoid(o + c @ a["V_o"].T if peephole else o) * np.tanh(c)  # the output gate is shown the new cell
    return h, h, c


def lem(a: Arrays, x: np.ndarray, y: np.ndarray, z: np.ndarray, dt: float) -> Step:
    step_a, step_b = (dt * sigmoid(own) for own in sums(a, "ab", x, y))
    z = (1 - step_b) * z + step_b * np.tanh(*sums(a, "z", x, y))
    y = (1 - step_a) * y + step_a * np.tanh(*sums(a, "y", x, z))
    return y, y, z


def cornn(a: Arrays, x: np.ndarray, y: np.ndarray, z: np.ndarray, dt: float, gamma: float, epsilon: float) -> Step:
    force = np.tanh(y @ a["W_y"].T + z @ a["W_z"].T + x @ a["U"].T + a["b_z"])
    z = z + dt * (force - gamma * y - epsilon * z)
    return y + dt * z, y + dt * z, z


def unicornn(a: Arrays, x: np.ndarray, y: np.ndarray, z: np.ndarray, dt: float, alpha: float) -> Step:
    pace = dt * sigmoid(a["c"])
    z = z - pace * (np.tanh(a["w"] * y + x @ a["U"].T + a["b_z"]) + alpha * y)
    return y + pace * z, y + pace * z, z


def lipschitz(a: Arrays, x: np.ndarray, h: np.ndarray, eps: float, linear: bool, **_: Any) -> Step:
    flow = np.tanh(h @ a["W_W"].T + x @ a["U"].T + a["b_h"])
    h = h + eps * (flow + h @ a["W_A"].T if linear else flow)
    return h, h


def drive(candidate: str, v: np.ndarray) -> np.ndarray:
    return v if candidate == "identity" else np.where(v >= 0, v + 0.5, sigmoid(v))


def mingru(a: Arrays, x: np.ndarray, h: np.ndarray, candidate: str) -> Step:
    z, v = (x @ a[f"U_{gate}"].T + a[f"b_{gate}"] for gate in "zh")
    h = (1 - sigmoid(z)) * h + sigmoid(z) * drive(candidate, v)
    return h, h


def minlstm(a: Arrays, x: np.ndarray, h: np.ndarray, candidate: str) -> Step:
    f, i, v = (x @ a[f"U_{gate}"].T + a[f"b_{gate}"] for gate in "fih")
    f, i = sigmoid(f), sigmoid(i)
    h = f / (f + i) * h + i / (f + i) * drive(candidate, v)
    return h, h


def lru(a: Arrays, x: np.ndarray, h: np.ndarray) -> Step:
    h = np.exp(-np.exp(a["nu"]) + 1j * np.exp(a["theta"])) * h + np.exp(a["g"]) * (x @ complexes(a["U"]).T)
    return (h @ (a["C"][:, ::2] - 1j * a["C"][:, 1::2]).T).real + a["d"] * x, h


def rotation(a: Arrays, x: np.ndarray, h: np.ndarray, unitary: bool) -> Step:
    damping = 0.0 if unitary else np.log1p(np.exp(x @ a["U_a"].T + a["b_a"]))
    h = np.exp(-damping + 1j * (x @ a["U_phi"].T + a["b_phi"])) * h + x @ (a["U_re"] + 1j * a["U_im"]).T
    return h, h


CASES: dict[str, tuple[type, Any, dict[str, Any]]] = {
    **{f"elman {name}": (Elman, elman, {"activation": name, "negative_slope": 0.3}) for name in ACTIVATIONS},
    **{
        f"gru {activation} {reset}": (GRU, gru, {"activation": activation, "reset": reset})
        for activation in ("tanh", "modrelu")
        for reset in ("before", "after", "none")
    },
    "goru": (GORU, goru, {"recurrent": Givens}),
    "lstm": (LSTM, lstm, {"peephole": False}),
    "lstm peephole": (LSTM, lstm, {"peephole": True}),
    "lem": (LEM, lem, {"dt": 0.3}),
    "cornn": (CoRNN, cornn, {"dt": 0.2, "gamma": 1.7, "epsilon": 2.3}),
    "unicornn": (UnICORNN, unicornn, {"dt": 0.4, "alpha": 1.7}),
    "lipschitz": (Lipschitz, lipschitz, {"eps": 0.2, "linear": True, "recurrent": SkewSymmetric}),
    "antisymmetric": (Lipschitz, lipschitz, {"eps": 0.2, "linear": False, "recurrent": SkewSymmetric}),
    **{f"mingru {name}": (MinGRU, mingru, {"candidate": name}) for name in ("positive", "identity")},
    **{f"minlstm {name}": (MinLSTM, minlstm, {"candidate": name}) for name in ("positive", "identity")},
    "lru": (LRU, lru, {}),
    "rotation": (Rotation, rotation, {"unitary": False}),
    "rotation unitary": (Rotation, rotation, {"unitary": True}),
}


@pytest.mark.parametrize("engine", ["auto", "reference"])
@pytest.mark.parametrize(("cls", "step", "options"), CASES.values(), ids=CASES)
def test_steps_in_numpy(cls: type, step: Any, options: dict[str, Any], engine: str) -> None:
    cell, x, expected = random_cell(cls, **options), 2 * draw(2, 6, 3), []
    first = [draw(2, *s.shape, seed=i) for i, s in enumerate(cell.initial_state(2), start=5)]
    state = tuple(torch.complex(*s) if cell.complex_state else s[0] for s in first)
    now = [s.numpy() for s in state]
    for x_t in x.numpy().transpose(1, 0, 2):
        seen, *now = step(arrays(cell), x_t, *now, **options)
        expected.append(seen)
    h, final = recurrence(cell, x, state, engine=engine)
    np.testing.assert_allclose(h.detach().numpy().transpose(1, 0, 2), expected, rtol=0, atol=1e-13)
    np.testing.assert_allclose([s.detach().numpy() for s in final], now, rtol=0, atol=1e-13)
