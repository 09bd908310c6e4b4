"""From words about a launcher to the launcher."""

from pathlib import Path

from orthobench.config.launchers import check_name, launcher_settings
from orthobench.launch.launchers import make_launcher
from orthobench.launch.workers import Launcher


def launcher_of(name: str | None, words: list[str], runs_root: Path) -> Launcher | None:
    """The launcher that `--launcher NAME` and words about it ask for; None where they do not.

    Args:
        name: its name; None where the words may name it.
        words: `hydra/launcher=NAME`, `hydra.launcher.KEY=VALUE`.
        runs_root: the folder of the runs, beside which a launcher may keep what it has submitted.

    Raises:
        ConfigError: a name, a setting or the launcher's package is unknown or missing, or nothing answers.
    """
    if name is not None:
        check_name(name)
        words = [f"hydra/launcher={name}", *(word for word in words if not word.startswith("hydra/launcher"))]
    return make_launcher(launcher_settings(words), runs_root) if words else None
