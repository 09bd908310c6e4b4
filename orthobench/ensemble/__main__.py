"""The process of an ensemble: `python -m orthobench.ensemble [--config-dir DIR] FILE`, for sweeps to start.

FILE is JSON, `{"members": [[override, ...], ...]}`. The exit code is 0 when every member has a final record, else the
exit code of the first member that has none.
"""

import argparse
import sys
from pathlib import Path

from orthobench import signals
from orthobench.errors import DivergedError, OrthobenchError
from orthobench.recording.files import read_json
from orthobench.terminal import complain


def main(arguments: list[str] | None = None) -> int:
    """Run the members; returns the exit code."""
    parser = argparse.ArgumentParser("orthobench.ensemble")
    parser.add_argument("--config-dir", type=Path, action="append", default=[])
    parser.add_argument("file", type=Path)
    given = parser.parse_args(arguments)
    listed = read_json(given.file)
    assert listed is not None
    from orthobench.config.configuration import Configuration
    from orthobench.ensemble.running import run_members
    from orthobench.run.run import Run

    try:
        with signals.watched(program=True):
            signals.end_with_parent()
            files = Configuration(tuple(given.config_dir))
            codes = run_members([Run.fitted(files.settings(words)) for words in listed["members"]])
    except OrthobenchError as error:
        complain(f"orthobench: {error}")
        return error.exit_code
    return next((code for code in codes if code not in (0, DivergedError.exit_code)), 0)


if __name__ == "__main__":
    sys.exit(main())
