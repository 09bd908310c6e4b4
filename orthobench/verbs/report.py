"""`orthobench report`: everything that is recorded on one page, results/report.html."""

import os
import platform
from datetime import UTC, datetime
from pathlib import Path

from orthobench.config import places
from orthobench.errors import ConfigError
from orthobench.terminal import say
from orthobench.verbs.arguments import Parser


def main(arguments: list[str]) -> int:
    """Write the page, with the papers in the folders of `--config-dir` among ours.

    Raises:
        ConfigError: an argument other than results_root=.
    """
    from orthobench.recording.files import within, write_bytes
    from orthobench.report.html import page

    parser = Parser(__doc__)
    parser.add_folders()
    given = parser.read(arguments)
    results = results_root([*given.names, *given.overrides])
    path = within(results, "report.html")
    write_bytes(path, page(results, tuple(given.config_dir), written()).encode())
    say(f"wrote {path}")
    return 0


def written() -> str:
    """When, by what code and on which machine the page is made."""
    import torch

    from orthobench.recording.code_name import code_name
    from orthobench.recording.record import code, hardware

    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    made = hardware(device)
    machine = ", ".join(filter(None, (made["cpu"], made["gpu"], f"{os.cpu_count()} cores", platform.platform())))
    versions = f"Python {platform.python_version()}, torch {torch.__version__}"
    return f"Written on {now} by {code_name(code())}, on {machine}; {versions}. Each run names its own below its table."


def results_root(arguments: list[str]) -> Path:
    """The folder of `results_root=`, else results/.

    Raises:
        ConfigError: an argument other than that, or a folder that is not there.
    """
    for word in arguments:
        if not word.startswith("results_root="):
            raise ConfigError(f"{word!r} is not an argument here; results_root= is.")
    found = Path(places.path(arguments[-1]) if arguments else "results")
    if arguments and not found.is_dir():
        raise ConfigError(f"results_root={found} is not a folder: name the one that holds `records`.")
    return found
