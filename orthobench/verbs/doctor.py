"""`orthobench doctor`: what this machine has and lacks."""

import os
import platform
import shutil
from importlib import metadata
from pathlib import Path

from orthobench.common.terminal import say
from orthobench.errors import ConfigError
from orthobench.study.catalogue import SHIPPED
from orthobench.verbs.arguments import Parser

NEEDED = ("torch", "lightning", "hydra-core", "omegaconf", "numpy")
OPTIONAL = (
    "wandb",
    "torchtext",
    "pandas",
    "tensorboard",
    "matplotlib",
    "scipy",
    "soundfile",
    "triton",
    "optuna",
)


def main(arguments: list[str]) -> int:
    """Print one line per finding; exits 0 when a run can start, else 2."""
    from orthobench.config.files import conf_dir
    from orthobench.recording.loggers import wandb_mode

    values = SHIPPED.compose(Parser(__doc__).read(arguments).words).values
    say(f"python      {platform.python_version()} on {platform.system()} {platform.machine()}, {os.cpu_count()} cores")
    missing = []
    for name in (*NEEDED, *OPTIONAL):
        try:
            say(f"package     {name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            needed = name in NEEDED
            missing += [name] if needed else []
            say(f"package     {name} is missing{'' if needed else ' (optional)'}")
    plugins, problem = os.environ.get("ORTHOBENCH_PLUGINS", ""), None
    if not missing:
        import torch

        from orthobench.common.registry import find

        try:
            find("cell", "elman", "cell")
        except ConfigError as error:
            problem = str(error).rstrip(".")
        say(f"plugins     {plugins or 'none'}{f': {problem}' if problem else ''}")

        gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else "none"
        say(f"gpu         {gpu}")
    say(f"compiler    {shutil.which('cc') or shutil.which('gcc') or 'none'}")
    say(f"conf        {conf_dir()}: {len(SHIPPED.options('model'))} models, {len(SHIPPED.options('task'))} tasks")
    root = Path(values["data_root"])
    found = sorted(p.name for p in root.iterdir() if p.is_dir()) if root.is_dir() else []
    say(f"data        {root}: {', '.join(found) or 'nothing yet; see `orthobench prepare NAME`'}")
    runs = Path(values["runs_root"])
    writable = os.access(next(p for p in (runs, *runs.absolute().parents) if p.exists()), os.W_OK)
    say(f"runs        {runs}: {'writable' if writable else 'NOT writable; set runs_root='}")
    say(f"wandb       {wandb_mode(None)}")
    if missing or problem or not writable:
        say(f"a run cannot start: {', '.join(missing) or problem or 'runs_root is not writable'}")
        return 2
    say("a run can start")
    return 0
