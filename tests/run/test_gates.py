"""Gates of a cell along a sequence, against the equations of the LSTM, and their names."""

from typing import Any

import pytest
import torch

import orthobench
from orthobench.run.dynamics import _start, in_float64
from orthobench.run.gates import SPREAD, gates

NAMED = ["lstm", "gru", "goru", "lem", "mingru", "minlstm", "mlstm", "slstm", "deltaproduct", "mamba3", "rwkv7"]
B, T = 3, 5


def made(model: str) -> tuple[Any, torch.Tensor]:
    network = orthobench.build(f"model={model}", "task=adding", f"T={T}", "model.hidden_size=8", "recipe=none").model
    x = torch.rand(B, T, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    cell: Any = in_float64(network).cells[0]  # type: ignore[attr-defined]
    return cell, x


@torch.no_grad()
def test_the_gates_of_an_lstm() -> None:
    cell, x = made("lstm")
    W, projected, state = _start(cell, x)
    found = gates(cell, W, projected, state)
    h, c = state
    for t, p in enumerate(projected):
        i, f, g, o = (p + h @ W[0].T).chunk(4, dim=-1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        for name, value in {"i": i, "f": f, "o": o}.items():
            wanted = value.sigmoid().flatten().quantile(torch.tensor(SPREAD, dtype=torch.float64))
            assert found[name][t] == pytest.approx(wanted.tolist(), rel=1e-12)


@pytest.mark.parametrize("model", [*NAMED, "sgornn"])
@torch.no_grad()
def test_every_gate_with_a_name_is_seen_at_every_step(model: str) -> None:
    cell, x = made(model)
    found = gates(cell, *_start(cell, x))
    names = ("alpha", "beta") if model == "sgornn" else cell.opened
    assert tuple(found) == names
    assert set(names) <= set(cell.gates) or model == "sgornn"
    assert all(len(one) == T and all(0 <= low <= mid <= high <= 1 for low, mid, high in one) for one in found.values())


@torch.no_grad()
def test_a_cell_without_gates_has_none() -> None:
    cell, x = made("scornn")
    assert gates(cell, *_start(cell, x)) == {}
