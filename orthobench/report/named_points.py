"""Names beside the points of a figure, none of them on another."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    Point = tuple[float, float]

BESIDE = (5.0, 3.0)  # of a name from its point, in points of print
STEP, MOST = 1.5, 60  # how far a name is moved at a time, in points of print, and how often at the most
MARK = 3.0  # half of a mark
LINE = {"arrowstyle": "-", "color": "#888888", "linewidth": 0.5, "shrinkA": 0, "shrinkB": 2, "relpos": (0, 0.5)}


def name_points(axes: "Axes", names: "list[tuple[Point, str]]", marks: "list[Point]") -> None:
    """Write each name at the nearest place above or below where it lies on no other name, no mark and no legend.

    A thin line leads from a name that was moved to its point. To be called when scales, labels and legend are set.

    Args:
        axes: where the points are.
        names: a point and its name.
        marks: the points that have a mark.
    """
    from matplotlib.transforms import Bbox

    figure: Any = axes.figure
    texts = [axes.annotate(name, point, BESIDE, textcoords="offset points", fontsize=7) for point, name in names]
    figure.draw_without_rendering()
    dot, inside, legend = figure.dpi / 72, axes.get_window_extent(), axes.get_legend()
    half = MARK * dot
    taken = [Bbox([[x - half, y - half], [x + half, y + half]]) for x, y in axes.transData.transform(marks)]
    taken += [] if legend is None else [legend.get_window_extent()]
    shifts = sorted((STEP * number for number in range(-MOST, MOST + 1)), key=lambda shift: (abs(shift), -shift))
    for text in sorted(texts, key=lambda one: one.get_window_extent().y0):
        own = text.get_window_extent()
        for shift in shifts:
            box = own.translated(0.0, shift * dot)
            if inside.y0 <= box.y0 and box.y1 <= inside.y1 and not any(box.overlaps(other) for other in taken):
                break
        else:  # no room: it stays beside its point
            shift, box = 0.0, own
        taken.append(box)
        if shift:
            place = BESIDE[0], BESIDE[1] + shift
            axes.annotate(text.get_text(), text.xy, place, textcoords="offset points", fontsize=7, arrowprops=LINE)
            text.remove()
