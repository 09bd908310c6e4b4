"""The diagonal scans, compiled and in PyTorch, against a loop under autograd, in float64 unless said."""

from typing import Any

import pytest
import torch
from torch import Tensor

from orthobench.scan.fused import linear
from orthobench.scan.native.diagonal import diagonal_scan, why_not
from tests.making import draw

compiled = pytest.mark.skipif(why_not(draw(1)) is not None, reason="no C compiler here")
every_scan = pytest.mark.parametrize(
    "scan", [pytest.param(diagonal_scan, marks=compiled, id="native"), pytest.param(linear.diagonal_scan, id="fused")]
)
SHAPES = [(1, 1, 1), (1, 5, 3), (7, 1, 2), (9, 4, 5), (30, 3, 17), (6, 13, 64), (5, 2, 128)]
GATES = ["fixed", "of every step", "of every row", "of every step alone", "number"]
every_type = pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)


def numbers(*shape: int, dtype: torch.dtype = torch.float64, seed: int = 1) -> Tensor:
    """Normal draws that need a gradient."""
    real = draw(*shape, seed=seed)
    return (torch.complex(real, draw(*shape, seed=seed + 9)) if dtype.is_complex else real).to(dtype).requires_grad_()


def gate(kind: str, T: int, B: int, N: int, dtype: torch.dtype) -> Tensor:
    """Factors of modulus near one."""
    shapes = {"fixed": (N,), "of every step": (T, B, N), "of every row": (B, N), "of every step alone": (T, 1, N)}
    a = numbers(*shapes.get(kind, ()), dtype=dtype, seed=3).detach()
    return (a / (a.abs() + 0.2)).requires_grad_()


def loop(a: Tensor, b: Tensor, h0: Tensor) -> Tensor:
    h, states = h0, []
    for a_t, b_t in zip(a.expand(b.shape), b, strict=True):
        h = a_t * h + b_t
        states.append(h)
    return torch.stack(states)


def results(scan: Any, *inputs: Tensor) -> list[Tensor]:
    h = scan(*inputs)
    outside = numbers(*h.shape, dtype=h.dtype, seed=30).detach()
    return [h.detach(), *torch.autograd.grad(h, inputs, outside)]


@every_scan
@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@every_type
def test_equals_the_loop(scan: Any, shape: tuple[int, int, int], kind: str, dtype: torch.dtype) -> None:
    T, B, N = shape
    inputs = gate(kind, T, B, N, dtype), numbers(T, B, N, dtype=dtype), numbers(B, N, dtype=dtype, seed=2)
    for found, expected in zip(results(scan, *inputs), results(loop, *inputs), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


@every_scan
def test_a_real_gate_of_complex_states(scan: Any) -> None:
    inputs = gate("fixed", 6, 3, 5, torch.float64), numbers(6, 3, 5, dtype=torch.complex128), numbers(3, 5)
    for found, expected in zip(results(scan, *inputs), results(loop, *inputs), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


@every_scan
@every_type
def test_strided_and_conjugate_arguments(scan: Any, dtype: torch.dtype) -> None:
    a, b, h0 = (numbers(*shape, dtype=dtype) for shape in ((5, 4, 6), (6, 5, 4), (5, 4)))
    inputs = 0.5 * a.permute(2, 1, 0).conj(), b.permute(0, 2, 1).conj(), h0.T.conj()
    for found, expected in zip(results(scan, *inputs), results(loop, *inputs), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


@every_scan
@every_type
def test_the_gradient_of_the_last_state_alone(scan: Any, dtype: torch.dtype) -> None:
    inputs = gate("of every step", 6, 3, 4, dtype), numbers(6, 3, 4, dtype=dtype), numbers(3, 4, dtype=dtype)
    found, expected = (torch.autograd.grad(run(*inputs)[-1].abs().sum(), inputs) for run in (scan, loop))
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


@every_scan
@pytest.mark.parametrize("kind", GATES)
@every_type
def test_finite_differences(scan: Any, kind: str, dtype: torch.dtype) -> None:
    inputs = gate(kind, 3, 2, 3, dtype), numbers(3, 2, 3, dtype=dtype), numbers(2, 3, dtype=dtype, seed=2)
    assert torch.autograd.gradcheck(scan, inputs)


@every_scan
def test_float32_stays_within_its_rounding(scan: Any) -> None:
    inputs = gate("of every step", 500, 4, 33, torch.float64), numbers(500, 4, 33), numbers(4, 33, seed=2)
    single = [t.detach().float().requires_grad_() for t in inputs]
    for found, exact in zip(results(scan, *single), results(loop, *inputs), strict=True):
        assert found.dtype == torch.float32
        assert float((found - exact).norm()) <= 1e-6 * float(exact.norm())


@compiled
@every_type
def test_bits_do_not_depend_on_threads(dtype: torch.dtype) -> None:
    inputs = gate("fixed", 9, 23, 17, dtype), numbers(9, 23, 17, dtype=dtype), numbers(23, 17, dtype=dtype)
    before, found = torch.get_num_threads(), []
    for count in (1, 2, 3):
        torch.set_num_threads(count)
        found.append(results(diagonal_scan, *inputs))
    torch.set_num_threads(before)
    assert all(torch.equal(a, b) for other in found[1:] for a, b in zip(found[0], other, strict=True))


@every_scan
def test_a_number_that_is_none_stays_so(scan: Any) -> None:
    h0 = torch.full((2, 3), torch.nan, dtype=torch.float64)
    assert scan(draw(3), draw(4, 2, 3), h0).isnan().all()


@every_scan
def test_second_derivatives_are_refused(scan: Any) -> None:
    inputs = gate("fixed", 3, 2, 3, torch.float64), numbers(3, 2, 3), numbers(2, 3)
    (once,) = torch.autograd.grad(scan(*inputs).square().sum(), inputs[0], create_graph=True)
    with pytest.raises(RuntimeError, match="second derivatives"):
        once.sum().backward()


@compiled
@pytest.mark.parametrize(
    ("a", "b", "h0", "message"),
    [
        (draw(4), draw(2, 3), draw(3, 4), r"b has the shape \(2, 3\)"),
        (draw(4), draw(0, 3, 4), draw(3, 4), "none of them zero"),
        (draw(5), draw(2, 3, 4), draw(3, 4), r"a has the shape \(5,\), which does not broadcast to \(2, 3, 4\)"),
        (draw(4), draw(2, 3, 4), draw(2, 4), "h0 has the shape"),
        (draw(1, 2, 3, 4), draw(2, 3, 4), draw(3, 4), "a has the shape"),
        (draw(4).to(torch.complex128), draw(2, 3, 4), draw(3, 4), "needs a complex b"),
        (draw(4).float(), draw(2, 3, 4), draw(3, 4), "the same precision"),
        (draw(4).half(), draw(2, 3, 4).half(), draw(3, 4).half(), "no loop for torch.float16"),
        (draw(4), draw(2, 3, 4).to("meta"), draw(3, 4), "for CPUs"),
    ],
)
def test_other_tensors_are_refused(a: Tensor, b: Tensor, h0: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        diagonal_scan(a, b, h0)
