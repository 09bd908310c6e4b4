"""The .ts files of the UEA archive, alone and in pairs."""

from pathlib import Path

import numpy as np
from hypothesis import strategies as st

from orthobench.datasets import sequences
from orthobench.datasets.words import alike
from tests.outside import Draw, accepted, kind
from tests.outside.words import NAMES, NUMBERS, WRONG, number

LABELS = NAMES.filter(lambda name: name != "" and not set("\0\r\n:") & set(name))


@kind
def ts(draw: Draw, folder: Path) -> None:
    """Every label is a class, of numbers a target; the second file of a pair writes classes as the first one does."""
    numeric, pair = draw.sometimes(False, True), draw.sometimes(False, True)
    labels = draw(st.lists(NUMBERS if numeric else LABELS, min_size=2, max_size=3, unique=True))
    others = (
        draw(st.lists(NUMBERS if numeric else LABELS, min_size=1, max_size=2))
        if draw.sometimes(False, True)
        else labels
    )
    I = draw(st.integers(1, 2))
    space = draw.sometimes(" ", "\t", "  ")
    header = f"@{draw.one('targetLabel', 'TARGETLABEL') if numeric else 'classLabel'}{space}true"
    odd = draw.sometimes("", "timestamps", "no label", "cell", "no data", "steps")
    lines, values = zip(*(_line(draw, label, I) for label in labels), strict=True)
    lines = list(lines)
    if odd == "timestamps":
        header, lines = f"@timeStamps{space}true\n{header}", [f"(2007-01-01 00:00:00,{line}" for line in lines]
    elif odd == "no label":
        header = draw.one("@classLabel false", "@problemName x", "@classlabel\tFALSE", "@")
    elif odd == "cell":
        lines[0] = f"{draw(WRONG.filter(lambda cell: ',' not in cell))}:" * I + labels[0]
    elif odd == "steps" and I > 1:
        lines[0] = "1,2:1:" + labels[0]
    name = "my_TRAIN.ts" if pair else "my.ts"
    encoding, end = draw.sometimes("utf-8", "utf-8-sig", "latin-1"), draw.sometimes("\n", "\r\n")
    start = "" if odd == "no data" else f"@data{draw.sometimes('', ' ')}\n"
    _written(folder / name, f"# a comment\n{header}\n{start}" + "".join(f"{line}\n" for line in lines), encoding, end)
    if pair:
        more = "".join(f"{'1:' * I}{label}\n" for label in others)
        _written(folder / "my_TEST.ts", f"{header}\n@data\n{more}", "utf-8", "\n")
    targets = not numeric or all(number(label) is not None for label in (*labels, *others))
    spelled = not pair or numeric or all(one in labels or alike(one) not in map(alike, labels) for one in others)
    if not targets or not spelled or odd not in ("", "steps", "cell") or (odd == "steps" and I > 1):
        sequences.load(folder / name)
        raise AssertionError("read in spite of what is wrong")
    if odd == "cell":
        sequences.load(folder / name)
        return
    with accepted():
        found = sequences.load(folder / name)
    for n, own in enumerate(values):
        np.testing.assert_array_equal(found.x[n, : found.lengths[n]].T, own)
    expected = [*labels, *(others if pair else [])]
    assert found.declared == ("value" if numeric else "class")
    assert (
        (found.y.tolist() == [number(label) for label in expected]) if numeric else (found.names.tolist() == expected)
    )


def _line(draw: Draw, label: str, I: int) -> tuple[str, list[list[float | None]]]:
    T = draw(st.integers(1, 3))
    cells = [[draw(NUMBERS) for _ in range(T)] for _ in range(I)]
    values = [[number(cell) for cell in own] for own in cells]
    return ":".join([*(",".join(own) for own in cells), label]), values


def _written(path: Path, text: str, encoding: str, end: str) -> None:
    try:
        path.write_bytes(text.replace("\n", end).encode(encoding))
    except UnicodeEncodeError:
        path.write_bytes(text.replace("\n", end).encode("utf-8"))
