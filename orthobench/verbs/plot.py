"""`orthobench plot [TABLE...|PAPER...|all|FOLDER|RUN [KEY=VALUE...]]`: figures of what is recorded, or of your runs."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from orthobench.common.terminal import complain, say
from orthobench.errors import OrthobenchError
from orthobench.study.catalogue import Catalogue
from orthobench.study.tables.table import FULL
from orthobench.verbs import own_runs
from orthobench.verbs.arguments import Parser, results_root

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    Drawn = tuple[Path, str, Figure]  # the path without its suffix, the title


def main(arguments: list[str]) -> int:
    """Write the figures that the records of the named tables allow into results/figures; of all when none is named.

    Those of a folder of runs, chosen by `KEY=VALUE`, are written into `figures` in that folder. Of one run they are its
    learning curve and its predictions on test sequences: the confusion of classes, and the worst sequences.

    Raises:
        ConfigError: no such table or paper; no such folder, or no run in it that is asked for; no such style.
    """
    from orthobench.recording.files import write_bytes
    from orthobench.report.saving import Look

    parser = Parser(__doc__)
    parser.add_folders()
    parser.add_look()
    given = parser.read(arguments)
    look = Look(given.format, given.logy, given.style)
    places = own_runs.folders(given.names, given.catalogue)
    drawn = _of_runs(places, given.overrides) if places else _of_tables(given.names, given.overrides, given.catalogue)
    written = Counter[Path]()
    with look.applied():
        for path, title, figure in drawn:
            written[path] += 1
            again = f"-{written[path]}" if written[path] > 1 else ""  # titles that differ in signs alone
            place = path.with_name(f"{path.name}{again}.{look.form}")
            write_bytes(place, look.saved(figure, title.replace("val/", "validation ")))
            say(f"wrote {place}")
    if not written:
        told = "" if places else "; results_root= names the folder of the records"
        say(f"nothing is recorded that could be drawn{told}")
    return 0


def _of_tables(names: list[str], overrides: list[str], catalogue: Catalogue) -> "Iterator[Drawn]":
    from orthobench.recording.files import within
    from orthobench.report.tables import section
    from orthobench.study.verdicts.comparison import recorded_presets

    results = results_root(overrides)
    for table in catalogue.select(names or ["all"]):
        for preset, root in recorded_presets(table.name, results):
            short = "" if preset == FULL else f"-{preset}"
            for title, figure in section(table, root, preset, drawn=True).figures.items():
                name = f"{table.name.replace('/', '-')}{short}-{_slug(title.key)}"
                yield within(root, f"figures/{name}"), title, figure


def _of_runs(places: list[Path], overrides: list[str]) -> "Iterator[Drawn]":
    from orthobench.recording.files import within
    from orthobench.report.own import section

    for table in own_runs.tables(places, overrides):
        for title, figure in section(table, drawn=True).figures.items():
            yield within(places[0], f"figures/{_slug(title)}"), title, figure
    for folder in places:
        if (folder / "record.json").is_file():
            for title, figure in _predictions(folder).items():
                yield within(places[0], f"figures/{_slug(title)}"), title, figure


def _predictions(folder: Path) -> "dict[str, Figure]":
    """Pictures of a run's answers; none, and a sentence, where its weights or its data cannot be used."""
    from orthobench.report.predictions import figures
    from orthobench.run.load import load
    from orthobench.run.predictions import predictions

    try:
        run = load(folder)
        return figures(predictions(run), run.run_id, run.settings.parts.task.image)
    except OrthobenchError as error:
        complain(f"orthobench: no predictions are drawn: {error}")
        return {}


def _slug(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
