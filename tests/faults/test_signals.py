"""A signal, whatever the run is doing: it saves and exits 75, or has just ended; a second one ends it at once."""

import signal
from pathlib import Path
from typing import Any

import pytest

from tests.faults import runs
from tests.faults.conftest import Count, Server
from tests.faults.faulty import PHASES

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2)


@pytest.fixture(scope="module")
def unbroken(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the run ends with when nothing happens."""
    home = tmp_path_factory.mktemp("unbroken")
    assert server.run(home, *runs.SHORT) == 0
    return runs.outcome(home)


def arrives(server: Server, home: Path, phase: str, numbers: list[int], unbroken: Any) -> int:
    code = server.run(home, *runs.SHORT, signal_in=phase, signals=numbers)
    output = (home / "output.txt").read_text()
    assert "Traceback" not in output, output
    if len(numbers) == 1 and code == 75:
        assert f"stopped by {signal.Signals(numbers[0]).name}" in output
    assert server.run(home, *runs.SHORT) == 0, (home / "output.txt").read_text()
    assert runs.outcome(home) == unbroken
    return code


@pytest.mark.slow
@pytest.mark.parametrize("phase", PHASES)
def test_sigterm_in_every_phase(server: Server, tmp_path: Path, phase: str, unbroken: Any, count: Count) -> None:
    code = arrives(server, tmp_path, phase, [signal.SIGTERM], unbroken)
    assert code == (0 if phase == "record" else 75)
    count("signals in a phase answered")


@pytest.mark.faults
@pytest.mark.parametrize("number", SIGNALS[1:])
@pytest.mark.parametrize("phase", PHASES)
def test_every_signal_in_every_phase(
    server: Server, tmp_path: Path, phase: str, number: int, unbroken: Any, count: Count
) -> None:
    code = arrives(server, tmp_path, phase, [number], unbroken)
    assert code == (0 if phase == "record" else 75)
    count("signals in a phase answered")


@pytest.mark.faults
@pytest.mark.parametrize("numbers", [(15, 15), (2, 2), (10, 15), (12, 2)])
@pytest.mark.parametrize("phase", PHASES)
def test_a_second_signal_ends_it_at_once(
    server: Server, tmp_path: Path, phase: str, numbers: tuple[int, int], unbroken: Any, count: Count
) -> None:
    assert arrives(server, tmp_path, phase, list(numbers), unbroken) == 75
    assert "stopped by" not in (tmp_path / "output.txt").read_text()
    count("signals in a phase answered", 2)
