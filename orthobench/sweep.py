"""Many runs: one child process per job, whatever the launcher, so that none can harm another."""

import itertools
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from orthobench.config import Word, compose, conf_dir, parse
from orthobench.errors import ConfigError
from orthobench.terminal import complain, say

FOLDER = "ORTHOBENCH_SWEEP"
CHECKED = 200


def jobs(words: list[Word]) -> list[list[str]]:
    """The overrides of every job of a sweep, in Hydra's order: the last key varies fastest.

    Raises:
        ConfigError: a value that cannot be expanded.
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    choices = []
    for word in words:
        if not word.sweep:
            choices.append([word.text])
            continue
        try:
            override = OverridesParser.create().parse_override(word.text)
            choices.append([f"{word.prefix}{word.key}={value}" for value in override.sweep_string_iterator()])
        except HydraException as error:
            raise ConfigError(f"{word.text!r} cannot be expanded: {str(error).splitlines()[0]}.") from error
    return [list(job) for job in itertools.product(*choices)]


def sweep(overrides: list[str], folders: tuple[Path, ...] = ()) -> int:
    """Run every job of a sweep; returns 0, or the code of the first job that failed.

    Raises:
        ConfigError: any job is wrong; nothing was started.
    """
    from orthobench.settings import check

    words = parse(overrides, folders)
    plan = jobs([word for word in words if not word.key.startswith("hydra")])
    for job in plan[:CHECKED]:
        settings = check(compose(job, folders))
    say(f"{len(plan)} runs")
    root = Path(settings.run["runs_root"]) / ".hydra"
    root.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="sweep-", dir=root))
    os.environ[FOLDER] = str(folder.resolve())
    extra = [option for path in folders for option in ("--config-dir", str(path.resolve()))]
    sys.argv = ["orthobench", "-m", *extra, *(word.text for word in words)]
    import hydra

    hydra.main(version_base="1.3", config_path=str(conf_dir()), config_name="config")(_Job(extra))()
    return _summary(folder, len(plan))


class _Job:
    """What Hydra calls for one job: starts a child process and notes its exit code."""

    def __init__(self, extra: list[str]) -> None:
        self.extra = extra

    def __call__(self, cfg: Any) -> int:
        from hydra.core.hydra_config import HydraConfig

        hydra = HydraConfig.get()
        number, folder = hydra.job.num, Path(os.environ[FOLDER])
        command = [sys.executable, "-m", "orthobench", *self.extra, *hydra.overrides.task]
        if "BasicLauncher" in hydra.launcher._target_:
            done = subprocess.run(command, check=False)
        else:
            with (folder / f"{number}.log").open("w") as log:
                done = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, check=False)
        label = " ".join(text.lstrip("+") for text in hydra.overrides.task)
        (folder / f"{number}.code").write_text(f"{done.returncode}\n{label}\n")
        say(f"[{number + 1}] {label}: {_outcome(done.returncode)}")
        return done.returncode


def _outcome(code: int) -> str:
    return "done" if code == 0 else f"killed by signal {-code}" if code < 0 else f"exit code {code}"


def _summary(folder: Path, total: int) -> int:
    results = {}
    for path in folder.glob("*.code"):
        code, label = path.read_text().splitlines()[:2]
        results[int(path.stem)] = int(code), label
    failed = {number: result for number, result in sorted(results.items()) if result[0] != 0}
    missing = sorted(set(range(total)) - set(results))
    say(f"{len(results) - len(failed)} of {total} runs done, {len(failed) + len(missing)} not")
    for number, (code, label) in failed.items():
        complain(f"[{number + 1}] {label}: {_outcome(code)}; {folder / f'{number}.log'}")
    for number in missing:
        complain(f"[{number + 1}] was never started or left no trace")
    if failed:
        first = next(iter(failed.values()))[0]
        return first if first > 0 else 128 - first
    return 1 if missing else 0
