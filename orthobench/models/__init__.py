"""Networks; the file's name is the word in the configuration (`model.network`)."""

from orthobench.models.base import Network

__all__ = ["Network"]
