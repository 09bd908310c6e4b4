"""`orthobench doctor`: report what this machine has and lacks."""

import os
import platform
import shutil
import urllib.parse
import urllib.request
from importlib import metadata
from pathlib import Path

from orthobench.common import packages, system
from orthobench.common.terminal import say
from orthobench.errors import ConfigError

GIB = 1 << 30
LITTLE = 2  # GiB


def main(arguments: list[str]) -> int:
    """Print one line per finding; exits 0 when a run can start, else 2."""
    lacking = [f"{name} {why}" for name in packages.CORE if (why := packages.trouble(_requirement(name)))]
    words = [] if lacking else _words(arguments)
    say(f"python      {platform.python_version()} on {platform.system()} {platform.machine()}, {os.cpu_count()} cores")
    for sentence in system.lacking():
        say(f"system      {sentence}")
    _packages()
    problems = lacking or [*_torch(), *_folders(words)]  # without these packages nothing else of ours can be imported
    say(f"a run cannot start: {'; '.join(problems)}" if problems else "a run can start")
    return ConfigError.exit_code if problems else 0


def _words(arguments: list[str]) -> list[str]:
    from orthobench.verbs.arguments import Parser

    return Parser(__doc__).read(arguments).words


def _requirement(name: str) -> str:
    return next((one for one in packages.wanted().get("", []) if packages.name_of(one) == name), name)


def _packages() -> None:
    """Say which packages are here and which are missing for what."""
    lists = packages.wanted()
    for requirement in lists.get("") or packages.CORE:
        name = packages.name_of(requirement)
        wrong = packages.trouble(requirement)
        if not wrong:
            say(f"package     {name} {metadata.version(name)}")
            continue
        use = packages.PURPOSES.get(name, "every run")
        say(f"package     {name} {wrong}; it is for {use}: python -m pip install '{requirement}'")
    for extra, listed in lists.items():
        wrong = [f"{packages.name_of(one)} {why}" for one in listed if (why := packages.trouble(one))]
        if extra:
            told = f"{', '.join(wrong)}: {packages.install(extra)}" if wrong else "here"
            say(f"optional    {extra}, for {packages.EXTRAS.get(extra, extra)}: {told}")


def _torch() -> list[str]:
    """Say whether torch, plug-ins, a GPU and a compiler can be used; returns what keeps a run from starting."""
    try:
        import torch
    except (ImportError, OSError) as error:  # a library of the system is missing, or of another machine
        why = " ".join(str(error).split())[:200]
        say(f"torch       is installed and cannot be loaded: {why}")
        return ["torch cannot be loaded: install it again, see https://pytorch.org/get-started"]
    from orthobench.common.registry import find

    plugins, problems = os.environ.get("ORTHOBENCH_PLUGINS", ""), []
    try:
        find("cell", "elman", "cell")
    except ConfigError as error:
        problems.append(str(error).rstrip("."))
    say(f"plugins     {plugins or 'none'}{f': {problems[0]}' if problems else ''}")
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else "none; runs are on the CPU"
    say(f"gpu         {gpu}")
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    without = (
        "none: engine=native cannot be built, and runs on a CPU take the slower engine=fused; install gcc or clang"
    )
    say(f"compiler    {compiler or without}")
    return problems


def _folders(words: list[str]) -> list[str]:
    """Say where configuration, data and runs are, and how the network is reached; returns what keeps runs away."""
    from orthobench.config.files import conf_dir
    from orthobench.recording.loggers import wandb_mode
    from orthobench.study.catalogue import SHIPPED

    values = SHIPPED.compose(words).values
    say(f"conf        {conf_dir()}: {len(SHIPPED.options('model'))} models, {len(SHIPPED.options('task'))} tasks")
    root = Path(values["data_root"])
    found = sorted(p.name for p in root.iterdir() if p.is_dir()) if root.is_dir() else []
    say(f"data        {root}: {', '.join(found) or 'nothing yet; see `orthobench prepare NAME`'}")
    runs = Path(values["runs_root"])
    place = next(p for p in (runs, *runs.absolute().parents) if p.exists())
    writable, free = os.access(place, os.W_OK), shutil.disk_usage(place).free / GIB
    little = ", which is little: set runs_root= to another disk" if free < LITTLE else ""
    say(
        f"runs        {runs}: {'writable' if writable else 'NOT writable; set runs_root='}, {free:.1f} GiB free{little}"
    )
    for scheme, address in sorted(urllib.request.getproxies().items()):
        if scheme in ("http", "https", "all"):
            place_of = urllib.parse.urlsplit(address if "://" in address else f"//{address}").hostname or "a proxy"
            say(f"proxy       {scheme} through {place_of}: pip and `prepare` use it")
    say(f"wandb       {wandb_mode(None)}")
    return [] if writable else ["runs_root is not writable"]
