"""`orthobench site`: pages of everything that is recorded, in results/site; they open without a network."""

import os
import platform
from datetime import UTC, datetime
from pathlib import Path

from orthobench.common.program import import_torch
from orthobench.common.terminal import say, waiting
from orthobench.config import places
from orthobench.config.words import key
from orthobench.errors import ConfigError
from orthobench.verbs.arguments import Parser, results_root

PLACES = ("results_root", "runs_root")


def main(arguments: list[str]) -> int:
    """Write the pages, with the models, tasks and papers in the folders of `--config-dir` among ours.

    Raises:
        ConfigError: an argument that does not apply, a folder that is not there, or the extra `site` is not installed.
        StorageError: records are damaged, or the pages cannot be written.
    """
    parser = Parser(__doc__)
    parser.add_folders()
    given = parser.read(arguments)
    for word in given.words:
        if key(word) not in PLACES or "=" not in word:
            raise ConfigError(f"{word!r} is not an argument here; use results_root= and runs_root= alone.")
    results = results_root([word for word in given.overrides if key(word) == "results_root"])
    runs = next((Path(places.path(word)) for word in given.overrides if key(word) == "runs_root"), Path("runs"))
    from orthobench.report.site.charts import altair, javascript
    from orthobench.report.site.collected import collected
    from orthobench.report.site.write import write

    altair()  # before the records are read, so that a missing package is told at once
    script = javascript()
    import_torch()
    with waiting("reading the records"):
        data = collected(results, given.catalogue, runs)
    with waiting("drawing the pages"):
        folder = write(data, results, script, written())
    say(f"wrote {folder}")
    return 0


def written() -> str:
    """When, by what code and on which machine the pages are made."""
    import torch

    from orthobench.recording.code_name import code_name
    from orthobench.recording.record import code, hardware

    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    made = hardware(device)
    machine = ", ".join(filter(None, (made["cpu"], made["gpu"], f"{os.cpu_count()} cores", platform.platform())))
    versions = f"Python {platform.python_version()}, torch {torch.__version__}"
    return f"Written on {now} by {code_name(code())}, on {machine}; {versions}. Each run names its own on its page."
