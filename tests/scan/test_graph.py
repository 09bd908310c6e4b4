"""What engine=graph does around its graphs, on a CPU: a stand-in does the work again. test_gpu has the rest."""

import contextlib
import gc
import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from orthobench.cells.complex_elman import ComplexElman
from orthobench.cells.elman import Elman
from orthobench.cells.goru import GORU
from orthobench.cells.gru import GRU
from orthobench.cells.lstm import LSTM
from orthobench.cells.scalar_gated import ScalarGated
from orthobench.scan import reference
from orthobench.scan.graph import capture
from orthobench.scan.graph import engine as graph
from tests.making import draw, random_cell, tokens
from tests.scan.native.cases import assert_equal, results
from tests.scan.test_engines import Halved, Plain, every_family, tame

Captured = capture.Graph


class Again:
    """A graph's buffers are what the work returned first; a replay does the work again and puts its results there."""

    captures = 0
    replays = 0

    @staticmethod
    def warm_up(work: Callable[[], object]) -> None:
        work()

    def capture(self, work: Callable[[], Any], after: Any = None) -> Any:
        Again.captures += 1
        self.work, self.buffers = work, work()
        return self.buffers

    def replay(self) -> None:
        Again.replays += 1
        for buffer, value in zip(self.buffers, self.work(), strict=True):
            if buffer is not None:
                buffer.copy_(value)


@pytest.fixture(autouse=True)
def _stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture, "Graph", Again)
    monkeypatch.setattr(capture.Shelf, "closed", False)
    monkeypatch.setattr(Again, "captures", 0)
    monkeypatch.setattr(Again, "replays", 0)


@pytest.mark.parametrize("activation", ["modrelu", "abs"])
@every_family
def test_equals_the_loop(cls: type, options: dict[str, Any], activation: Any) -> None:
    cell, x, state = tame(cls, 5, activation=activation, **options), draw(3, 4, 3), (draw(3, 5, seed=1),)
    results(graph.run, cell, x, state)
    assert Again.captures == 0
    for scale in (1, 2):
        assert_equal(cell, scale * x, state, graph.run)
    assert (Again.captures, Again.replays) == (2, 4)


@pytest.mark.parametrize("cls", [LSTM, GORU, Halved, Plain])
def test_any_cell(cls: type) -> None:
    cell, x = random_cell(cls), draw(3, 4, 4 if cls is Plain else 3)
    state = tuple(s.detach().clone() for s in cell.initial_state(3))
    results(graph.run, cell, x, state)
    assert_equal(cell, x, state, graph.run)
    assert Again.captures == 2


def test_a_complex_cell() -> None:
    cell, x, found = random_cell(ComplexElman), draw(3, 4, 3), []
    graph.run(cell, x, cell.initial_state(3))
    for engine in (graph, reference):
        cell.zero_grad()
        h_BTN, _ = engine.run(cell, x, cell.initial_state(3))
        torch.view_as_real(h_BTN).square().sum().backward()
        found.append([p.grad.clone() for p in cell.parameters() if p.grad is not None])
    torch.testing.assert_close(*found, rtol=0, atol=1e-10)
    assert Again.captures == 2


def test_parameters_and_matrices_are_read_anew() -> None:
    cell, x, state = tame(Elman, 5, activation="modrelu"), tokens(3, 4), (draw(3, 5, seed=1),)
    for _ in range(3):
        assert_equal(cell, x, state, graph.run)
        with torch.no_grad():
            for p in cell.parameters():
                p.mul_(0.9)
    assert Again.captures == 2


def test_two_forwards_before_a_reverse_do_not_share_buffers() -> None:
    cell, inputs = tame(GRU, 5), [draw(3, 4, 3, seed=s) for s in (1, 2, 3)]
    expected = []
    for x in inputs:
        cell.zero_grad()
        reference.run(cell, x, cell.initial_state(3))[0].square().sum().backward()
        expected.append(cell.U.grad.clone())
    outputs = [graph.run(cell, x, cell.initial_state(3))[0] for x in (inputs[0], *inputs)][1:]
    for i in (1, 0, 2):
        cell.zero_grad()
        outputs[i].square().sum().backward()
        torch.testing.assert_close(cell.U.grad, expected[i], rtol=0, atol=1e-12)
    assert Again.captures == 6
    graph.run(cell, inputs[0], cell.initial_state(3))
    assert Again.captures == 6


def test_a_forward_that_is_forgotten_gives_its_buffers_back() -> None:
    cell, x = tame(Elman, 5), draw(3, 4, 3)
    for _ in range(4):
        h, _ = graph.run(cell, x, cell.initial_state(3))
        del h, _
    assert Again.captures == 2


def test_without_gradients_no_reverse_is_captured() -> None:
    cell, x = tame(Elman, 5), draw(3, 4, 3)
    expected, _ = reference.run(cell, x, cell.initial_state(3))
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            for _ in range(3):
                h, _ = graph.run(cell, x, cell.initial_state(3))
                torch.testing.assert_close(h, expected.detach(), rtol=0, atol=1e-12)
    assert Again.captures == 2


def test_a_second_reverse_is_refused() -> None:
    cell, x = tame(Elman, 5), draw(3, 4, 3)
    graph.run(cell, x, cell.initial_state(3))
    h, _ = graph.run(cell, x, cell.initial_state(3))
    h.sum().backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="one backward pass per forward pass"):
        h.sum().backward()


@pytest.mark.parametrize(
    ("lengths", "captured", "kept"),
    [
        ((3, 3, 4, 4, 3, 5, 5, 3, 4), 3, [3, 4]),
        ((3, 4, 4, 4, 5, 3, 4, 4, 4, 6, 3, 4, 4, 4, 7), 1, None),  # one that comes once in a while takes no place
        ((3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9), 4, None),  # such as go on changing are captured no more
    ],
)
def test_the_shapes_used_last_are_kept(
    monkeypatch: pytest.MonkeyPatch, lengths: tuple[int, ...], captured: int, kept: list[int] | None
) -> None:
    monkeypatch.setattr(graph, "SHAPES", 2)
    cell = tame(Elman, 5)
    for T in lengths:
        graph.run(cell, draw(2, T, 3), cell.initial_state(2))
    assert Again.captures == 2 * captured
    assert kept in (None, [key[0][0][0][0] for key in graph.SHELVES[cell]._seen])


def test_programs_go_with_their_cell() -> None:
    cell = tame(Elman, 5)
    known = weakref.ref(cell)
    graph.run(cell, draw(2, 3, 3), cell.initial_state(2))
    before = len(graph.SHELVES)
    del cell
    gc.collect()
    assert known() is None
    assert len(graph.SHELVES) < before


def test_what_cannot_be_captured_runs_step_by_step_and_says_so_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: Any) -> Tensor:
        raise RuntimeError("operation not permitted when stream is capturing\nand more")

    monkeypatch.setattr(Again, "capture", refuse)
    capture._warn.cache_clear()
    cell, x, state = tame(ScalarGated, 5), draw(3, 4, 3), (draw(3, 5, seed=1),)
    for _ in range(3):
        assert_equal(cell, x, state, graph.run)
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "so it runs step by step instead: operation not permitted when stream is capturing." in said


class Streams:
    """What of torch.cuda a capture uses, without a GPU; it notes on which stream work is done."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made, self.current = [], object()
        self.default = self.current
        self.drawn = 0
        functions = {
            "get_rng_state": lambda device: self.drawn,
            "set_rng_state": lambda state, device: setattr(self, "drawn", state),
            "CUDAGraph": object,
            "graph_pool_handle": lambda: (0, 1),
            "Stream": self.stream,
            "stream": self.on,
            "graph": lambda graph, pool, stream, capture_error_mode: self.on(stream),
            "current_stream": lambda: SimpleNamespace(wait_stream=lambda other: None, own=self.current),
            "current_device": lambda: 0,
            "get_sync_debug_mode": lambda: 0,
            "set_sync_debug_mode": lambda mode: None,
        }
        for name, function in functions.items():
            monkeypatch.setattr(capture.torch.cuda, name, function)
        monkeypatch.setattr(capture, "_forget_workspaces", lambda: None)
        capture._stream.cache_clear()

    def stream(self, device: int) -> Any:
        self.made.append(SimpleNamespace(wait_stream=lambda other: None))
        return self.made[-1]

    @contextlib.contextmanager
    def on(self, stream: Any) -> Any:
        before, self.current = self.current, getattr(stream, "own", stream)
        yield
        self.current = before


def test_work_is_warmed_up_and_captured_on_one_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver that is captured on another stream than the one on which it was warmed up makes the capture invalid."""
    streams, seen = Streams(monkeypatch), []
    for _ in range(2):
        Captured.warm_up(lambda: seen.append(streams.current))
        Captured().capture(lambda: seen.append(streams.current))
    capture._stream.cache_clear()
    assert len(streams.made) == 1
    assert all(place is streams.made[0] for place in seen)
    assert streams.current is streams.default


def test_a_warm_up_leaves_the_generator_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """A resumed run has another one in its second step, and would draw other masks from there on."""
    streams, seen = Streams(monkeypatch), []

    def draws() -> None:
        seen.append(streams.drawn)
        streams.drawn += 4

    Captured.warm_up(draws)
    Captured().capture(draws)
    capture._stream.cache_clear()
    assert seen == [0, 0]


def test_mixed_precision_keeps_the_loop_in_float32() -> None:
    cell, x = tame(LSTM, 5).float(), draw(3, 4, 3).float()
    exact, _ = graph.run(cell, x, cell.initial_state(3))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        h, _ = graph.run(cell, x, cell.initial_state(3))
    assert Again.captures == 2
    assert h.dtype == torch.float32
    torch.testing.assert_close(h, exact, rtol=0, atol=0.03)


def test_is_for_cuda_devices() -> None:
    assert graph.why_not(random_cell(Elman)) == "it is for CUDA devices"
