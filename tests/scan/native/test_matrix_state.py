"""The compiled matrix recurrence and the convolution before it: what they refuse, and their sums step by step."""

import pytest
import torch
from torch import Tensor

from orthobench.bench.cells import make_cell
from orthobench.bench.scans import saved_bytes
from orthobench.scan import ENGINES
from orthobench.scan.native.convolution import convolve
from orthobench.scan.native.library import missing
from orthobench.scan.native.matrix_state import MatrixScan
from tests.making import draw

pytestmark = pytest.mark.skipif(missing(torch.float64) is not None, reason="no C compiler here")


def arguments(writes: int = 2, d: int = 3) -> list[Tensor]:
    """x, beta and S_0 of two sequences, four steps and one head."""
    return [draw(2, 4, (1 + 2 * writes) * d), draw(2, 4, writes, 1, seed=1), draw(2, 1, d, d, seed=2)]


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("delta", [False, True])
def test_against_outer_products(delta: bool, gated: bool) -> None:
    x, beta, S0 = arguments()
    gate = draw(2, 4, 1, seed=3) if gated else None
    z0 = draw(2, 1, 3, seed=4)
    found, final, read, keys = MatrixScan.apply(x, beta, gate, S0, delta, z0)
    for b in range(2):
        S, z = S0[b, 0], z0[b, 0]
        for t in range(4):
            q, *rest = x[b, t].split(3)
            if delta:
                q, *rest[:2] = (v / (v @ v + 1e-6).sqrt() for v in (q, *rest[:2]))
            S, z = (state if gate is None else gate[b, t, 0] * state for state in (S, z))
            for j in range(2):
                v = rest[2 + j] - S.T @ rest[j] if delta else rest[2 + j]
                S, z = S + beta[b, t, j, 0] * torch.outer(rest[j], v), z + beta[b, t, j, 0] * rest[j]
            torch.testing.assert_close(found[b, t], S.T @ q, rtol=0, atol=1e-12)
            torch.testing.assert_close(read[b, t, 0], z @ q, rtol=0, atol=1e-12)
        torch.testing.assert_close(final[b, 0], S, rtol=0, atol=1e-12)
        torch.testing.assert_close(keys[b, 0], z, rtol=0, atol=1e-12)


@pytest.mark.parametrize("summed", [False, True])
@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("delta", [False, True])
@pytest.mark.parametrize("writes", [1, 3])
def test_gradients_against_finite_differences(writes: int, delta: bool, gated: bool, summed: bool) -> None:
    gate, z0 = draw(2, 4, 1, seed=3) if gated else None, draw(2, 1, 3, seed=4) if summed else None
    given = [*arguments(writes), *(one for one in (gate, z0) if one is not None)]

    def scan(x: Tensor, beta: Tensor, S0: Tensor, *rest: Tensor) -> tuple[Tensor, ...]:
        found = MatrixScan.apply(x, beta, rest[0] if gated else None, S0, delta, rest[-1] if summed else None)
        return tuple(one for one in found if one is not None)

    assert torch.autograd.gradcheck(scan, [one.requires_grad_() for one in given])


@pytest.mark.parametrize(
    ("which", "wrong", "sentence"),
    [
        (0, draw(2, 4, 14), r"\(2, 4, 14\).*\(2, 4, 15\)"),
        (2, draw(2, 1, 3, 4), r"\(2, 1, 3, 4\).* needed"),
        (1, draw(2, 4, 2, 1).float(), "beta is torch.float32"),
    ],
)
def test_what_does_not_fit_is_refused(which: int, wrong: Tensor, sentence: str) -> None:
    given = arguments()
    given[which] = wrong
    x, beta, S0 = given
    with pytest.raises(ValueError, match=sentence):
        MatrixScan.apply(x, beta, None, S0, True)
    with pytest.raises(ValueError, match=r"keys \(2, 1, 4\).* \(2, 1, 3\)"):
        MatrixScan.apply(*arguments()[:2], None, arguments()[2], False, draw(2, 1, 4))


def test_the_convolution_against_torchs() -> None:
    x, before, kernel = draw(2, 5, 3), draw(2, 2, 3, seed=1), draw(3, 3, seed=2)
    whole = torch.cat([before, x], 1)
    expected = torch.nn.functional.conv1d(whole.transpose(1, 2), kernel.T[:, None], groups=3).transpose(1, 2)
    found, latest = convolve(x, before, kernel)
    torch.testing.assert_close(found, torch.nn.functional.silu(expected), rtol=0, atol=1e-12)
    assert torch.equal(latest, whole[:, -2:])


@pytest.mark.parametrize(
    ("before", "kernel"),
    [
        (draw(2, 1, 3), draw(3, 3)),
        (draw(2, 2, 3), draw(3, 4)),
        (draw(2, 2, 3).float(), draw(3, 3)),
        (draw(2, 2, 3), draw(3, 3).float()),
    ],
)
def test_a_kernel_that_does_not_fit_is_refused(before: Tensor, kernel: Tensor) -> None:
    with pytest.raises(ValueError, match=r"before them and a kernel .* do not fit"):
        convolve(draw(2, 5, 3), before, kernel)


@pytest.mark.parametrize("model", ["deltanet", "deltaproduct", "mlstm"])
def test_the_estimate_of_memory_knows_that_states_are_not_kept(model: str) -> None:
    cell, x = make_cell(model, 64, 96), torch.randn(2, 96, 16)
    kept, engine = saved_bytes(cell, x, "native") / x.element_size() / (2 * 96), ENGINES["native"]
    assert kept <= engine.peak(cell) < ENGINES["reference"].peak(cell) / 4
