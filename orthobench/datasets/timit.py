"""TIMIT (Garofolo et al. 1993, LDC93S1): the licensed corpus, and the free sample of 160 utterances that NLTK carries.

Both are found under `data_root/timit`, unpacked at any depth or inside `timit.zip`, in any case:

    .../TRAIN/DR1/FCJF0/SA1.WAV      the corpus; training and test speakers have folders of their own
    .../dr1-fvmh0/sa1.wav            the sample: 16 speakers, all of them training speakers of the corpus

The two SA sentences, which every speaker reads, are dropped (the corpus's testset.doc). The corpus is split into the
462 training speakers, the 50 development speakers of the Kaldi recipe for validation, and the 24 speakers of the core
test set. No split of the sample is published; ours takes one woman and one man for validation and the same for testing,
all four from different dialect regions, whose second speakers stay in training (96 / 16 / 16 utterances).
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Literal

import numpy as np

from orthobench.datasets import digests
from orthobench.datasets.speech_audio import decode
from orthobench.datasets.zips import member, open_zip, read_file
from orthobench.errors import DataError

Name = Literal["full", "sample"]
Choice = Literal["auto", "full", "sample"]
LICENCE = (
    "TIMIT (c) 1993 Linguistic Data Consortium; the sample of 160 utterances is under a Creative Commons "
    "Attribution-NonCommercial-ShareAlike licence."
)
HOW = (
    "`python -m orthobench prepare timit` fetches the free sample of 160 utterances; the whole corpus is licensed by "
    "the Linguistic Data Consortium (LDC93S1) and goes there with its TRAIN and TEST folders"
)
PATTERN = re.compile(r"(?:^|/)(?:(train|test)/)?dr([1-8])[-/]([fm][a-z]{3}\d)/((?:sa|si|sx)\d+)\.wav$", re.IGNORECASE)
CORE_TEST = (
    "mdab0", "mwbt0", "felc0", "mtas1", "mwew0", "fpas0", "mjmp0", "mlnt0", "fpkt0", "mlll0", "mtls0", "fjlm0",
    "mbpm0", "mklt0", "fnlp0", "mcmj0", "mjdh0", "fmgd0", "mgrt0", "mnjm0", "fdhc0", "mjln0", "mpam0", "fmld0",
)  # fmt: skip
DEVELOPMENT = (
    "faks0", "fdac1", "fjem0", "mgwt0", "mjar0", "mmdb1", "mmdm2", "mpdf0", "fcmh0", "fkms0", "mbdg0", "mbwm0",
    "mcsh0", "fadg0", "fdms0", "fedw0", "mgjf0", "mglb0", "mrtk0", "mtaa0", "mtdt0", "mthc0", "mwjg0", "fnmr0",
    "frew0", "fsem0", "mbns0", "mmjr0", "mdls0", "mdlf0", "mdvc0", "mers0", "fmah0", "fdrw0", "mrcs0", "mrjm4",
    "fcal1", "mmwh0", "fjsj0", "majc0", "mjsw0", "mreb0", "fgjd0", "fjmg0", "mroa0", "mteb0", "mjfc0", "mrjr0",
    "fmml0", "mrws1",
)  # fmt: skip
SAMPLE_TRAINING = (
    "fvmh0", "mcpm0", "marc0", "falk0", "madc0", "maeb0", "ftlg0", "mbgt0", "fapb0", "fblv0", "madd0", "fbcg1",
)  # fmt: skip
SAMPLE_VALIDATION = ("faem0", "mbma1")
SAMPLE_TEST = ("falr0", "mbcg0")
SENTENCES = 8
TRAINING_SPEAKERS, TEST_SPEAKERS = 462, 168
ARCHIVE = "timit.zip"
LARGEST_FILE = 4 << 20
UTTERANCES = {
    "full": {"train": 3696, "val": 400, "test": 192},
    "sample": {"train": 96, "val": 16, "test": 16},
}


@dataclass(frozen=True)
class Utterance:
    """A recording that has not been read yet; `part` is `train`, `test`, or empty where the layout does not say."""

    name: str
    part: str
    speaker: str
    sentence: str
    read: Callable[[], bytes]


@dataclass(frozen=True)
class Speech:
    """Recordings (n,) float32 between -1 and 1 at 8 kHz, by split, in order of speaker and sentence.

    Attributes:
        name: `full` or `sample`.
        longest: samples of the longest training recording (`train`) and of the longest of all other recordings
            (`eval`), which include those of the corpus's test speakers that are in neither split.
    """

    name: Name
    splits: dict[str, list[np.ndarray]]
    longest: dict[str, int]


def corpus_name(data_root: Path) -> Name:
    """Name of the corpus under `data_root/timit`, judged by file names; `full`, the papers' data, if there is none."""
    try:
        return _name(utterances(data_root))
    except DataError:
        return "full"


def _name(found: list[Utterance]) -> Name:
    return "full" if any(utterance.part for utterance in found) else "sample"


@lru_cache(maxsize=1)
def load(data_root: Path, corpus: Choice = "auto", verify: bool = True) -> Speech:
    """The recordings of the chosen corpus, without SA sentences, resampled to 8 kHz.

    Args:
        data_root: folder of real data sets.
        corpus: which one is wanted.
        verify: whether recordings of the sample must be the published ones; no digests of the licensed corpus are
            known.

    Raises:
        ConfigError: the package `soundfile` is not installed.
        DataError: there is no such corpus, a sentence is missing, or a recording is malformed.
    """
    found = utterances(data_root)
    name = _name(found)
    if corpus not in ("auto", name):
        home = Path(data_root) / "timit"
        take = f"task.corpus={name} takes that"
        raise DataError(f"task.corpus={corpus} was asked for, and {home} holds the {name} one: {take}. Else {HOW}.")
    chosen = _full_split(found) if name == "full" else _sample_split(found)
    compared = verify and name == "sample"
    read = {split: [resample(_decoded(u, compared)) for u in part] for split, part in chosen.items()}
    longest = {
        "train": max(map(len, read["train"])),
        "eval": max(len(samples) for split in read if split != "train" for samples in read[split]),
    }
    read.pop("other")
    return Speech(name, read, longest)


def _decoded(utterance: Utterance, compared: bool) -> np.ndarray:
    content = utterance.read()
    if compared:
        digests.verify("timit", f"{utterance.speaker}/{utterance.sentence}", content, utterance.name)
    return decode(content, utterance.name)


def utterances(data_root: Path) -> list[Utterance]:
    """Every recording under `data_root/timit` by name, SA sentences left out, in order of speaker and sentence.

    Raises:
        DataError: there is no recording, or one sentence of a speaker occurs twice.
    """
    home = Path(data_root) / "timit"
    if not home.is_dir():
        raise DataError(f"no data for timit: {home} is not a folder; {HOW}.")
    files = {path.relative_to(home).as_posix(): path for path in home.rglob("*.[wW][aA][vV]")}
    found = _matching(files, lambda name: read_file(files[name], LARGEST_FILE), home)
    if not found and (home / ARCHIVE).is_file():
        packed = home / ARCHIVE
        archive = open_zip(read_file(packed), packed)
        found = _matching(archive.namelist(), lambda name: member(archive, name, LARGEST_FILE, packed), packed)
    if not found:
        raise DataError(f"no data for timit: {home} holds no recordings named as TIMIT's; {HOW}.")
    return sorted(found, key=lambda utterance: (utterance.speaker, utterance.sentence))


def _matching(names: Iterable[str], read: Callable[[str], bytes], home: Path) -> list[Utterance]:
    found: dict[tuple[str, str], Utterance] = {}
    for name in sorted(names):
        match = PATTERN.search(name)
        if not match or match[4].lower().startswith("sa"):
            continue
        part, speaker, sentence = (match[1] or "").lower(), match[3].lower(), match[4].lower()
        if (speaker, sentence) in found:
            other = found[speaker, sentence].name
            raise DataError(f"{home / name} and {other} are the same sentence of the same speaker; keep one of them.")
        found[speaker, sentence] = Utterance(str(home / name), part, speaker, sentence, partial(read, name))
    return list(found.values())


def _full_split(found: list[Utterance]) -> dict[str, list[Utterance]]:
    training = {u.speaker for u in found if u.part == "train"}
    others = {u.speaker for u in found if u.part == "test"}
    if len(training) != TRAINING_SPEAKERS or len(others) != TEST_SPEAKERS or training & others:
        raise DataError(
            f"TIMIT has {TRAINING_SPEAKERS} speakers in TRAIN and {TEST_SPEAKERS} others in TEST; "
            f"{len(training)} and {len(others)} were found, {len(training & others)} in both"
            "; put the whole corpus there."
        )
    rest = others - {*DEVELOPMENT, *CORE_TEST}
    return _by_speaker(found, {"train": training, "val": DEVELOPMENT, "test": CORE_TEST, "other": rest})


def _sample_split(found: list[Utterance]) -> dict[str, list[Utterance]]:
    split = {"train": SAMPLE_TRAINING, "val": SAMPLE_VALIDATION, "test": SAMPLE_TEST, "other": ()}
    strangers = {u.speaker for u in found} - {speaker for part in split.values() for speaker in part}
    if strangers:
        raise DataError(
            f"speaker {min(strangers)} is not one of the sample's 16, and there is no TRAIN or TEST folder as in the "
            "whole corpus: put the corpus there with its folders."
        )
    return _by_speaker(found, split)


def _by_speaker(found: list[Utterance], split: dict[str, Iterable[str]]) -> dict[str, list[Utterance]]:
    spoken: dict[str, list[Utterance]] = {}
    for utterance in found:
        spoken.setdefault(utterance.speaker, []).append(utterance)
    for speaker in sorted(speaker for part in split.values() for speaker in part):
        count = len(spoken.get(speaker, []))
        if count != SENTENCES:
            raise DataError(
                f"TIMIT is not complete: speaker {speaker} has {count} SI and SX sentences, not {SENTENCES}"
                "; put the missing recordings there."
            )
    return {part: [u for speaker in sorted(speakers) for u in spoken[speaker]] for part, speakers in split.items()}


def resample(samples: np.ndarray) -> np.ndarray:
    """16 kHz to 8 kHz with a Kaiser window (beta 5) of 41 taps, as Matlab's: (n,) -> (ceil(n / 2),), float32."""
    from scipy.signal import resample_poly

    return resample_poly(samples, 1, 2).astype(np.float32)
