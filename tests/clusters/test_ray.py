"""Runs on a real Ray cluster of three raylets, one of which is killed: `make test-ray`."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clusters.driving import COMMON, LONG, REPRODUCE, SHORT, TUNE, Driver, attempts, is_done
from tests.clusters.ray_cluster import RayCluster, lacking

WHY_NOT = "make test-ray starts a Ray cluster" if not os.environ.get("ORTHOBENCH_CLUSTERS") else lacking()
pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))
STEPS = 1200
MANY = int(os.environ.get("ORTHOBENCH_MANY", "40"))


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    with tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp", ignore_cleanup_errors=True) as name:
        cluster = RayCluster(Path(name))
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()


def drive(cluster: RayCluster, home: Path, *words: str) -> Driver:
    return begin(cluster, home, "-m", "hydra/launcher=ray", *words)


def begin(cluster: RayCluster, home: Path, *words: str) -> Driver:
    return Driver(home, *words, f"hydra.launcher.address={cluster.address}", RAY_DISABLE_IMPORT_WARNING="1")


def long(*words: str, steps: int = STEPS) -> tuple[str, ...]:
    return (*LONG, f"trainer.max_steps={steps}", *words)


STORE = """
import json, ray
ray.init(address=%r, log_to_driver=False)
from ray._private.internal_api import get_memory_info_reply, get_state_from_address
state = get_state_from_address(%r)
store = get_memory_info_reply(state).store_stats
print(json.dumps([store.object_store_bytes_used, store.num_local_objects]))
"""


def test_many_runs_of_one_step_leave_nothing_in_the_object_store(cluster: RayCluster, tmp_path: Path) -> None:
    words = ("model=rnn", "task=copying", "T=4", "model.hidden_size=4", "trainer.max_steps=1", *COMMON)
    driver = drive(cluster, tmp_path, *words, f"seed=range(1,{MANY + 1})")
    assert driver.wait() == 0, driver.text()
    assert is_done(driver.records(), MANY, 1)
    assert [attempts(log) for log in driver.logs()] == [1] * MANY
    ask = [sys.executable, "-c", STORE % (cluster.address, cluster.address)]
    done = subprocess.run(ask, capture_output=True, text=True, env=cluster.environment, timeout=120)
    assert done.stdout.strip().splitlines()[-1:] == ["[0, 0]"], done.stdout + done.stderr


@pytest.mark.parametrize(("words", "count"), [(TUNE, 4), (REPRODUCE, 2)], ids=["tune", "reproduce"])
def test_other_verbs_send_their_runs_to_the_cluster(
    words: tuple[str, ...], count: int, cluster: RayCluster, tmp_path: Path
) -> None:
    driver = begin(cluster, tmp_path, *words, "--launcher", "ray")
    assert driver.wait() == 0, driver.text()
    assert is_done(driver.records(), count, 2)
    assert [attempts(log) for log in driver.logs()] == [1] * count


def test_a_node_that_is_killed_loses_no_run(cluster: RayCluster, tmp_path: Path) -> None:
    driver = drive(cluster, tmp_path, *long("seed=1,2,3"))
    driver.until(lambda: len(list((tmp_path / "runs").glob("*/checkpoints/last.ckpt"))) > 1)
    cluster.kill("worker1")
    cluster.start_worker("worker1")
    assert driver.wait() == 0, driver.text()
    assert is_done(driver.records(), 3, STEPS)
    assert any("resuming at step" in log for log in driver.logs())


def test_the_child_of_a_killed_raylet_stops_and_goes_on_elsewhere(cluster: RayCluster, tmp_path: Path) -> None:
    """The raylet alone dies: its worker follows it, and the child is asked to stop, so that the claim is free."""
    driver = drive(cluster, tmp_path, *long("seed=1,2"))
    driver.until(lambda: len(list((tmp_path / "runs").glob("*/checkpoints/last.ckpt"))) > 1)
    cluster.kill_raylet("worker2")
    assert driver.wait() == 0, driver.text()
    assert is_done(driver.records(), 2, STEPS)
    assert sorted(attempts(log) for log in driver.logs()) == [1, 2]
    cluster.kill("worker2")
    cluster.start_worker("worker2")


def test_a_driver_that_is_asked_to_stop_saves_all_runs(cluster: RayCluster, tmp_path: Path) -> None:
    driver = drive(cluster, tmp_path, *long("seed=1,2,3", steps=10**6))
    driver.until(lambda: len(list((tmp_path / "runs").glob("*/checkpoints/last.ckpt"))) > 1)
    driver.kill(signal.SIGTERM)
    assert driver.wait() == 75, driver.text()
    assert [one["status"] for one in driver.records()] == ["stopped"] * 2


def test_the_runs_of_a_killed_driver_stop_and_go_on_with_the_next(cluster: RayCluster, tmp_path: Path) -> None:
    words = long("seed=1,2")
    driver = drive(cluster, tmp_path, *words)
    driver.until(lambda: len(list((tmp_path / "runs").glob("*/checkpoints/last.ckpt"))) > 1)
    driver.kill()
    assert driver.wait() == -signal.SIGKILL
    again = drive(cluster, tmp_path, *words)
    assert again.wait() == 0, again.text()
    assert is_done(again.records(), 2, STEPS)
    assert all("resuming at step" in log for log in again.logs())


def test_what_a_node_lacks_is_waited_for_in_the_queue(cluster: RayCluster, tmp_path: Path) -> None:
    driver = drive(cluster, tmp_path, *SHORT, "hydra.launcher.gpus=1")
    driver.until(lambda: "1 runs" in driver.text())
    driver.kill(signal.SIGTERM)
    assert driver.wait() == 75, driver.text()
    assert driver.records() == []
