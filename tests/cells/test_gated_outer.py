"""Gated linear attention and gated delta rules against a loop in NumPy, their limits, sizes, starts and memory."""

from typing import Any

import numpy as np
import pytest
import torch

import orthobench
from orthobench.cells.deltaproduct import DeltaProduct
from orthobench.cells.gated_outer import GatedOuter
from orthobench.cells.outer import decay_start
from orthobench.errors import ConfigError
from orthobench.scan import ENGINES, recurrence
from tests.making import draw, random_cell, sigmoid, untouched_cell

HEADS, K, V, N, I = 2, 3, 4, 6, 5
KINDS: dict[str, dict[str, Any]] = {
    "gated_deltanet": {},
    "negative": {"negative": True},
    "kda": {"decay": "vector", "output_gate": "sigmoid", "low_rank_gate": True},
    "gla": {"decay": "sigmoid", "decay_rank": 2, "rule": "add", "convolution": None},
    "gated_deltanet_2": {"decay": "vector", "rule": "split", "negative": True},
    "no decay": {"decay": "none", "output_gate": "none", "convolution": None},
}


def make(**options: Any) -> Any:
    return random_cell(GatedOuter, input_size=I, hidden_size=N, heads=HEADS, key_width=K, value_width=V, **options)


def loop(cell: Any, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Outputs (T, N) of one sequence, and the last S; every map is taken from its place in U by the paper's order."""
    own = {name: p.detach().numpy() for name, p in cell.named_parameters()}
    rows = iter(np.split(own["U"], np.cumsum(cell.sizes)[:-1]))
    qkv, b, w, a, shown = (x @ M.T for M in rows)
    if cell.convolution is not None:
        padded = np.concatenate([np.zeros((cell.convolution - 1, qkv.shape[1])), qkv])
        qkv = np.stack([(padded[t : t + cell.convolution] * own["kernel"]).sum(0) for t in range(len(x))])
    if cell.convolution is not None or cell.rule != "add":
        qkv = qkv * sigmoid(qkv)
    S, y = np.zeros((HEADS, K, V)), np.zeros((len(x), HEADS * V))
    for t in range(len(x)):
        for h in range(HEADS):
            keys, values = slice(h * K, (h + 1) * K), slice(h * V, (h + 1) * V)
            q, k, v = qkv[t][keys], qkv[t][HEADS * K :][keys], qkv[t][2 * HEADS * K :][values]
            g = np.ones(K)
            if cell.decay == "scalar":
                g = g * np.exp(-np.exp(own["A"][h]) * np.log1p(np.exp(a[t, h] + own["dt"][h])))
            if cell.decay == "vector":
                g = np.exp(-np.exp(own["A"][h]) * np.log1p(np.exp(own["D"] @ a[t] + own["dt"])))[keys]
            if cell.decay == "sigmoid":
                g = sigmoid(own["D"] @ a[t] + own["c"])[keys] ** (1 / 16)
            S[h] = g[:, None] * S[h]
            if cell.rule == "add":
                S[h] += np.outer(k, v)
            else:
                q, k = (z / np.sqrt(z @ z + 1e-6) for z in (q, k))
                erase = cell.reach * (sigmoid(b[t, h]) if cell.rule == "delta" else sigmoid(b[t][keys]))
                write = erase if cell.rule == "delta" else sigmoid(w[t][values])
                S[h] += np.outer(k, write * v - S[h].T @ (erase * k))
            o = S[h].T @ q / np.sqrt(K)
            y[t, values] = o / np.sqrt((o**2).mean() + 1e-5) * own["scale"]
    if cell.output_gate != "none":
        z = shown @ own["E"].T + own["e"] if cell.low_rank_gate else shown
        y = y * (z if cell.output_gate == "silu" else 1) * sigmoid(z)
    return y @ own["O"].T, S


@pytest.mark.parametrize("name", KINDS)
def test_against_a_loop_in_numpy(name: str) -> None:
    cell, x = make(**KINDS[name]), draw(2, 7, I)
    found, (S, *_) = recurrence(cell, x)
    for row in range(2):
        y, last = loop(cell, x[row].numpy())
        np.testing.assert_allclose(found[row].detach(), y, rtol=0, atol=1e-12)
        np.testing.assert_allclose(S[row].detach(), last, rtol=0, atol=1e-12)


@pytest.mark.parametrize("engine", ["fused", "native"])
@pytest.mark.parametrize("name", KINDS)
def test_steps_at_once_are_the_loop(name: str, engine: str) -> None:
    """Over several windows, and with the state handed over."""
    cell, x = make(**KINDS[name]), draw(2, 37, I)
    if ENGINES[engine].why_not(cell) is not None:
        pytest.skip(f"{engine}: {ENGINES[engine].why_not(cell)}")
    expected, _ = recurrence(cell, x, engine="reference")
    first, state = recurrence(cell, x[:, :20], engine=engine)
    second, _ = recurrence(cell, x[:, 20:], state, engine)
    torch.testing.assert_close(torch.cat([first, second], dim=1), expected, rtol=0, atol=1e-11)


def copied(cell: Any, **parameters: torch.Tensor) -> Any:
    with torch.no_grad():
        for name, values in parameters.items():
            cell.get_parameter(name).copy_(values)
    return cell


@pytest.mark.parametrize("negative", [False, True])
@pytest.mark.parametrize("gated", [False, True])
def test_it_is_deltanet_where_that_is_a_choice_of_it(gated: bool, negative: bool) -> None:
    """Gated DeltaNet and `model=deltanet` share S and outputs to rounding."""
    options = {"input_size": I, "hidden_size": N, "heads": HEADS, "negative": negative, "output_gate": "silu"}
    ours: Any = random_cell(GatedOuter, decay="scalar" if gated else "none", **options)
    other = untouched_cell(DeltaProduct, gated=gated, scaled_query=True, **options)
    copied(other, **dict(ours.named_parameters()))
    x = draw(2, 9, I)
    torch.testing.assert_close(recurrence(ours, x)[0], recurrence(other, x)[0], rtol=0, atol=1e-12)


def test_kda_with_one_decay_a_head_is_gated_deltanet() -> None:
    plain = make()
    kda = untouched_cell(
        GatedOuter,
        input_size=I,
        hidden_size=N,
        heads=HEADS,
        key_width=K,
        value_width=V,
        decay="vector",
        decay_rank=HEADS,
    )
    same = {name: p for name, p in plain.named_parameters() if name != "dt"}
    copied(kda, **same, dt=plain.dt.repeat_interleave(K), D=torch.eye(HEADS).double().repeat_interleave(K, 0))
    x = draw(2, 9, I)
    torch.testing.assert_close(recurrence(kda, x)[0], recurrence(plain, x)[0], rtol=0, atol=1e-12)


def test_gla_that_forgets_nothing_is_linear_attention() -> None:
    gla = make(**KINDS["gla"])
    linear = make(decay="none", rule="add", convolution=None)
    with torch.no_grad():
        gla.D.zero_()
        gla.c.fill_(40.0)
        rows = torch.cat([gla.U[: sum(gla.sizes[:3])], gla.U[-gla.sizes[4] :]])
    copied(linear, U=rows, O=gla.O, scale=gla.scale)
    x = draw(2, 9, I)
    torch.testing.assert_close(recurrence(gla, x)[0], recurrence(linear, x)[0], rtol=0, atol=1e-12)


def test_split_strengths_that_are_one_number_are_kda() -> None:
    kda = make(decay="vector", convolution=None)
    split = make(decay="vector", rule="split", convolution=None)
    qkv, b, _, rest = kda.U.split([kda.sizes[0], HEADS, 0, sum(kda.sizes[3:])])
    rows = torch.cat([qkv, b.repeat_interleave(K, 0), b.repeat_interleave(V, 0), rest])
    copied(split, **{name: p for name, p in kda.named_parameters() if name != "U"}, U=rows)
    x = draw(2, 9, I)
    torch.testing.assert_close(recurrence(split, x)[0], recurrence(kda, x)[0], rtol=0, atol=1e-12)


def test_a_memory_made_by_hand_recalls_and_replaces() -> None:
    """Full strength and orthogonal keys: every value is found again, and a second one replaces the first."""
    cell = untouched_cell(GatedOuter, input_size=8, hidden_size=4, heads=1, convolution=None, output_gate="none")
    with torch.no_grad():
        for p in (cell.U, cell.O):
            p.zero_()
        cell.U[:4, 4:] = cell.U[4:8, :4] = 30 * torch.eye(
            4
        )  # the query is of the last four inputs, the key of the first
        cell.U[12, :4] = 40.0  # beta is one where there is a key, and a half elsewhere, where there is none to write to
        cell.O.copy_(torch.eye(4))
        cell.dt.fill_(-40.0)  # no decay
    pairs = [(0, 2), (1, 3), (2, 0), (0, 1)]
    with torch.no_grad():
        S = torch.zeros(1, 1, 4, 4).double()
        for key, value in pairs:
            x = torch.zeros(1, 1, 8).double()
            x[0, 0, key] = 1.0
            cell.U[8:12, :4] = 0.0
            cell.U[8 + value, key] = 30.0
            _, (S,) = recurrence(cell, x, (S,))
        cell.U[8:12].zero_()
        asked = torch.zeros(1, 3, 8).double()
        asked[0, range(3), [4, 5, 6]] = 1.0
        found, _ = recurrence(cell, asked, (S,))
    assert found[0].argmax(-1).tolist() == [1, 3, 0]


def test_nothing_written_leaves_the_decay_alone() -> None:
    cell = make()
    with torch.no_grad():
        cell.U[cell.sizes[0] : cell.sizes[0] + HEADS].zero_()
        cell.U[: cell.sizes[0]].zero_()  # silu of zero: no key, and beta is a half
    S0, x = draw(1, HEADS, K, V), draw(1, 6, I)
    _, (S, _) = recurrence(cell, x, (S0, torch.zeros(1, 3, cell.sizes[0]).double()))
    decay = cell.log_decay(x @ cell.U[cell.sizes[0] + HEADS :][:HEADS].T, x).sum(1).exp()
    torch.testing.assert_close(S, decay[..., None] * S0, rtol=1e-12, atol=0)


def test_the_start_of_the_decay() -> None:
    for stratified in (False, True):
        ln_A, dt = decay_start(np.random.default_rng(3), 40, [1, 16], [1e-3, 1e-1], stratified=stratified)
        A, pace = ln_A.exp().sort().values, torch.nn.functional.softplus(dt)
        assert 1 < A[0] < 3
        assert 13 < A[-1] < 16
        assert 0.00099 < pace.min() < 0.002
        assert 0.06 < pace.max() < 0.1001
        if stratified:
            parts = ((A - 1) / 15 * 40).floor()
            assert parts.tolist() == list(range(40))


def test_what_does_not_fit_is_refused() -> None:
    for words, problem in (
        (("model.A=[3]",), r"model.A=\[3.0\] is no range"),
        (("model.dt=[0.1,0.01]",), r"model.dt=\[0.1, 0.01\] is no range"),
        (("model.rule=add", "model.negative=true"), "erases nothing"),
    ):
        with pytest.raises(ConfigError, match=problem):
            assert orthobench.build("model=gated_deltanet", *words).model
