"""`orthobench plot [TABLE...|PAPER...|all]`: results/figures/*.svg from what is recorded."""

import re

from orthobench.config.table import FULL
from orthobench.terminal import say
from orthobench.verbs.arguments import Parser


def main(arguments: list[str]) -> int:
    """Write the figures that the records of the named tables allow; all tables when none is named.

    Raises:
        ConfigError: no such table or paper.
    """
    from orthobench.analysis.comparison import everywhere
    from orthobench.config import table as experiment
    from orthobench.launch.plan import select
    from orthobench.recording.files import write_bytes
    from orthobench.report.write import section
    from orthobench.verbs.report import results_root

    parser = Parser(__doc__)
    parser.add_folders()
    given = parser.read(arguments)
    folders, results = tuple(given.config_dir), results_root(given.overrides)
    written = 0
    for name in select(given.names or ["all"], folders):
        table = experiment.load(name, folders)
        for preset, root in everywhere(name, results):
            for title, svg in section(table, root, preset, drawn=True).figures.items():
                words = re.sub(r"[^a-z0-9]+", "-", title.partition(": ")[2].lower()).strip("-")
                short = "" if preset == FULL else f"-{preset}"
                path = root / "figures" / f"{name.replace('/', '-')}{short}-{words}.svg"
                write_bytes(path, svg.encode())
                say(f"wrote {path}")
                written += 1
    if not written:
        say("nothing is recorded that could be drawn")
    return 0
