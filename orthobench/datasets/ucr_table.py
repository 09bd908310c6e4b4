"""The sizes of the 21 UCR data sets of Spectral-RNN's Table 4 (Zhang, Lei & Dhillon 2018), known without the data.

Names, TRAIN and TEST are the 2018 archive's. Three sets have them exchanged with respect to the 2015 archive that the
paper used; DistalPhalanxTW's printed 154/399 are another set's sizes, its accuracies are multiples of 1/400. Class
counts are in the order of the labels; they were counted in the files, but for TEST of ECG5000 and InsectWingbeatSound,
which are as published.
"""

from dataclasses import dataclass
from typing import Literal

Archive = Literal["archive", "2015"]


@dataclass(frozen=True)
class Entry:
    """Entry of a data set.

    Attributes:
        name: its name in the 2018 archive.
        name_2015: its name in the 2015 archive.
        length: L, the number of values of a series.
        depth: the number of steps in the paper; each step reads L / depth values.
        outputs: the paper's n_y, inferred from its parameter counts: mostly the largest label plus one.
        train: series per class in TRAIN.
        test: series per class in TEST.
        swapped: whether the 2015 archive's TRAIN is this TEST and the reverse.
    """

    name: str
    name_2015: str
    length: int
    depth: int
    outputs: int
    train: tuple[int, ...]
    test: tuple[int, ...]
    swapped: bool = False

    def counts(self, archive: Archive) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Series per class in TRAIN and TEST, by archive."""
        return (self.test, self.train) if self.swapped and archive == "2015" else (self.train, self.test)


def _entry(
    name: str, name_2015: str, length: int, depth: int, outputs: int, train: str, test: str, swapped: bool = False
) -> Entry:
    counts = (tuple(map(int, text.split())) for text in (train, test))
    return Entry(name, name_2015, length, depth, outputs, *counts, swapped=swapped)


# fmt: off
ENTRIES = (
    _entry(
        "FiftyWords", "50words", 270, 27, 50,
        "52 49 33 20 13 15 16 11 11 10 10 13 14 8 7 6 7 8 9 7 7 5 6 4 2 6 4 6 4 6 3 7 5 3 6 6 5 4 4 4 1 2 4 6 "
        "4 4 4 5 2 2",
        "57 42 28 34 25 19 16 13 13 12 12 9 7 10 9 8 7 5 4 6 5 6 4 6 8 4 6 3 5 3 6 2 3 5 2 2 3 4 4 4 6 5 3 1 "
        "3 3 3 2 4 4",
    ),
    _entry(
        "Adiac", "Adiac", 176, 16, 38,
        "13 10 5 14 4 12 10 13 9 11 10 12 6 11 12 10 11 9 14 9 8 10 9 15 13 9 13 13 9 13 9 13 13 9 10 11 8",
        "7 13 15 6 16 8 10 12 11 9 10 14 14 9 9 10 9 13 12 12 12 10 11 8 16 11 7 7 11 7 11 7 7 11 10 14 12",
    ),
    _entry("ArrowHead", "ArrowHead", 251, 251, 3, "12 12 12", "69 53 53"),
    _entry("Beef", "Beef", 470, 47, 6, "6 6 6 6 6", "6 6 6 6 6"),
    _entry("BeetleFly", "BeetleFly", 512, 32, 3, "10 10", "10 10"),
    _entry("CBF", "CBF", 128, 16, 4, "10 12 8", "300 298 302"),
    _entry("Coffee", "Coffee", 286, 22, 2, "14 14", "15 13"),
    _entry(
        "CricketX", "Cricket_X", 300, 20, 13,
        "38 31 34 35 27 34 36 31 25 28 39 32",
        "27 34 31 30 38 31 29 34 40 37 26 33",
    ),
    _entry("DistalPhalanxOutlineCorrect", "DistalPhalanxOutlineCorrect", 80, 10, 2, "222 378", "115 161", swapped=True),
    _entry("DistalPhalanxTW", "DistalPhalanxTW", 80, 10, 9, "29 28 82 30 18 213", "18 19 39 13 8 42", swapped=True),
    _entry("ECG200", "ECG200", 96, 12, 2, "31 69", "36 64"),
    _entry("ECG5000", "ECG5000", 140, 14, 6, "292 177 10 19 2", "2627 1590 86 175 22"),
    _entry("ECGFiveDays", "ECGFiveDays", 136, 17, 3, "14 9", "428 433"),
    _entry(
        "FaceAll", "FaceAll", 131, 131, 15,
        "40 40 40 40 40 40 40 40 40 40 40 40 40 40",
        "72 138 136 131 136 147 109 233 100 95 8 66 287 32",
    ),
    _entry("FaceFour", "FaceFour", 350, 25, 5, "8 8 3 5", "14 26 26 22"),
    _entry(
        "FacesUCR", "FacesUCR", 131, 131, 15,
        "13 12 10 22 15 13 14 27 12 8 4 11 33 6",
        "99 166 166 149 161 174 135 246 128 127 44 95 294 66",
    ),
    _entry("GunPoint", "Gun_Point", 150, 15, 3, "24 26", "76 74"),
    _entry(
        "InsectWingbeatSound", "InsectWingbeatSound", 256, 16, 12,
        "20 20 20 20 20 20 20 20 20 20 20",
        "180 180 180 180 180 180 180 180 180 180 180",
    ),
    _entry("ItalyPowerDemand", "ItalyPowerDemand", 24, 6, 3, "34 33", "513 516"),
    _entry("Lightning2", "Lighting2", 637, 49, 2, "20 40", "28 33"),
    _entry("MiddlePhalanxOutlineCorrect", "MiddlePhalanxOutlineCorrect", 80, 10, 2, "212 388", "125 166", swapped=True),
)
# fmt: on


def lookup(dataset: str) -> Entry | None:
    """The entry of a data set by either of its names; None when it has none."""
    return next((entry for entry in ENTRIES if dataset in (entry.name, entry.name_2015)), None)
