"""Pictures of a model's answers: the confusion of classes, answers against targets, and the worst sequences."""

from math import isqrt
from typing import TYPE_CHECKING, Any

from orthobench.report import drawing
from orthobench.run.predictions import Answered, Predictions

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LARGEST, WRITTEN = 40, 12  # classes of a confusion matrix; those whose shares are written into it
COLUMNS = 60  # steps of a sequence of classes that are shown
BLANK = "\u2423"  # for a class that is a space
CHANNELS = 6  # of a sequence that are drawn as lines


def figures(found: Predictions, run_id: str, image: bool = False) -> "dict[str, Figure]":
    """By title, every picture of the answers.

    Args:
        found: the answers.
        run_id: the run's name.
        image: whether a sequence is the pixels of a square image, row by row.
    """
    made: dict[str, Figure] = {}
    if found.confusion is not None and len(found.confusion) <= LARGEST:
        made[f"{run_id}: confusion of classes"] = _confusion(found)
    if found.pairs:
        made[f"{run_id}: answers against targets"] = _against(found)
    if found.worst:
        draw = _classes if found.classes and found.every_step else _inputs
        made[f"{run_id}: worst test sequences"] = draw(found, image)
    return made


def _confusion(found: Predictions) -> "Figure":
    """A row per target with the shares of the answers to it."""
    assert found.confusion is not None
    counts = found.confusion
    shares = counts / counts.sum(1, keepdim=True).clamp(min=1)
    side = 2.6 + 0.34 * min(len(counts), 20)
    figure, axes = drawing.subplot(side + 0.9, side)
    shown = axes.imshow(shares.numpy(), cmap="Blues", vmin=0, vmax=1)
    names = [drawing.plain(name)[:12] for name in found.classes]
    small = 8 if len(names) <= 20 else 5
    axes.set_xticks(range(len(names)), names, fontsize=small, rotation=90 if max(map(len, names)) > 3 else 0)
    axes.set_yticks(range(len(names)), names, fontsize=small)
    if len(names) <= WRITTEN:
        for row, values in enumerate(shares.tolist()):
            for column, share in enumerate(values):
                if share >= 0.005:
                    ink = "white" if share > 0.6 else "black"
                    axes.text(column, row, f"{share:.2f}".lstrip("0"), ha="center", va="center", fontsize=7, color=ink)
    right = counts.diagonal().sum() / counts.sum().clamp(min=1)
    told = f"answer; {float(right):.1%} right, {found.count:,} test sequences"
    axes.set_xlabel(told, fontsize=9)
    axes.set_ylabel("target", fontsize=9)
    bar = figure.colorbar(shown, ax=axes, shrink=0.8)
    bar.set_label("share of the answers to a target", fontsize=9)
    bar.ax.tick_params(labelsize=8)
    return figure


def _against(found: Predictions) -> "Figure":
    """A mark per value, on the diagonal where the answer is right."""
    figure, axes = drawing.subplot(4.6, 4.2)
    targets, answers = zip(*found.pairs, strict=True)
    ends = min(*targets, *answers), max(*targets, *answers)
    axes.plot(ends, ends, color="0.5", linewidth=1, label="right")
    axes.plot(targets, answers, ".", color=drawing.colour(0), markersize=3, alpha=0.5, label="answer")
    axes.set(xlabel=f"target; {found.count:,} test sequences", ylabel="answer")
    axes.grid(alpha=0.25, linewidth=0.6)
    axes.legend(fontsize=8, frameon=False)
    return figure


def _classes(found: Predictions, image: bool) -> "Figure":
    """Each sequence as a row of targets above the row of answers, what is wrong in a frame."""
    rows = len(found.worst)
    figure = drawing.empty(8.4, 0.5 + 1.15 * rows)
    usual = int(found.confusion.sum(1).argmax()) if found.confusion is not None else 0
    for axes, one in zip(figure.subplots(rows, 1, squeeze=False)[:, 0], found.worst, strict=True):
        _strip(axes, one, _shown(one, usual), found.classes)
        axes.set_title(f"sequence {one.number:,}: loss {one.loss:.4g}, {_right(one):.1%} right", fontsize=8, loc="left")
    axes.set_xlabel("time step" if found.worst[0].asked is None else "time step, of those that are asked", fontsize=9)
    return figure


def _shown(one: Answered, usual: int) -> list[int]:
    """The steps to show: those asked, or from the first to the last at which not the usual class is asked."""
    if one.asked is not None:
        return one.asked.nonzero().flatten().tolist()[-COLUMNS:]
    T, told = len(one.target), (one.target != usual).nonzero().flatten().tolist()
    first, last = (told[0] - 1, told[-1] + 2) if told else (0, T)
    return list(range(max(first, last - COLUMNS, 0), min(last, T)))


def _right(one: Answered) -> float:
    same = one.target == one.answer
    return float((same if one.asked is None else same[one.asked]).double().mean())


def _strip(axes: "Axes", one: Answered, steps: list[int], classes: tuple[str, ...]) -> None:
    """Targets and answers of some steps as coloured cells with their classes."""
    from matplotlib.patches import Rectangle

    pairs = [one.target[steps].tolist(), one.answer[steps].tolist()]
    axes.imshow(pairs, cmap="tab20", vmin=0, vmax=max(len(classes) - 1, 19), aspect="auto", alpha=0.45)
    size = 7 if len(steps) <= 40 else 6
    for column, (target, answer) in enumerate(zip(*pairs, strict=True)):
        for row, number in enumerate((target, answer)):
            text = drawing.plain(classes[number])[:3] or BLANK
            axes.text(column, row, text, ha="center", va="center", fontsize=size)
        if target != answer:
            axes.add_patch(Rectangle((column - 0.5, 0.5), 1, 1, fill=False, edgecolor="#d00000", linewidth=1.2))
    ticks = range(0, len(steps), max(len(steps) // 10, 1))
    axes.set_xticks(ticks, [f"{steps[tick] + 1:,}" for tick in ticks], fontsize=7)
    axes.set_yticks([0, 1], ["target", "answer"], fontsize=8)


def _inputs(found: Predictions, image: bool) -> "Figure":
    """Each sequence as its input, with target and answer; where every step is answered, these instead."""
    rows = -(-len(found.worst) // 2)
    figure = drawing.empty(8.4, 0.5 + 2.3 * rows)
    places = figure.subplots(rows, 2, squeeze=False).flatten()
    for axes, one in zip(places, found.worst, strict=False):
        if found.every_step and one.target.dim() > 0:
            _signal(axes, one)
        else:
            _input(axes, one, image)
        told = f"sequence {one.number:,}: loss {one.loss:.4g}"
        if not found.every_step:
            told += f"\ntarget {_value(one.target, found)}, answer {_value(one.answer, found)}"
        axes.set_title(told, fontsize=8, loc="left")
    for axes in places[len(found.worst) :]:
        axes.set_axis_off()
    return figure


def _value(value: Any, found: Predictions) -> str:
    """A class by its name, a value with four digits."""
    if found.classes:
        return drawing.plain(found.classes[int(value)])[:20]
    return ", ".join(f"{one:.4g}" for one in value.flatten().tolist()[:4])


def _input(axes: "Axes", one: Answered, image: bool) -> None:
    """The input: an image, a line per channel, or a picture of many channels."""
    x = one.x
    if image and isqrt(x.numel()) ** 2 == x.numel():
        side = isqrt(x.numel())
        axes.imshow(x.reshape(side, side).numpy(), cmap="gray_r")
        axes.set_xticks([])
        axes.set_yticks([])
        return
    if x.dim() == 2 and x.shape[1] > CHANNELS:
        extent = (0.5, len(x) + 0.5, 0.5, x.shape[1] + 0.5)
        axes.imshow(x.T.numpy(), aspect="auto", cmap="viridis", origin="lower", extent=extent)
        axes.set_ylabel("channel")
    else:
        for number, channel in enumerate(x.reshape(len(x), -1).T.tolist()):
            name = "token" if not x.is_floating_point() else f"channel {number + 1}"
            marked = {"marker": "o", "markersize": 3} if len(x) <= COLUMNS else {}
            axes.plot(range(1, len(x) + 1), channel, color=drawing.colour(number), linewidth=1, label=name, **marked)
        if x.dim() == 2 and x.shape[1] > 1:
            axes.legend(fontsize=7, frameon=False)
        elif not x.is_floating_point():
            axes.set_ylabel("token")
    drawing.whole(axes)
    axes.set_xlabel("time step")


def _signal(axes: "Axes", one: Answered) -> None:
    """Target and answer over time: two lines, or two pictures of many channels, one above the other."""
    T = len(one.target)
    target, answer = (values.reshape(T, -1) for values in (one.target, one.answer))
    channels = target.shape[1]
    if channels > 1:
        both = [*answer.T.tolist(), *target.T.tolist()]
        axes.imshow(both, aspect="auto", cmap="viridis", origin="lower", extent=(0.5, T + 0.5, 0, 2 * channels))
        axes.axhline(channels, color="white", linewidth=2)
        axes.set_yticks([channels / 2, 3 * channels / 2], ["answer", "target"], fontsize=8)
    else:
        for number, (name, values) in enumerate({"target": target, "answer": answer}.items()):
            line = values[:, 0].tolist()
            axes.plot(range(1, T + 1), line, color=drawing.colour(number), linewidth=1, label=name)
        axes.legend(fontsize=7, frameon=False)
    drawing.whole(axes)
    axes.set_xlabel("time step")
