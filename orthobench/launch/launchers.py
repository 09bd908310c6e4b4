"""From the settings of a launcher to the launcher."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from orthobench.errors import ConfigError
from orthobench.launch.local import local
from orthobench.launch.workers import Launcher

FOLDER = ".slurm"
UNITS = {
    "time": "minutes, such as 60",
    "signal_s": "seconds, such as 120",
    "poll_s": "seconds, such as 10",
    "memory_gb": "gigabytes, such as 4",
}


def make_launcher(settings: dict[str, Any], runs_root: Path) -> Launcher:
    """The launcher of these settings.

    Raises:
        ConfigError: a setting is of a wrong type or out of range, its package is missing, or nothing answers.
    """
    return _MAKERS[settings["name"]](settings, runs_root)


def _local(given: dict[str, Any], runs_root: Path) -> Launcher:
    n_jobs = given["n_jobs"] if given.get("jobs") is None else _number(given, "jobs", int, 1)
    return local(n_jobs, given["gpus"], given["per_gpu"])


def _ray(given: dict[str, Any], runs_root: Path) -> Launcher:
    from orthobench.launch.ray import Ray

    return Ray(
        str(given["address"]),
        _number(given, "cpus", float, 0),
        _number(given, "gpus", float, 0),
        None if given["memory_gb"] is None else _number(given, "memory_gb", float, 0),
        _number(given, "retries", int, 0),
        _number(given, "queued", int, 1),
    )


def _slurm(given: dict[str, Any], runs_root: Path) -> Launcher:
    from orthobench.launch.slurm import Slurm

    gpus = _number(given, "gpus", int, 0)
    memory = None if given["memory_gb"] is None else f"{1024 * _number(given, 'memory_gb', float, 0.01):.0f}M"
    options = {
        "partition": given["partition"],
        "account": given["account"],
        "qos": given["qos"],
        "constraint": given["constraint"],
        "time": _number(given, "time", int, 1),
        "cpus_per_task": _number(given, "cpus", int, 1),
        "gpus_per_node": gpus or None,
        "mem": memory,
        "array_parallelism": _number(given, "running", int, 1),
        "signal_delay_s": _number(given, "signal_s", int, 1),
        "setup": list(given["setup"]) or None,
        "stderr_to_stdout": True,
        "additional_parameters": {"requeue": True, **(given["options"] or {})},
    }
    if options["signal_delay_s"] >= 60 * options["time"]:
        raise ConfigError(
            f"hydra.launcher.signal_s={given['signal_s']} is not within the time limit of the runs"
            ": it must be less than hydra.launcher.time."
        )
    return Slurm(
        runs_root / FOLDER,
        {name: value for name, value in options.items() if value is not None},
        _number(given, "array", int, 1),
        _number(given, "requeues", int, 0),
        _number(given, "queued", int, 1),
        _number(given, "poll_s", float, 0.1),
    )


_MAKERS: dict[Any, Callable[[dict[str, Any], Path], Launcher]] = {
    "local": _local,
    "slurm": _slurm,
    "ray": _ray,
}


def _number(given: dict[str, Any], name: str, kind: type[int] | type[float], least: float) -> Any:
    value = given[name]
    right = isinstance(value, int | float) and not isinstance(value, bool) and (kind is float or int(value) == value)
    if not right or value < least:
        what = "a whole number" if kind is int else "a number"
        raise ConfigError(f"hydra.launcher.{name}={value} is not {what} >= {least:g}: give {UNITS.get(name, 'one')}.")
    return kind(value)
