"""Odd surroundings: nothing is written but under runs_root, and what cannot work says why."""

import os
import socket
from pathlib import Path
from typing import Any

import pytest

from tests.faults import runs
from tests.faults.conftest import Count, Server
from tests.faults.server import NO_MOUNT

ODD = "/实验 é=1 'q' \"w\""  # a $ would name a variable
SECRETS = {
    "WANDB_API_KEY": "canary-env-" + "a" * 29,
    "GITHUB_TOKEN": "canary-token-b",
    "AWS_SECRET_ACCESS_KEY": "canary-aws-c",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "order",
    [
        {"env": {"HOME": None, "USER": None, "LOGNAME": None}},
        {"env": {"HOME": "/nonexistent"}},
        {"env": {"TMPDIR": "/nonexistent"}},
        {"closed": [1]},
        {"closed": [1, 2]},
        {"cwd": "/"},
        {"env": {"LC_ALL": "C", "LANG": None}},
        {"env": {"COLUMNS": "1"}},
    ],
    ids=["no HOME", "missing HOME", "missing TMPDIR", "closed stdout", "both closed", "cwd /", "C locale", "narrow"],
)  # fmt: skip
def test_it_runs_all_the_same(server: Server, tmp_path: Path, order: dict[str, Any], count: Count) -> None:
    env = {"ORTHOBENCH_RUNS": str(tmp_path / "runs"), **order.get("env", {})}
    before = set(Path(order.get("cwd", tmp_path)).iterdir())
    assert server.run(tmp_path, *runs.SHORT, **{**order, "env": env}) == 0, (tmp_path / "output.txt").read_text()
    assert runs.record(tmp_path)["status"] == "done"
    assert set(Path(order.get("cwd", tmp_path)).iterdir()) - before <= {tmp_path / "runs", tmp_path / "output.txt"}
    count("odd places")


@pytest.mark.parametrize("how", ["environment", "command line"])
def test_odd_characters_in_every_path(server: Server, tmp_path: Path, how: str, count: Count) -> None:
    home = Path(str(tmp_path) + ODD)
    words = ["runs_root=" + "'" + str(home / "runs").replace("'", "\\'") + "'"] if how == "command line" else []
    assert server.run(home, *runs.SHORT, *words) == 0, (home / "output.txt").read_text()
    assert runs.record(home)["status"] == "done"
    count("odd places")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", ["file", "dangling link", "file above", "read-only"])
def test_a_root_that_cannot_be_used_is_code_6(server: Server, tmp_path: Path, kind: str, count: Count) -> None:
    root, order = tmp_path / "root", {}
    if kind == "file":
        root.write_text("")
    elif kind == "dangling link":
        root.symlink_to(tmp_path / "nowhere")
    elif kind == "file above":
        root.write_text("")
        root = root / "below"
    else:
        root.mkdir(mode=0o555)
        order = {"no_override": True}
    assert server.run(tmp_path, *runs.SHORT, f"runs_root={root}", **order) == 6
    output = (tmp_path / "output.txt").read_text()
    assert str(root) in output
    assert "Traceback" not in output
    count("odd places")


def test_a_read_only_working_folder(server: Server, tmp_path: Path, count: Count) -> None:
    where = tmp_path / "locked"
    where.mkdir(mode=0o555)
    assert server.run(tmp_path, *runs.SHORT, cwd=str(where), no_override=True) == 0, (
        tmp_path / "output.txt"
    ).read_text()
    assert not list(where.iterdir())
    count("odd places")


@pytest.mark.slow
def test_a_full_tmpdir(server: Server, tmp_path: Path, count: Count) -> None:
    """The compiler cannot work either, with a cache that is empty."""
    (tmp_path / "tmp").mkdir()
    env = {"TMPDIR": str(tmp_path / "tmp"), "XDG_CACHE_HOME": str(tmp_path / "tmp"), "HOME": str(tmp_path / "tmp")}
    code = server.run(tmp_path, *runs.SHORT, env=env, full_tmpdir=True)
    if code == NO_MOUNT:
        pytest.skip("a full disk can be mounted by root only")
    assert code == 0, (tmp_path / "output.txt").read_text()
    assert runs.record(tmp_path)["status"] == "done"
    count("odd places")


@pytest.mark.parametrize("seconds", [-86_400.0, 315_360_000.0], ids=["back a day", "on ten years"])
def test_a_clock_that_jumps(server: Server, tmp_path: Path, seconds: float, count: Count) -> None:
    assert server.run(tmp_path, *runs.SHORT, clock=seconds) == 0
    time = runs.record(tmp_path)["time"]
    assert 0 <= time["train_s"] <= time["wall_s"] < 3600
    count("odd places")


def test_inside_a_slurm_job(server: Server, tmp_path: Path, count: Count) -> None:
    """Lightning knows Slurm, too: and must not wait for other tasks, take the signals or leave logs to task 0."""
    env = {"SLURM_JOB_ID": "7", "SLURM_JOB_NAME": "night", "SLURM_NTASKS": "4", "SLURM_PROCID": "3", "LOCAL_RANK": "3"}
    words = (*runs.SHORT, "logger=tensorboard")
    assert server.run(tmp_path, *words, env=env, signal_in="train", signals=[10]) == 75
    assert server.run(tmp_path, *words, env=env) == 0, (tmp_path / "output.txt").read_text()
    assert runs.record(tmp_path)["status"] == "done"
    assert list(runs.folder(tmp_path).rglob("events.out.tfevents*"))
    count("odd places")


def test_a_run_of_two_versions_names_both(server: Server, tmp_path: Path) -> None:
    assert server.run(tmp_path, *runs.SHORT, stop_at_step=4, commit="a" * 40) == 75
    assert server.run(tmp_path, *runs.SHORT, commit="b" * 40) == 0
    assert runs.record(tmp_path)["code"]["trained_with"] == ["a" * 40, "b" * 40]
    assert f"begun with the code of {'a' * 40}" in (tmp_path / "output.txt").read_text()


def test_a_clock_set_back(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: Count) -> None:
    assert server.run(tmp_path, *runs.SHORT, stop_at_step=4) == 75
    for path in (tmp_path / "runs").rglob("*"):  # written in ten years' time, as it seems now
        os.utime(path, (2_100_000_000, 2_100_000_000))
    assert server.run(tmp_path, *runs.SHORT) == 0
    time = runs.record(tmp_path)["time"]
    assert time["wall_s"] >= 0
    assert time["train_s"] >= 0
    count("odd places")


@pytest.mark.slow
def test_no_secret_is_written(server: Server, tmp_path: Path) -> None:
    (tmp_path / ".netrc").write_text("machine api.wandb.ai login user password canary-netrc-d\n")
    (tmp_path / ".netrc").chmod(0o600)
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text('[remote "origin"]\n\turl = https://canary-git-e@example.org/x.git\n')
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://user:canary-url-f@127.0.0.1:{free.getsockname()[1]}"
    env = {**SECRETS, "HOME": str(tmp_path), "WANDB_BASE_URL": url, "WANDB_MODE": None}
    assert server.run(tmp_path, "logger=wandb", *runs.SHORT, env=env) == 0, (tmp_path / "output.txt").read_text()
    assert server.run(tmp_path, "logger.api_key=canary-cli-g", "logger=wandb", *runs.SHORT, env=env) == 2
    files = [path for path in (tmp_path / "runs").rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if b"canary" in path.read_bytes()]
    assert not [path for path in files if path.name == "wandb-metadata.json"]
    assert "canary" not in (tmp_path / "output.txt").read_text()
