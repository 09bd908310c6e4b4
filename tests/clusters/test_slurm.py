"""Runs on a real Slurm, and what may go wrong there: `make test-slurm`."""

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.clusters.driving import LONG, REPRODUCE, SHORT, TUNE, Driver, attempts, is_done
from tests.clusters.slurm_cluster import SlurmCluster, lacking

WHY_NOT = (
    "make test-slurm starts a Slurm"
    if not os.environ.get("ORTHOBENCH_CLUSTERS")
    else lacking() or (None if find_spec("submitit") else "pip install 'orthobench[slurm]'")
)
pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))
STEPS = 8000  # so many that a run is at work for as long as a busy machine takes to answer


def begun(folder: Path, **settings: int) -> SlurmCluster:
    cluster = SlurmCluster(folder, **settings)
    cluster.start()
    return cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[SlurmCluster]:
    with tempfile.TemporaryDirectory(prefix="slurm-", dir="/tmp") as name:
        cluster = begun(Path(name) / "c")
        yield cluster
        cluster.stop()


def drive(cluster: SlurmCluster, home: Path, *words: str, time: int = 60) -> Driver:
    settings = (f"hydra.launcher.time={time}", "hydra.launcher.signal_s=30")
    return begin(cluster, home, "-m", "hydra/launcher=slurm", *settings, *words)


def begin(cluster: SlurmCluster, home: Path, *words: str) -> Driver:
    where = ("hydra.launcher.poll_s=0.5", "hydra.launcher.partition=low")
    return Driver(home, *words, *where, SLURM_CONF=cluster.environment["SLURM_CONF"])


def long(*words: str, steps: int = STEPS) -> tuple[str, ...]:
    return (*LONG, f"trainer.max_steps={steps}", *words)


def submissions(driver: Driver) -> int:
    return len(list((driver.home / "runs" / ".slurm").glob("*/array.json")))


def queue(cluster: SlurmCluster) -> str:
    return cluster.ask("squeue", "-h", "-r") or ""


def test_a_sweep_is_one_array_and_each_log_names_its_job(cluster: SlurmCluster, tmp_path: Path) -> None:
    driver = drive(cluster, tmp_path, *SHORT, "seed=1,2,3,4")
    assert driver.wait() == 0, driver.text()
    assert is_done(driver.records(), 4, 2)
    assert submissions(driver) == 1
    assert {log.split()[3].partition("_")[2] for log in driver.logs()} == {"0", "1", "2", "3"}
    found = {path.stem for path in (tmp_path / "runs" / ".launched").iterdir()}
    assert found == {record["run_id"] for record in driver.records()}
    assert driver.text().count("Slurm job") == 1


@pytest.mark.parametrize(("words", "count"), [(TUNE, 4), (REPRODUCE, 2)], ids=["tune", "reproduce"])
def test_other_verbs_send_their_runs_to_the_queue(
    words: tuple[str, ...], count: int, cluster: SlurmCluster, tmp_path: Path
) -> None:
    driver = begin(cluster, tmp_path, *words, "--launcher", "slurm")
    assert driver.wait() == 0, driver.text()
    assert is_done(driver.records(), count, 2)
    assert [attempts(log) for log in driver.logs()] == [1] * count


def test_a_killed_driver_is_started_again_without_a_second_submission(cluster: SlurmCluster, tmp_path: Path) -> None:
    words = long("seed=1,2,3,4")
    driver = drive(cluster, tmp_path, *words)
    driver.until(driver.saved)  # two run, two are queued
    driver.kill()
    assert driver.wait() == -signal.SIGKILL
    assert len(queue(cluster).splitlines()) == 4
    again = drive(cluster, tmp_path, *words)
    assert again.wait() == 0, again.text()
    assert "4 runs are in Slurm's queue already" in again.text()
    assert submissions(again) == 1
    assert [attempts(log) for log in again.logs()] == [1] * 4
    assert is_done(again.records(), 4, STEPS)


def test_a_run_that_makes_room_goes_on_afterwards(cluster: SlurmCluster, tmp_path: Path) -> None:
    driver = drive(cluster, tmp_path, *long())
    driver.until(driver.saved)
    urgent = ["srun", "--partition=high", "--cpus-per-task=2", "sleep", "3"]
    subprocess.run(urgent, env=cluster.environment, check=True, timeout=120)
    assert driver.wait() == 0, driver.text()
    assert is_done(driver.records(), 1, STEPS)
    assert "resuming at step" in driver.logs()[0]
    assert "started again" in driver.logs()[0]
    assert submissions(driver) == 1


def test_what_a_person_cancels_is_stopped_and_not_submitted_again(cluster: SlurmCluster, tmp_path: Path) -> None:
    driver = drive(cluster, tmp_path, *long("seed=1,2,3", steps=10**6))
    driver.until(lambda: driver.saved(2))  # two run, one is queued
    assert cluster.ask("scancel", "--user=root") is not None
    assert driver.wait() == 75, driver.text()
    assert queue(cluster) == ""
    assert [one["status"] for one in driver.records()] == ["stopped"] * 2
    assert submissions(driver) == 1


def test_a_driver_that_is_asked_to_stop_saves_all_runs(cluster: SlurmCluster, tmp_path: Path) -> None:
    driver = drive(cluster, tmp_path, *long("seed=1,2,3", steps=10**6))
    driver.until(lambda: driver.saved(2))
    driver.kill(signal.SIGTERM)
    assert driver.wait() == 75, driver.text()
    assert {one["status"] for one in driver.records()} == {"stopped"}
    assert queue(cluster) == ""


def test_a_node_that_dies_loses_no_run(cluster: SlurmCluster, tmp_path: Path) -> None:
    driver = drive(cluster, tmp_path, *long("seed=1,2"))
    driver.until(lambda: driver.saved(2))
    cluster.kill_node()
    time.sleep(2)
    cluster.start_node()
    assert driver.wait() == 0, driver.text()
    assert is_done(driver.records(), 2, STEPS)
    assert any("resuming at step" in log for log in driver.logs())


def test_a_controller_that_dies_loses_no_run(cluster: SlurmCluster, tmp_path: Path) -> None:
    driver = drive(cluster, tmp_path, *long("seed=1,2,3"))
    driver.until(driver.saved)
    cluster.kill("slurmctld")
    time.sleep(5)  # the driver asks in vain
    cluster.start_controller()
    assert driver.wait() == 0, driver.text()
    assert is_done(driver.records(), 3, STEPS)
    assert submissions(driver) == 1
    assert [attempts(log) for log in driver.logs()] == [1] * 3


def test_a_wrong_setting_is_refused_in_a_sentence(cluster: SlurmCluster, tmp_path: Path) -> None:
    driver = drive(cluster, tmp_path, *SHORT, "hydra.launcher.partition=nowhere", "seed=1,2")
    assert driver.wait() == 2
    assert "sbatch refuses" in driver.text()
    assert "Traceback" not in driver.text()


def test_a_time_limit_stops_a_run_and_puts_it_back_into_the_queue(cluster: SlurmCluster, tmp_path: Path) -> None:
    driver = drive(cluster, tmp_path, *long(steps=10**6), time=2)
    driver.until(lambda: bool(driver.logs()) and "resuming at step" in driver.logs()[0], 400)
    assert "stopped by SIGUSR2 at step" in driver.logs()[0]
    assert "started again 1 times" in driver.logs()[0]
    assert submissions(driver) == 1
    driver.kill(signal.SIGTERM)
    assert driver.wait() == 75
    assert [one["status"] for one in driver.records()] == ["stopped"]


def test_a_full_queue_is_waited_for(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="slurm-", dir="/tmp") as name:
        small = begun(Path(name) / "c", most=5, age=3)
        try:
            driver = drive(small, tmp_path, *SHORT, "seed=1,2,3,4,5,6,7,8")
            assert driver.wait() == 0, driver.text()
        finally:
            small.stop()
    assert "Slurm takes no array of 8 now" in driver.text()
    assert is_done(driver.records(), 8, 2)
