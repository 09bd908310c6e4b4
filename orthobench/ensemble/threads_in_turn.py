"""Threads that run one at a time and wait for each other where they request the same work, which is then shared."""

import threading
from collections.abc import Callable, Hashable
from typing import Any

import torch

Serve = Callable[[list[Any]], list[Any]]


class Seat:
    """The state of one thread: its turn, the turn that comes `after` it, its request, and the answer."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self.work, self.turn, self.globals = work, threading.Semaphore(0), _globals()
        self.after, self.over = self.turn, False
        self.result: Any = None
        self.error: BaseException | None = None
        self.key: Hashable = None
        self.request: Any = None
        self.answer: Any = None
        self.led: list[Seat] = []


class Turns:
    """Runs functions in threads, one at a time: each runs until it calls `meet` or ends."""

    def __init__(self) -> None:
        self._paused, self._mine = threading.Semaphore(0), threading.local()

    def run(self, works: list[Callable[[], Any]]) -> list[Any]:
        """Run all functions to their end and return their results; to be called once, from another thread.

        Whenever all of them wait, the requests with the same key are served together, in the order of `works`.

        Raises:
            BaseException: the exception of the first function that failed, raised when all have ended.
        """
        seats, before = [Seat(work) for work in works], _globals()
        for seat in seats:
            threading.Thread(target=self._sit, args=(seat,), daemon=True).start()
        going = seats
        while going:
            for seat, following in zip(going, [*going[1:], None], strict=True):
                seat.after = self._paused if following is None else following.turn
            going[0].turn.release()
            self._paused.acquire()
            going = [seat for seat in going if not seat.over]
            groups: dict[Hashable, list[Seat]] = {}
            for seat in going:
                groups.setdefault(seat.key, []).append(seat)
            for group in groups.values():
                group[0].led = group
        _set_globals(before)
        for seat in seats:
            if seat.error is not None:
                raise seat.error
        return [seat.result for seat in seats]

    def meet(self, key: Hashable, request: Any, serve: Serve) -> Any:
        """Wait until every thread waits or has ended; returns this request's part of `serve(requests)`.

        Of the threads with the same key the first calls `serve`, so that its own autograd and autocast modes apply.

        Raises:
            Exception: the exception that `serve` raised, in each of the threads that it served.
        """
        seat: Seat = self._mine.seat
        seat.key, seat.request, seat.globals = key, request, _globals()
        seat.after.release()
        seat.turn.acquire()
        _set_globals(seat.globals)
        group, seat.led = seat.led, []
        if group:
            try:
                for other, answer in zip(group, serve([other.request for other in group]), strict=True):
                    other.answer = answer
            except Exception as error:
                for other in group:
                    other.error = error
        if seat.error is not None:
            error, seat.error = seat.error, None
            raise error
        answer, seat.answer, seat.request = seat.answer, None, None
        return answer

    def _sit(self, seat: Seat) -> None:
        seat.turn.acquire()
        _set_globals(seat.globals)
        self._mine.seat = seat
        try:
            seat.result = seat.work()
        except BaseException as error:
            seat.error = error
        seat.over = True
        seat.after.release()


def _globals() -> tuple[torch.Tensor, torch.dtype]:
    """Torch's global state that every thread here has its own copy of: the generator's state and the default dtype."""
    return torch.get_rng_state(), torch.get_default_dtype()


def _set_globals(values: tuple[torch.Tensor, torch.dtype]) -> None:
    torch.set_rng_state(values[0])
    torch.set_default_dtype(values[1])
