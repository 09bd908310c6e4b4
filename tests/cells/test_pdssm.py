"""PD-SSM against a loop in NumPy that moves numbers, automata by hand, its surrogate gradient and its size."""

from itertools import permutations
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import erf

from orthobench.cells.pdssm import PDSSM
from orthobench.scan import recurrence
from tests.making import draw, random_cell, sigmoid, untouched_cell

N, I, K = 4, 3, 3


def drawn(**options: Any) -> Any:
    """A random cell."""
    return random_cell(PDSSM, input_size=I, hidden_size=N, dictionary=K, **options)


@pytest.mark.parametrize("selection", ["columns", "rows"])
def test_against_a_loop_in_numpy(selection: Any) -> None:
    cell, x = drawn(selection=selection), draw(2, 7, I)
    own = {name: p.detach().numpy() for name, p in cell.named_parameters()}
    found, _ = recurrence(cell, x)
    for row in range(2):
        h = np.eye(N)[0].astype(complex)
        for t in range(7):
            z, s, f, B = np.split(own["U"] @ x[row, t].numpy(), [K, K + 2 * N, K + 4 * N])
            share = np.exp(z) / np.exp(z).sum()
            M = np.tensordot(share, own["M"], 1)
            hidden = [a + c for a, c in zip((s, f), np.split(own["c"], 2), strict=True)]
            hidden = [a * (1 + erf(a / np.sqrt(2))) / 2 for a in hidden]
            s, f = (sigmoid(own["G"][i] @ hidden[i] + np.split(own["g"], 2)[i]) for i in range(2))
            D, moved = s * np.exp(2j * np.pi * f), np.zeros(N, complex)
            if selection == "columns":
                for j in range(N):
                    moved[M[:, j].argmax()] += D[j] * h[j]
            else:
                moved = np.array([D[i] * h[M[i].argmax()] for i in range(N)])
            h = moved + B[:N] + 1j * B[N:]
            both = np.stack([h.real, h.imag], axis=-1).flatten()
            np.testing.assert_allclose(cell.features(found[row, t]).detach(), both, rtol=0, atol=1e-12)


def test_any_automaton_by_hand() -> None:
    """The six permutations of three things, told one after another: the state is the one-hot of their product."""
    group = list(permutations(range(3)))
    cell = untouched_cell(PDSSM, input_size=6, hidden_size=6, dictionary=6)
    with torch.no_grad():
        cell.U.zero_()
        cell.U[:6] = 60 * torch.eye(6)  # the k-th input chooses the k-th matrix
        for k, told in enumerate(group):
            cell.M[k].zero_()
            for j, held in enumerate(group):
                cell.M[k, group.index(tuple(told[i] for i in held)), j] = 1.0
        cell.G.zero_()
        cell.g.copy_(torch.tensor([60.0] * 6 + [-60.0] * 6))  # nothing fades and nothing turns
        word = np.random.default_rng(0).integers(0, 6, 500)
        h, _ = recurrence(cell, torch.from_numpy(word)[None])
    product = group[0]
    for t, k in enumerate(word):
        product = tuple(group[k][i] for i in product)
        assert h[0, t].real.argmax() == group.index(product)
        assert h[0, t].abs().sum() == pytest.approx(1)


def test_the_transition_is_one_hot_and_its_gradient_that_of_a_softmax() -> None:
    cell = drawn()
    shares, weights = torch.softmax(draw(2, K), -1), draw(2, N, N, seed=1)
    P = cell.transition(shares)
    assert (P.sum(-2) == 1).all()
    assert set(P.unique().tolist()) == {0.0, 1.0}
    (found,) = torch.autograd.grad((P * weights).sum(), cell.M)
    soft = torch.einsum("bk,kij->bij", shares, cell.M).softmax(-2)
    (wanted,) = torch.autograd.grad((soft * weights).sum(), cell.M)
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-14)


def test_the_first_state() -> None:
    assert untouched_cell(PDSSM, hidden_size=3).initial_state(2)[0].tolist() == [[1, 0, 0]] * 2
    assert not untouched_cell(PDSSM, hidden_size=3, first="zero").initial_state(2)[0].any()
