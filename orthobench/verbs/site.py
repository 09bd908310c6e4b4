"""`orthobench site`: pages of everything that is recorded, in results/site; they open without a network."""

from pathlib import Path

from orthobench.config import places
from orthobench.config.words import key
from orthobench.errors import ConfigError
from orthobench.terminal import say, waiting
from orthobench.verbs.arguments import Parser

PLACES = ("results_root", "runs_root")


def main(arguments: list[str]) -> int:
    """Write the pages, with the models, tasks and papers in the folders of `--config-dir` among ours.

    Raises:
        ConfigError: an argument that does not apply, or the packages of the extra `site` are not installed.
        StorageError: records are damaged, or the pages cannot be written.
    """
    from orthobench.report.site.charts import altair, javascript
    from orthobench.report.site.collected import collected
    from orthobench.report.site.write import write
    from orthobench.verbs.report import written

    parser = Parser(__doc__)
    parser.add_folders()
    given = parser.read(arguments)
    for word in given.words:
        if key(word) not in PLACES or "=" not in word:
            raise ConfigError(f"{word!r} is not an argument here; results_root= and runs_root= are.")
    folders = {key(word): Path(places.path(word)) for word in given.overrides}
    results = folders.get("results_root", Path("results"))
    altair()  # before the records are read, so that a missing package is told at once
    script = javascript()
    with waiting("reading the records"):
        data = collected(results, tuple(given.config_dir), folders.get("runs_root", Path("runs")))
    with waiting("drawing the pages"):
        folder = write(data, results, script, written())
    say(f"wrote {folder}")
    return 0
