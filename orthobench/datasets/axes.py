"""A look at arrays x (N, T, I) whose two last axes may be the wrong way round, as in the order (N, channels, time)."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

ROWS = 256  # looked at
MANY = 2  # times as many features as steps, from which on they are odd
CLEAR = 0.2  # by how much neighbours must be more alike along one axis than along the other


def remarks(x: np.ndarray, path: Path, normalised: Callable[[np.ndarray], np.ndarray]) -> list[str]:
    """A sentence with the remedy where an archive's axes look swapped; a table names its features, and is not asked.

    Args:
        x: (N, T, I), NaN where an observation is missing.
        path: the file.
        normalised: gives each feature of some of x a scale of its own, so that no unit of a feature counts.

    Neighbours in time are mostly more alike than neighbouring channels. There must be fewer steps than features; these
    are then told by being alike, or, where neither axis has that, by being twice as many.
    """
    N, T, features = x.shape
    if path.suffix.lower() != ".npz" or features <= T:
        return []
    some = normalised(x[:: max(N // ROWS, 1)])
    along_steps, along_features = _alike(some, 1), _alike(some, 2)
    clearly = along_features > along_steps + CLEAR
    if not clearly and (features < MANY * T or along_steps > along_features + CLEAR):
        return []
    return [
        f"{path}: x {x.shape} is read as {T} steps of {features} features; if it is (N, channels, time), as aeon and "
        "sktime have it, save x.swapaxes(1, 2)"
    ]


def _alike(x: np.ndarray, axis: int) -> float:
    """The correlation of neighbours along an axis, those that are missing (NaN) at the mean; 0 where nothing varies."""
    seen = ~np.isnan(x)
    if x.shape[axis] < 2 or not seen.any():
        return 0.0
    scaled = np.where(seen, x, 0) / max(float(np.abs(x).max(where=seen, initial=0)), np.finfo(float).tiny)
    centred = np.where(seen, scaled - scaled.mean(where=seen), 0)
    before, after = np.delete(centred, -1, axis), np.delete(centred, 0, axis)
    spread = float(np.sqrt((before**2).mean() * (after**2).mean()))
    return float((before * after).mean()) / spread if spread else 0.0
