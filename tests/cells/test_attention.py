"""Attention against a double loop in NumPy, by torch's own function, its window, positions, recall by hand and size."""

import os
from typing import Any

import numpy as np
import pytest
import torch

from orthobench.cells.attention import Attention
from orthobench.errors import ConfigError
from orthobench.scan import ENGINES, recurrence
from tests.making import draw, random_cell, untouched_cell

HEADS, N, I, D = 2, 8, 5, 4


def drawn(**options: Any) -> Any:
    """A random cell."""
    return random_cell(Attention, input_size=I, hidden_size=N, heads=HEADS, **options)


@pytest.mark.parametrize("engine", ["reference", "fused"])
@pytest.mark.parametrize(("window", "positions"), [(20, "rotary"), (4, "rotary"), (4, "none"), (1, "rotary")])
def test_against_a_double_loop(engine: str, window: int, positions: Any) -> None:
    cell, x = drawn(window=window, positions=positions), draw(2, 9, I)
    found, _ = ENGINES[engine].run(cell, x, cell.initial_state(2))
    U, O = cell.U.detach().numpy(), cell.O.detach().numpy()
    pace = 10_000 ** (-np.arange(0, D, 2) / D)

    def turned(y: np.ndarray, place: int) -> np.ndarray:
        z = (y[0::2] + 1j * y[1::2]) * np.exp(1j * place * pace * (positions == "rotary"))
        return np.stack([z.real, z.imag], axis=-1).flatten()

    for row in range(2):
        q, k, v = np.split((x[row].numpy() @ U.T).reshape(9, 3, HEADS, D), 3, axis=1)
        for t in range(9):
            y = np.zeros((HEADS, D))
            for h in range(HEADS):
                steps = range(max(0, t - window + 1), t + 1)
                scores = [turned(q[t, 0, h], t) @ turned(k[s, 0, h], s) / np.sqrt(D) for s in steps]
                shares = np.exp(scores) / np.exp(scores).sum()
                y[h] = sum(share * v[s, 0, h] for share, s in zip(shares, steps, strict=True))
            np.testing.assert_allclose(found[row, t].detach(), O @ y.flatten(), rtol=0, atol=1e-12)


def test_the_engines_agree_on_a_state_that_was_handed_over() -> None:
    cell, x = drawn(window=4), draw(2, 9, I)
    whole, last = recurrence(cell, x)
    for engine in ("reference", "fused"):
        first, state = ENGINES[engine].run(cell, x[:, :5], cell.initial_state(2))
        second, ended = ENGINES[engine].run(cell, x[:, 5:], state)
        torch.testing.assert_close(torch.cat([first, second], 1), whole, rtol=0, atol=1e-12)
        for a, b in zip(ended, last, strict=True):
            torch.testing.assert_close(a, b, rtol=0, atol=1e-12)


@pytest.mark.parametrize("window", [5, 1000])
def test_parts_of_many_steps_are_as_one(window: int, monkeypatch: pytest.MonkeyPatch) -> None:
    cell, x = drawn(window=window), draw(2, 23, I).requires_grad_()
    found = []
    for part in (7, 100):
        monkeypatch.setattr("orthobench.scan.fused.attention.PART", part)
        first, state = ENGINES["fused"].run(cell, x[:, :3], cell.initial_state(2))
        y, last = ENGINES["fused"].run(
            cell, x[:, 3:], tuple(s * torch.tensor([1.0, 0.0]).to(s).view(2, *[1] * (s.ndim - 1)) for s in state)
        )
        found.append((first, y, *last, *torch.autograd.grad(y.square().sum(), (x, *cell.parameters()))))
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-11)


def test_a_later_input_changes_nothing_before() -> None:
    cell, x = drawn(window=20), draw(1, 9, I)
    other = x.clone()
    other[:, 6] += 1
    a, b = recurrence(cell, x)[0], recurrence(cell, other)[0]
    assert torch.equal(a[:, :6], b[:, :6])
    assert not torch.equal(a[:, 6:], b[:, 6:])


def test_what_a_key_is_asked_for_by_hand() -> None:
    """A step that tells key and value at once is found again by its key, at any distance, without positions."""
    cell: Any = untouched_cell(Attention, input_size=8, hidden_size=4, heads=1, positions="none", window=500)
    with torch.no_grad():
        cell.U.zero_()
        cell.U[:4, :4] = 60 * torch.eye(4)
        cell.U[4:8, :4] = torch.eye(4)
        cell.U[8:, 4:] = torch.eye(4)
        cell.O.copy_(torch.eye(4))
        rng = np.random.default_rng(0)
        values = rng.permutation(4)
        x = torch.zeros(1, 400, 8).double()
        x[0, range(4), range(4)] = 1.0
        x[0, range(4), 4 + values] = 1.0
        asked = rng.integers(0, 4)
        x[0, -1, asked] = 1.0
        y, _ = recurrence(cell, x)
    told = y[0, -1]
    assert told.argmax() == values[asked]
    assert told.max() == pytest.approx(0.5)  # the question is a step of its own, with the same key and no value


def test_size_and_what_does_not_fit() -> None:
    cell: Any = untouched_cell(Attention, input_size=41, hidden_size=64, heads=4, window=100)
    assert sum(p.numel() for p in cell.parameters()) == 11_968
    assert cell.state_bytes() == 8 * 99 * (2 * 64 + 1)
    assert cell.multiply_adds() == 11_968 + 2 * 64 * 100
    with pytest.raises(ConfigError, match="pairs"):
        untouched_cell(Attention, hidden_size=6, heads=2)


def test_empty_slots_are_memory_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gradients flow through the slots that are filled, and a system that gives no memory is told as such."""
    cell, x = drawn(window=9), draw(2, 4, I)
    found = ENGINES["fused"].run(cell, x, cell.initial_state(2))[1]
    wanted = ENGINES["reference"].run(cell, x, cell.initial_state(2))[1]
    weights = [torch.randn_like(s) for s in found]
    gradients = [
        torch.autograd.grad(sum((s * w).sum() for s, w in zip(state[:2], weights, strict=False)), cell.U)[0]
        for state in (found, wanted)
    ]
    torch.testing.assert_close(*gradients, rtol=0, atol=1e-12)
    for a, b in zip(found, wanted, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-12)

    def refused(*_: Any, **__: Any) -> Any:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr("orthobench.scan.fused.attention.mmap", refused)
    with pytest.raises(MemoryError, match="Cannot allocate memory"):
        ENGINES["fused"].run(cell, x, cell.initial_state(2))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_forked_process_has_a_copy_of_the_slots() -> None:
    state = ENGINES["fused"].run(drawn(window=9), draw(2, 4, I), drawn(window=9).initial_state(2))[1]
    before = [s.detach().clone() for s in state]
    child = os.fork()
    if not child:
        state[0].detach().zero_()
        os._exit(0)
    os.waitpid(child, 0)
    assert all(torch.equal(a, b) for a, b in zip(state, before, strict=True))
