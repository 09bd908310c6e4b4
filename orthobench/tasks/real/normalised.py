"""Features with mean 0 and deviation 1 over a training part, in whatever unit they come.

Everything is computed in a power of two near the largest value of a feature, so that no unit is too large or too small:
the same values times a power of two give the same bits. A feature that is constant in training is 0 everywhere, as it
has no scale.

An observation that is missing (NaN) counts for no mean. `mask` puts 0 in its place, and after the features I channels
that are 1 where a feature was observed and 0 elsewhere: zeros with an indicator for each feature (Lipton, Kale & Wetzel
2016, "Directly modeling missing data in sequences with RNNs", section 4.1), in the sense of the mask of Che et al.
(2018, section 2.1). `last` puts the last observation before it in its place, and the mean of training where there is
none (Che et al. 2018, "GRU-forward" and "GRU-mean"). Neither looks at a later step.

Shapes: N sequences, T steps of the longest one, I features.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

Missing = Literal["refuse", "mask", "last"]
SHOWN = 5  # features at most in a sentence
ROUNDING = 1e-12  # of the mean: float64 has 16 digits, of which sums lose some
SCALES = (1e-3, 1e3)


@dataclass(frozen=True)
class Moments:
    """Moments of every feature in training, in units of 2^exponent.

    Attributes:
        exponent: (I,), int64.
        mean: (I,).
        deviation: (I,), positive; 1 where a feature is constant.
        constant: (I,), whether all observations are the same.
        observed: (I,), the number of observations.
    """

    exponent: np.ndarray
    mean: np.ndarray
    deviation: np.ndarray
    constant: np.ndarray
    observed: np.ndarray

    @property
    def means(self) -> np.ndarray:
        """The means in the unit of the values."""
        return np.ldexp(self.mean, self.exponent)

    @property
    def deviations(self) -> np.ndarray:
        """The deviations in the unit of the values; 1 where a feature is constant."""
        return np.where(self.constant, 1.0, np.ldexp(self.deviation, self.exponent))


def moments(values: np.ndarray) -> Moments:
    """The moments of values (M, I), which may be NaN but not infinite."""
    values = values.astype(np.float64)
    seen = ~np.isnan(values)
    whole = bool(seen.all())
    plain = values if whole else np.where(seen, values, 0)
    exponent = np.frexp(np.abs(plain).max(0))[1].astype(np.int64)
    scaled, observed = np.ldexp(plain, -exponent), seen.sum(0)
    count = np.maximum(observed, 1)
    mean = scaled.mean(0) if whole else scaled.sum(0) / count
    deviation = scaled.std(0) if whole else np.sqrt((np.where(seen, scaled - mean, 0) ** 2).sum(0) / count)
    greatest = scaled.max(0, where=seen, initial=-np.inf)
    constant = greatest == scaled.min(0, where=seen, initial=np.inf)
    return Moments(
        exponent,
        np.where(constant, greatest, mean),
        np.where(constant | (observed == 0), 1.0, deviation),
        constant,
        observed,
    )


def normalised(x: np.ndarray, known: Moments) -> np.ndarray:
    """Values (..., I) with the mean and deviation that were found; 0 for a feature that was constant."""
    with np.errstate(over="ignore", under="ignore"):
        found = np.ldexp(x.astype(np.float64), -known.exponent)
        found -= known.mean
        found /= known.deviation
    return np.where(known.constant & ~np.isnan(found), 0, found) if known.constant.any() else found


def filled(x: np.ndarray, inside: np.ndarray, how: Missing, mean: np.ndarray) -> np.ndarray:
    """Sequences (N, T, I) without NaN, (N, T, 2 I) for `mask`; 0 beyond the end of a sequence.

    Args:
        x: the sequences.
        inside: (N, T), whether a step is within its sequence.
        how: what is put in the place of what is missing.
        mean: (I,), the mean of every feature in training, in the unit of x.
    """
    if how != "refuse":
        seen = ~np.isnan(x)
        if how == "mask":
            x = np.concatenate([np.where(seen, x, 0), seen], axis=2)
        else:
            step = np.maximum.accumulate(np.where(seen, np.arange(x.shape[1])[None, :, None], -1), axis=1)
            x = np.where(step < 0, mean, np.take_along_axis(x, np.maximum(step, 0), axis=1))
    return np.where(inside[:, :, None], x, 0)


def remarks(known: Moments, feature: Callable[[int], str], scaled: bool) -> list[str]:
    """Features that are constant or nearly so and, unless they are scaled, those of a size that hinders training.

    Args:
        known: what is known of them in training.
        feature: the name of each by its number.
        scaled: whether they are normalised.
    """
    found = []

    def listed(which: np.ndarray, values: np.ndarray) -> str:
        """The features that are chosen, each with a number."""
        chosen = np.flatnonzero(which).tolist()
        more = f" and {len(chosen) - SHOWN} more" if len(chosen) > SHOWN else ""
        return ", ".join(f"{feature(i)} ({values[i]:g})" for i in chosen[:SHOWN]) + more

    if known.constant.any():
        read = " and read as 0" if scaled else ""
        found.append(f"constant in training{read}: feature {listed(known.constant, known.means)}")
    nearly = ~known.constant & (known.deviation < ROUNDING * np.abs(known.mean))
    if nearly.any():
        found.append(f"a deviation that may be rounding in training: feature {listed(nearly, known.deviations)}")
    size = np.ldexp(np.sqrt(known.mean**2 + np.where(known.constant, 0, known.deviation) ** 2), known.exponent)
    wide = (size > 0) & ((size < SCALES[0]) | (size > SCALES[1]))
    if wide.any() and not scaled:
        found.append(
            f"sizes outside {SCALES[0]:g} to {SCALES[1]:g}, which task.normalisation=none leaves: feature "
            f"{listed(wide, size)}; task.normalisation=channel is made for them"
        )
    return found


def gaps(x: np.ndarray, inside: np.ndarray) -> list[str]:
    """Sentences about the missing share of some sequences (N, T, I)."""
    missing, all_of_them = int(np.isnan(x).sum()), int(inside.sum()) * x.shape[2]
    none = int((np.isnan(x) | ~inside[:, :, None]).all(1).sum())
    wholly = f"; in {none} {'sequence' if none == 1 else 'sequences'} a feature is missing wholly" if none else ""
    return [f"{missing:,} of {all_of_them:,} values are missing{wholly}"]
