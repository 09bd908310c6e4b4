"""What can go wrong, each with the exit code that the command line promises."""


class OrthobenchError(Exception):
    """An error that a user can act on: one sentence, no traceback."""

    exit_code = 1


class ConfigError(OrthobenchError):
    """A wrong key, value or usage; nothing was started."""

    exit_code = 2


class DataError(OrthobenchError):
    """Data that is missing, damaged or of the wrong form."""

    exit_code = 3


class DivergedError(OrthobenchError):
    """A loss or gradient that is no longer finite, or a score of the final weights."""

    exit_code = 4


class MemoryExhausted(OrthobenchError):
    """The run does not fit in memory."""

    exit_code = 5


class StorageError(OrthobenchError):
    """A folder or file that cannot be written or read back."""

    exit_code = 6


class Stopped(OrthobenchError):
    """A signal asked the run to stop; the same command resumes it."""

    exit_code = 75


def not_installed(what: str, extra: str) -> ConfigError:
    """The refusal of something whose package is one of orthobench's extras."""
    return ConfigError(f"{what} needs a package that is not installed: pip install 'orthobench[{extra}]'.")


def code_of(status: str) -> int:
    """The exit code that belongs to the final status of a run that ended without an exception."""
    return {"diverged": DivergedError.exit_code, "running": Stopped.exit_code}.get(status, 0)
