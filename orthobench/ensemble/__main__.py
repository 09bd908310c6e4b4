"""The program of an ensemble, for sweeps to start: `python -m orthobench.ensemble FOLDER ...`.

The folders are those of `orthobench.run`, whose runs are trained as one program. The exit code is 0 when every member
has a final record, else the exit code of the first member that has none.
"""

import sys

from orthobench.common import signals
from orthobench.common.program import answered, carried_out, uncollected
from orthobench.errors import DivergedError
from orthobench.run.__main__ import folders_of


def main(arguments: list[str] | None = None) -> int:
    """Run the members; returns the exit code."""
    return carried_out(lambda: _members(None)) if arguments is None else answered(lambda: _members(arguments))


def _members(arguments: list[str] | None) -> int:
    folders = folders_of(arguments, "orthobench.ensemble", "train the runs of some folders as one program")
    with signals.watched(program=True):
        signals.end_with_parent()
        with uncollected(for_good=True):
            from orthobench.ensemble.running import run_members
            from orthobench.recording.run_folder import read
            from orthobench.run.run import Run
        codes = run_members([Run(read(folder)) for folder in folders])
    return next((code for code in codes if code not in (0, DivergedError.exit_code)), 0)


if __name__ == "__main__":
    sys.exit(main())
