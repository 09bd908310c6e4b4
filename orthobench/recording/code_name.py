"""The code that made a run, in words."""

from typing import Any


def code_name(made: dict[str, Any]) -> str:
    """Its commit, or its version where there is none, and whether files of it had been changed.

    Args:
        made: `git`, `version` and `dirty`, as a record has them under `code`.
    """
    name = f"commit {made['git'][:10]}" if made.get("git") else f"version {made.get('version') or 'unknown'}"
    return f"{name} with local changes" if made.get("dirty") else name
