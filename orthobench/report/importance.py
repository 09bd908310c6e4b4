"""The picture of a tuning: how much each setting mattered, and the score of every trial."""

from collections.abc import Mapping, Sequence

from orthobench.report import drawing

Tried = tuple[int, float]  # number of the trial, its score


def picture(shares: Mapping[str, float], scores: Sequence[Tried], score: str, higher: bool) -> str:
    """Two panels as SVG: the importances, and the scores of the finished trials with the best so far.

    Args:
        shares: importance of each setting, in shares of 1; without any, the first panel says so.
        scores: of the finished trials, by number.
        score: the name of the score.
        higher: whether more of it is better.
    """
    figure = drawing.empty(8.4, 1.6 + 0.3 * max(len(shares), 4))
    bars, trials = figure.subplots(1, 2)
    names = sorted(shares, key=lambda name: shares[name])
    bars.barh(range(len(names)), [shares[name] for name in names], color=drawing.colour(0), height=0.6)
    bars.set_yticks(range(len(names)), [drawing.plain(name) for name in names])
    bars.set(title="importance (PED-ANOVA)", xlabel="share", xlim=(0, 1), ylim=(-0.5, max(len(names), 4) - 0.5))
    if not names:
        bars.text(0.5, 0.5, "too few finished trials", ha="center", va="center", transform=bars.transAxes)
    numbers, values = [number for number, _ in scores], [value for _, value in scores]
    best = [(max if higher else min)(values[: place + 1]) for place in range(len(values))]
    trials.plot(numbers, values, "o", color=drawing.colour(0), markersize=4, label="trial")
    trials.step(numbers, best, where="post", color=drawing.colour(1), linewidth=1.4, label="best so far")
    if values and min(values) > 0 and max(values) / min(values) > drawing.LOG_RATIO:
        trials.set_yscale("log")
    trials.set(title="validation", xlabel="trial", ylabel=drawing.words(score))
    trials.legend(fontsize=7, frameon=False)
    return drawing.svg(figure)
