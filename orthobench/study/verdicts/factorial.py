"""Effects of a factorial design of cells: on whether a seed solves the case, how far it holds it, and its score.

The design is written in the table: of `factors: {gru: {matrix: [free, orthogonal], bias: [default, chrono]}}` the cells
are `gru_free_default` and so on. The first level of a factor is what the others are compared with. An effect is the
difference between a level and the first one, all else averaged; an interaction is a difference of such differences.

    solved     a logistic model, in log-odds, with a log-F(1,1) prior on every effect, without which one is infinite
               where all seeds of one side solve the case; the 95 % interval of the profile of the posterior. There is
               none where no seed of the design solves the case, or all do, as it would be the prior's alone
    horizon    a linear model of log2 of the horizon of every seed that solved the case, so that 1 is a factor of two;
               Student's 95 % interval, with a standard deviation that is not below that of rounding to a tested length;
               a seed that holds none of these counts as half of the shortest, for without it the others look better
    score      a linear model of the cells' mean normalised test score, in the range of training and at the middle one
               of the tested lengths; Welch's 95 % interval, as cells spread differently, with standard deviations that
               are not below that of rounding to 0.01; a seed that diverged, that did not learn or that scores below 0
               counts as 0, which is the trivial predictor. It tells something where no seed solves the case, as the
               others do not.

All are conditional on the trial that was chosen for each cell: how far another search would move them is not known.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise, product
from math import log2
from typing import Any

import numpy as np

from orthobench.study.statistics.status import LEVEL, Interval
from orthobench.study.verdicts.searched import SearchedTable
from orthobench.study.verdicts.searched_cell import SearchedCell
from orthobench.study.verdicts.trials import solved

ROUNDS, CLOSE = 200, 1e-9
FINEST = 0.01  # difference of two normalised scores that is told
Estimates = list[tuple[float, Interval]]


@dataclass(frozen=True)
class Effect:
    """Effect of a level, or of two together.

    Attributes:
        family: the beginning of the cells' names, such as `gru`.
        name: the level, such as `matrix=orthogonal`, or two of them with ` x `.
        solved: the difference in log-odds that a seed solves the case, with its interval; None where none does, or all.
        horizon: the difference in log2 of the horizon, with its interval; None where too few seeds solve the case.
        score: the difference in the normalised score, with its interval; None where too few seeds are reported.
        far: the same at the middle one of the tested lengths; None where there is none.
    """

    family: str
    name: str
    solved: tuple[float, Interval] | None
    horizon: tuple[float, Interval] | None
    score: tuple[float, Interval] | None
    far: tuple[float, Interval] | None


def effects(found: SearchedTable) -> list[Effect]:
    """The effects of every design of a table of which all cells are complete."""
    return [effect for family, cells in _designs(found) for effect in _of_design(family, found.table.factors, cells)]


def cut_off(found: SearchedTable) -> tuple[int, int]:
    """Count the horizons behind the effects that are the longest tested length, and all of them."""
    held = [length for _, cells in _designs(found) for cell in cells for length in _held(cell)]
    return held.count(found.lengths[-1]) if held else 0, len(held)


def _designs(found: SearchedTable) -> Iterator[tuple[str, list[SearchedCell]]]:
    """The designs of which all cells are complete, each with these."""
    cells = {cell.name: cell for cell in found.cells}
    for family, factors in found.table.factors.items():
        own = [cells["_".join((family, *levels))] for levels in product(*factors.values())]
        if all(cell.complete for cell in own):
            yield family, own


def _of_design(family: str, factors: dict[str, dict[str, list[str]]], cells: list[SearchedCell]) -> list[Effect]:
    names, x = design(factors[family], list(product(*factors[family].values())))
    counts = np.array([cell.solved[0] for cell in cells], dtype=float)
    trials = np.array([len(cell.seeds) for cell in cells], dtype=float)
    on_solved = logistic(x, counts, trials)
    rows = [(i, log2(held)) for i, cell in enumerate(cells) for held in _held(cell)]
    lengths = cells[0].lengths
    step = max((log2(longer / length) for length, longer in pairwise(lengths)), default=0.0)
    on_horizon = linear(x[[i for i, _ in rows]], np.array([value for _, value in rows]), step) if rows else None
    found = on_solved, on_horizon, _on_score(x, cells), _on_score(x, cells, middle(lengths)) if lengths else None
    return [Effect(family, name, *(one[i] if one else None for one in found)) for i, name in enumerate(names) if name]


def middle(lengths: Sequence[int]) -> int:
    """The middle one of the tested lengths."""
    return lengths[len(lengths) // 2]


def _on_score(x: np.ndarray, cells: list[SearchedCell], length: int | None = None) -> Estimates | None:
    """The effects on the score of every seed, at a length if given."""
    scores = [[max(cell.normalised(line, length), 0.0) for line in cell.lines] for cell in cells]
    return welch(x, [own or [0.0] * len(cell.seeds) for own, cell in zip(scores, cells, strict=True)], FINEST)


def _held(cell: SearchedCell) -> list[float]:
    """The horizon of every seed that solved the case: half of the shortest tested length where it holds none."""
    able = [line for line in cell.lines if solved(line) is not None] if cell.lengths else []
    return [cell.reaches(line) or cell.lengths[0] / 2 for line in able]


def design(factors: dict[str, list[str]], settings: list[tuple[str, ...]]) -> tuple[list[str], np.ndarray]:
    """The names of the columns, empty for the mean, and the matrix (settings, columns) of levels and their products.

    A column of a level is 1 there and 0 elsewhere, less its mean over the levels; so in a balanced design the
    coefficient of a level is its difference from the first level, averaged over the other factors.
    """
    main: dict[str, dict[str, np.ndarray]] = {}
    for place, (factor, levels) in enumerate(factors.items()):
        for level in levels[1:]:
            there = np.array([float(chosen[place] == level) for chosen in settings])
            main.setdefault(factor, {})[f"{factor}={level}"] = there - 1 / len(levels)
    columns = {"": np.ones(len(settings))} | {name: one for own in main.values() for name, one in own.items()}
    for a, b in combinations(main.values(), 2):
        columns |= {f"{m} x {n}": a[m] * b[n] for m, n in product(a, b)}
    return list(columns), np.stack(list(columns.values()), axis=1)


def logistic(x: np.ndarray, successes: np.ndarray, trials: np.ndarray) -> Estimates | None:
    """Coefficients of a logistic model of counts with a log-F(1,1) prior on all but the first, and profile intervals.

    Such a prior is one more trial that half succeeds, of a group whose log-odds are the coefficient. So the posterior
    has one mode. Jeffreys's prior may have several where groups solve all or nothing. The first column is the mean,
    which has no prior; None where all trials or none succeed, for then there is no estimate of it.
    Greenland & Mansournia (2015), Penalization, bias reduction, and default priors in logistic and related categorical
    and survival regressions.

    Args:
        x: the design, (groups, columns).
        successes: by group.
        trials: by group.
    """
    from scipy import optimize, stats

    if successes.sum() in (0, trials.sum()):
        return None
    columns = x.shape[1]
    rows = np.vstack([x, np.eye(columns)[1:]])
    k, n = np.append(successes, np.full(columns - 1, 0.5)), np.append(trials, np.ones(columns - 1))
    beta, least = _fit(rows, k, n, np.zeros(len(rows)))
    limit = least + float(stats.chi2.ppf(LEVEL, 1)) / 2

    def end(j: int, sign: int) -> float:
        """Distance of coefficient j at which the best fit that is left is as bad as the limit."""
        others = np.delete(rows, j, axis=1)

        def beyond(value: float) -> float:
            return _fit(others, k, n, value * rows[:, j])[1] - limit

        far = 1.0
        while beyond(beta[j] + sign * far) < 0:
            far *= 2
        found: Any = optimize.brentq(lambda distance: beyond(beta[j] + sign * distance), 0, far, xtol=1e-4)
        return float(found)

    return [(float(beta[j]), (float(beta[j] - end(j, -1)), float(beta[j] + end(j, 1)))) for j in range(columns)]


def _fit(x: np.ndarray, k: np.ndarray, n: np.ndarray, offset: np.ndarray) -> tuple[np.ndarray, float]:
    """The coefficients of the greatest likelihood, and minus the logarithm of that: Newton's method, steps halved."""

    def loss(beta: np.ndarray) -> float:
        z = offset + x @ beta
        return float(n @ np.logaddexp(0, z) - k @ z)

    beta = np.zeros(x.shape[1])
    for _ in range(ROUNDS):
        p = 1 / (1 + np.exp(-offset - x @ beta))
        step = np.linalg.solve(x.T @ ((n * p * (1 - p))[:, None] * x), x.T @ (k - n * p))
        while loss(beta + step) > loss(beta) and np.abs(step).max() > CLOSE:
            step = step / 2
        beta = beta + step
        if np.abs(step).max() <= CLOSE:
            break
    return beta, loss(beta)


def linear(x: np.ndarray, y: np.ndarray, resolution: float = 0.0) -> Estimates | None:
    """Coefficients of least squares, each with Student's 95 % interval; None where the rows do not determine them.

    Args:
        x: the design, (rows, columns).
        y: by row.
        resolution: the least difference of two of these; their standard deviation is not taken below that of rounding.
    """
    from scipy import stats

    free = len(y) - x.shape[1]
    if free < 1 or np.linalg.matrix_rank(x) < x.shape[1]:
        return None
    beta, *_ = np.linalg.lstsq(x, y, rcond=None)
    variance = max(float(((y - x @ beta) ** 2).sum()) / free, resolution**2 / 12)
    spread = np.sqrt(variance * np.diag(np.linalg.inv(x.T @ x)))
    return _with_intervals(beta, spread, float(stats.t.ppf((1 + LEVEL) / 2, free)))


def welch(x: np.ndarray, samples: Sequence[Sequence[float]], resolution: float = 0.0) -> Estimates | None:
    """Coefficients of the groups' means, each with Welch's 95 % interval; None where one has fewer than two values.

    A coefficient is a weighted sum of means, and its variance that of the weighted variances of the groups, with
    Satterthwaite's degrees of freedom. So a group without spread makes no other's interval shorter.
    Welch (1947), The generalization of 'Student's' problem when several different population variances are involved.

    Args:
        x: the design, (groups, columns).
        samples: the values by group.
        resolution: the least difference of two of these; no standard deviation is taken below that of rounding.
    """
    from scipy import stats

    size = np.array([len(own) for own in samples])
    if size.min() < 2 or np.linalg.matrix_rank(x) < x.shape[1]:
        return None
    weights = np.linalg.pinv(x)
    of_means = np.array([max(float(np.var(own, ddof=1)), resolution**2 / 12) for own in samples]) / size
    parts = weights**2 * of_means
    freedom = parts.sum(1) ** 2 / (parts**2 / (size - 1)).sum(1)
    beta = weights @ np.array([float(np.mean(own)) for own in samples])
    return _with_intervals(beta, np.sqrt(parts.sum(1)), stats.t.ppf((1 + LEVEL) / 2, freedom))


def _with_intervals(beta: np.ndarray, spread: np.ndarray, factor: Any) -> Estimates:
    half = spread * factor
    return [(float(b), (float(b - h), float(b + h))) for b, h in zip(beta, half, strict=True)]
