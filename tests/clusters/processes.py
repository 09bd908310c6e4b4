"""Processes and ports of this machine, for clusters that are started on it."""

import socket
from pathlib import Path


def descendants(parents: set[int]) -> set[int]:
    """These processes and all that they have started, as far as the parents live."""
    children: dict[int, set[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        children.setdefault(parent, set()).add(int(path.parent.name))
    found, new = set(parents), set(parents)
    while new:
        new = {child for parent in new for child in children.get(parent, ())} - found
        found |= new
    return found


def free_port() -> int:
    """A port on which nothing listens now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]
