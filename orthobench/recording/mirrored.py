"""Contents that a mirror is given beside the curve: group and tags first; scores, figures and weights at the end."""

import io
from pathlib import Path
from typing import Any

from orthobench.config.recorded import by_key
from orthobench.config.settings import Settings
from orthobench.recording.curve import Curve

FIRST_SEED = 1
LONGEST = 64  # characters of a tag
BEST, LAST = "best by validation", "last weights"


def group_of(settings: Settings) -> str:
    """The group of a run: that which is asked for, the row of its table, or its settings, whatever the seed."""
    asked = settings.logger.get("group") or settings.run.get("cell")
    return asked or settings.with_seed(FIRST_SEED).run_id


def tags_of(settings: Settings) -> list[str]:
    """The tags of a run: those that are asked for, its model and task, and its row where it is of a table."""
    T = settings.task.get("T")
    own = (settings.model["name"], settings.task["name"], f"T={T}" if T else None, settings.run.get("cell"))
    return list(dict.fromkeys(tag[:LONGEST] for tag in (*settings.logger.get("tags", ()), *own) if tag))


def plain_settings(settings: Settings) -> dict[str, Any]:
    """The settings that change the numbers by their keys, as numbers and text."""
    found = by_key(settings.as_dict())
    return {key: value if isinstance(value, bool | int | float | str) else str(value) for key, value in found.items()}


def scores(record: dict[str, Any]) -> dict[str, float]:
    """The scores of a finished run by name: of the weights that validation chose, and of the last ones."""
    return {
        f"{which}/{name}": value
        for which in ("best_val", "last")
        for name, value in (record["metrics"][which] or {}).items()
        if value is not None
    }


def score_rows(record: dict[str, Any]) -> tuple[list[Any], Any]:
    """Columns and rows of the table of scores, the trivial predictor's beside them."""
    best, last = (record["metrics"][which] or {} for which in ("best_val", "last"))
    rows = [[name, best[name], last.get(name), record["baseline"].get(name.rpartition("/")[2])] for name in best]
    return ["metric", BEST, LAST, "trivial predictor"], rows


def figures(curve: Curve) -> dict[str, Any]:
    """Pictures of a run, as Pillow has them: each metric of training and validation over the steps."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # neither a `matplotlibrc` of the working folder nor a style of the user's
        return _drawn(curve)


def _drawn(curve: Curve) -> dict[str, Any]:
    from matplotlib.figure import Figure
    from PIL import Image

    found: dict[str, dict[str, list[list[float]]]] = {}
    for name, points in curve.points().items():
        split, _, metric = name.partition("/")
        if split in ("train", "val") and len(points) > 1:
            found.setdefault(metric, {})[split] = points
    drawn = {}
    for metric, splits in found.items():
        figure, png = Figure(figsize=(6, 4), layout="constrained"), io.BytesIO()
        axes = figure.subplots()
        for split, points in splits.items():
            axes.plot(*zip(*points, strict=True), label={"train": "training", "val": "validation"}[split])
        axes.set(xlabel="training steps", ylabel=metric.replace("/", " "))
        axes.legend()
        figure.savefig(png, format="png", dpi=150)
        drawn[metric] = Image.open(png)
    return drawn


def checkpoints(folder: Path) -> dict[str, Path]:
    """The files of weights in a run's folder that are there, by their names."""
    paths = {name: folder / "checkpoints" / name for name in ("best.ckpt", "last.ckpt")}
    return {name: path for name, path in paths.items() if path.is_file()}
