"""`orthobench report`: results/report.html, everything that is recorded on one page."""

from pathlib import Path

from orthobench.errors import ConfigError
from orthobench.terminal import say
from orthobench.verbs.arguments import Parser


def main(arguments: list[str]) -> int:
    """Write the page, with the papers in the folders of `--config-dir` among ours.

    Raises:
        ConfigError: an argument other than results_root=.
    """
    from orthobench.recording.files import write_bytes
    from orthobench.report.html import page

    parser = Parser(__doc__)
    parser.add_folders()
    given = parser.read(arguments)
    results = results_root(given.words)
    path = results / "report.html"
    write_bytes(path, page(results, tuple(given.config_dir)).encode())
    say(f"wrote {path}")
    return 0


def results_root(arguments: list[str]) -> Path:
    """The folder of `results_root=`, else results/.

    Raises:
        ConfigError: an argument other than that.
    """
    for word in arguments:
        if not word.startswith("results_root="):
            raise ConfigError(f"{word!r} is not an argument here; results_root= is.")
    return Path(arguments[-1].partition("=")[2] if arguments else "results")
