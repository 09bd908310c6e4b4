"""One run, one owner: of many processes with the same command one trains; a killed owner's claim is taken over."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import orthobench
from orthobench.recording.digest import write_sealed
from tests.faults import runs
from tests.faults.conftest import REPO, Count, Server

SLOW = ("model=scornn", "task=copying", *runs.SIZES, "trainer.max_steps=1500", "trainer.val_check_interval=50")


def contend(server: Server, home: Path, contenders: int) -> None:
    at = time.time() + 0.5 + contenders / 40
    children = [server.spawn(home / f"{i}", *SLOW, f"runs_root={home / 'runs'}", at=at) for i in range(contenders)]
    codes = [child.wait(300) for child in children]
    outputs = [child.output.read_text() for child in children]
    elsewhere = ["is running elsewhere: process" in text for text in outputs]
    assert codes == [75 if other else 0 for other in elsewhere], outputs
    trained = [text for text in outputs if "after 1,500 steps" in text]
    assert len(trained) == 1
    others = [text for text in outputs if "is running elsewhere: process" in text or "is done already" in text]
    assert len(others) == contenders - 1


@pytest.mark.slow
def test_four_at_once(server: Server, tmp_path: Path) -> None:
    contend(server, tmp_path, 4)


@pytest.mark.faults
@pytest.mark.parametrize("race", range(3))
def test_many_at_once(server: Server, tmp_path: Path, race: int, count: Count) -> None:
    contend(server, tmp_path, 32)
    count("races of 32 processes with one winner")


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 2])
def test_a_killed_owner_gives_up_its_claim_at_once(server: Server, tmp_path: Path, workers: int) -> None:
    """Its data workers live on for seconds; they must not hold the claim."""
    words = (*SLOW, f"task.num_workers={workers}")
    child = server.spawn(tmp_path, *words)
    end = time.monotonic() + 60
    while not list((tmp_path / "runs").glob("*/checkpoints/last.ckpt")) and time.monotonic() < end:
        time.sleep(0.01)
    child.kill()
    assert child.wait() == -9
    assert server.run(tmp_path, *words, stop_at_step=1499) == 75, (tmp_path / "output.txt").read_text()
    assert "resuming at step" in (tmp_path / "output.txt").read_text()


WRITER = """
import sys
from pathlib import Path
from orthobench.recording.digest import write_sealed
root, writer = Path(sys.argv[1]), int(sys.argv[2])
for number in range(10**6 if writer % 2 else 200):
    folder = root / f"{writer}-{number % 200}"
    folder.mkdir(parents=True, exist_ok=True)
    told = {"run_id": folder.name, "status": "done", "model": "rnn", "task": "adding", "seed": 1, "steps": number}
    write_sealed(folder / "record.json", {"schema": 2, **told, "text": "x" * 3000})
"""


@pytest.mark.faults
def test_writers_of_results_lose_and_tear_nothing(tmp_path: Path, count: Count) -> None:
    """Half of the writers go on for ever and are killed; readers look on all the while."""
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path), str(i)], env={**os.environ, "PYTHONPATH": str(REPO)}
        )
        for i in range(8)
    ]
    try:
        while any(writer.poll() is None for writer in writers[::2]):
            for path in tmp_path.glob("*/record.json"):
                assert orthobench.recording.digest.read_sealed(path) is not None  # type: ignore[attr-defined]
    finally:
        for writer in writers[1::2]:
            writer.send_signal(signal.SIGKILL)
            writer.wait()
    found = orthobench.records(tmp_path)
    kept = [name for name in found["run_id"] if int(name.split("-")[0]) % 2 == 0]
    assert len(kept) == 4 * 200
    assert write_sealed is not None
    assert len(found) == len(list(tmp_path.glob("*/record.json")))
    count("results written by 8 writers, 4 of them killed, none lost or torn", len(found))


def test_two_runs_with_the_same_short_name_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pair found by chance among ten thousand jobs; the first ten digits are set equal here."""
    from orthobench.config.settings import Settings
    from orthobench.errors import ConfigError

    words = (*runs.SHORT, f"runs_root={tmp_path / 'runs'}")
    orthobench.build(*words, "seed=3").run()
    real = Settings.digest.func  # type: ignore[attr-defined]
    first = orthobench.build(*words, "seed=3").settings.digest
    monkeypatch.setattr(Settings, "digest", property(lambda self: first[:10] + real(self)[10:]))
    with pytest.raises(ConfigError, match="holds another run of the same short name"):
        orthobench.build(*words, "seed=6").run()
