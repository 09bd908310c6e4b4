"""Measurements while a model trains. One callback per file."""

import orthobench.common.lean_lightning  # noqa: F401 - first: it imports Lightning without what no run uses
