"""A command that imports what a run imports, and then sleeps for as many seconds as its word says."""

import sys
import time

import orthobench.__main__
import orthobench.run.run  # noqa: F401


def main() -> int:
    """Sleep; returns the exit code."""
    time.sleep(float(sys.argv[1]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
