"""`orthobench plot [TABLE...|PAPER...|all|FOLDER [KEY=VALUE...]]`: figures of what is recorded, or of your runs."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from orthobench.common.terminal import say
from orthobench.study.catalogue import Catalogue
from orthobench.study.tables.table import FULL
from orthobench.verbs import own_runs
from orthobench.verbs.arguments import Parser, results_root


def main(arguments: list[str]) -> int:
    """Write the figures that the records of the named tables allow into results/figures; of all when none is named.

    Those of a folder of runs, chosen by `KEY=VALUE`, are written into `figures` in that folder.

    Raises:
        ConfigError: no such table or paper; no such folder, or no run in it that is asked for.
    """
    from orthobench.recording.files import write_bytes

    parser = Parser(__doc__)
    parser.add_folders()
    given = parser.read(arguments)
    places = own_runs.folders(given.names, given.catalogue)
    drawn = _of_runs(places, given.overrides) if places else _of_tables(given.names, given.overrides, given.catalogue)
    written = Counter[Path]()
    for path, svg in drawn:
        written[path] += 1
        again = f"-{written[path]}" if written[path] > 1 else ""  # titles that differ in signs alone
        place = path.with_name(f"{path.stem}{again}{path.suffix}")
        write_bytes(place, svg.encode())
        say(f"wrote {place}")
    if not written:
        told = "" if places else "; results_root= names the folder of the records"
        say(f"nothing is recorded that could be drawn{told}")
    return 0


def _of_tables(names: list[str], overrides: list[str], catalogue: Catalogue) -> Iterator[tuple[Path, str]]:
    from orthobench.recording.files import within
    from orthobench.report.tables import section
    from orthobench.study.verdicts.comparison import recorded_presets

    results = results_root(overrides)
    for table in catalogue.select(names or ["all"]):
        for preset, root in recorded_presets(table.name, results):
            short = "" if preset == FULL else f"-{preset}"
            for title, svg in section(table, root, preset, drawn=True).figures.items():
                name_of = _slug(title.partition(": ")[2] or title)
                yield within(root, f"figures/{table.name.replace('/', '-')}{short}-{name_of}.svg"), svg


def _of_runs(places: list[Path], overrides: list[str]) -> Iterator[tuple[Path, str]]:
    from orthobench.recording.files import within
    from orthobench.report.own import section

    for table in own_runs.tables(places, overrides):
        for title, svg in section(table, drawn=True).figures.items():
            yield within(places[0], f"figures/{_slug(title)}.svg"), svg


def _slug(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
