"""The program of a run, which any scheduler, container or workflow tool can start: `python -m orthobench.run FOLDER`.

FOLDER has the name of the run, and holds config.yaml: the checked settings of one run, which `orthobench plan KEY=VALUE
... --folders` and every sweep write. The run is trained there, goes on where it stopped, or is found done. Nothing else
is asked: no configuration file, no `--config-dir`, no working directory. FOLDER and those above it may have another
path than where they were written. The environment gives $ORTHOBENCH_PLUGINS, where the run's classes are a plug-in's,
and $ORTHOBENCH_DATA, where the data have another place here.

Several folders are done one after another, each as if it were alone, whatever the one before ended with; a signal ends
them all. The first one whose exit code is not 0 gives that of the program:

    0   done, which record.json says
    1   a fault of orthobench's own
    2   FOLDER has no config.yaml or one that this version cannot use, or the run is refused
    3   its data are missing or damaged
    4   it has diverged, which record.json says
    5   it does not fit into memory
    6   a file cannot be written, is damaged, or is another run's
    75  not done: a signal stopped it, or another process works on it; the same command resumes

`python -m orthobench.ensemble FOLDER ...` takes the same folders, and trains their runs as one program.
"""

import argparse
import sys
from pathlib import Path

from orthobench.common import signals
from orthobench.common.program import answered, carried_out, uncollected
from orthobench.common.terminal import say
from orthobench.common.version import __version__
from orthobench.config.settings import Settings
from orthobench.errors import Stopped, code_of


def main(arguments: list[str] | None = None) -> int:
    """Do the runs of some folders; returns the exit code."""
    return carried_out(lambda: _folders(None)) if arguments is None else _folders(arguments)


def folders_of(arguments: list[str] | None, program: str, purpose: str) -> list[Path]:
    """The folders that a program is given; a usage error ends it with exit code 2."""
    parser = argparse.ArgumentParser(program, f"python -m {program} FOLDER ...", purpose)
    parser.add_argument("folders", metavar="FOLDER", type=Path, nargs="+", help="has config.yaml, a run's settings")
    return parser.parse_args(arguments).folders


def done(settings: Settings) -> int:
    """Do a run, unless it is found done; returns its exit code."""
    with uncollected(for_good=True):
        from orthobench.recording.finished import finished

        record = finished(settings)
        if record is None:
            from orthobench.run.run import Run
    try:
        return code_of((record or Run(settings).run())["status"])
    except SystemExit as error:  # it would end the program as if all were done
        raise RuntimeError(f"code of this run's model, task or logger asked Python to exit ({error.code})") from error


def _folders(arguments: list[str] | None) -> int:
    codes = []
    with signals.watched(program=True):
        signals.end_with_parent()
        for folder in folders_of(arguments, "orthobench.run", "do the run of each folder, one after another"):
            codes.append(answered(lambda folder=folder: _folder(folder)))
            if signals.asked() is not None:
                return next(filter(None, codes), Stopped.exit_code)
    return next(filter(None, codes), 0)


def _folder(folder: Path) -> int:
    say(f"orthobench {__version__} reads {folder / 'config.yaml'}")
    with uncollected(for_good=True):
        from orthobench.recording.run_folder import read

        settings = read(folder)
    return done(settings)


if __name__ == "__main__":
    sys.exit(main())
