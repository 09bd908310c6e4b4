import io
import os
import shutil
import wave
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from orthobench.datasets import timit
from orthobench.errors import DataError
from tests import conftest

pytest.importorskip("soundfile", reason="the extra `audio` is not installed")
SENTENCES = ("sa1", "sa2", "si100", "si200", "si300", "sx1", "sx2", "sx3", "sx4", "sx5")
SAMPLE = (*timit.SAMPLE_TRAINING, *timit.SAMPLE_VALIDATION, *timit.SAMPLE_TEST)


def recording(length: int = 320) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(16000)
        writer.writeframes(np.full(length, 1000, dtype="<i2").tobytes())
    return file.getvalue()


WAV = recording()


def sample_names() -> list[str]:
    return [f"timit/dr1-{speaker}/{sentence}.wav" for speaker in SAMPLE for sentence in SENTENCES]


def corpus_names() -> list[str]:
    """The layout of LDC93S1 with made-up names for the speakers that no list names."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    invented = [f"mz{a}{b}0" for a in letters for b in letters]
    training, others = invented[:462], invented[462 : 462 + 168 - 74]
    parts = {"TRAIN": training, "TEST": [*timit.DEVELOPMENT, *timit.CORE_TEST, *others]}
    return [
        f"TIMIT/{part}/DR{i % 8 + 1}/{speaker.upper()}/{sentence.upper()}.WAV"
        for part, speakers in parts.items()
        for i, speaker in enumerate(speakers)
        for sentence in SENTENCES
    ]


def write(root: Path, names: list[str], content: Callable[[str], bytes] = lambda name: WAV) -> Path:
    return conftest.write(root, {f"timit/{name}": content(name) for name in names})


def pack(root: Path, names: list[str]) -> Path:
    return conftest.write(root, {"timit/timit.zip": conftest.zipped(dict.fromkeys(names, WAV))})


def sizes(speech: timit.Speech) -> dict[str, int]:
    return {split: len(part) for split, part in speech.splits.items()}


@pytest.mark.parametrize("packed", [False, True])
def test_the_sample_is_read_from_a_folder_or_a_zip(tmp_path: Path, packed: bool) -> None:
    root = (pack if packed else write)(tmp_path, sample_names())
    assert timit.corpus_name(root) == "sample"
    speech = timit.load(root)
    assert speech.name == "sample"
    assert sizes(speech) == timit.UTTERANCES["sample"]
    assert speech.splits["test"][0].shape == (160,)
    assert speech.splits["test"][0].dtype == np.float32


@pytest.mark.slow
@pytest.mark.parametrize("case", [str, str.lower])
def test_the_corpus_is_split_by_the_published_speakers(tmp_path: Path, case: Callable[[str], str]) -> None:
    extra = next(name for name in reversed(corpus_names()) if "/TEST/" in name and "/SX5" in name)
    root = write(
        tmp_path, [case(name) for name in corpus_names()], lambda name: recording(640 if name == case(extra) else 320)
    )
    assert timit.corpus_name(root) == "full"
    speech = timit.load(root, "full")
    assert sizes(speech) == timit.UTTERANCES["full"]
    assert speech.longest == {"train": 160, "eval": 320}  # one of the speakers that only lengthen the mean


def test_speakers_are_disjoint_and_of_both_sexes() -> None:
    assert len(timit.DEVELOPMENT) == 50
    assert len(timit.CORE_TEST) == 24
    assert not set(timit.DEVELOPMENT) & set(timit.CORE_TEST)
    assert len(set(SAMPLE)) == 16
    for part in (timit.SAMPLE_VALIDATION, timit.SAMPLE_TEST):
        assert {speaker[0] for speaker in part} == {"f", "m"}


def test_sa_sentences_are_dropped(tmp_path: Path) -> None:
    found = timit.utterances(write(tmp_path, sample_names()))
    assert len(found) == 128
    assert not any(utterance.sentence.startswith("sa") for utterance in found)


@pytest.mark.parametrize("corpus", ["auto", "full", "sample"])
@pytest.mark.parametrize("state", ["no folder", "empty", "strange names"])
def test_absent_data_is_a_data_error_that_says_how_to_get_it(tmp_path: Path, state: str, corpus: timit.Choice) -> None:
    if state != "no folder":
        (tmp_path / "timit").mkdir()
    if state == "strange names":
        write(tmp_path, ["a.wav", "dr9-fvmh0/sx1.wav", "dr1-fvmh0/sz1.wav", "dr1-fvmh0/sx1.wav.wav"])
    assert timit.corpus_name(tmp_path) == "full"
    with pytest.raises(DataError, match=r"prepare timit.*Linguistic Data\s+Consortium"):
        timit.load(tmp_path, corpus)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda names: names[:-1], "speaker mbcg0 has 7 SI and SX sentences, not 8"),
        (lambda names: [*names, "timit/dr1-fvmh0/sx9.wav"], "speaker fvmh0 has 9"),
        (lambda names: [*names, "dr1-fvmh0/SX5.WAV"], "same sentence of the same speaker"),
        (lambda names: [*names, "timit/dr2-mzzz0/sx1.wav"], "speaker mzzz0 is not one of the sample's 16"),
        (lambda names: [*names, "TRAIN/DR1/FCJF0/SX1.WAV"], "1 and 0 were found"),
    ],
)
def test_half_a_corpus_is_refused(tmp_path: Path, change: Callable[[list[str]], list[str]], sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        timit.load(write(tmp_path, change(sample_names())))


def test_the_wrong_corpus_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"task\.corpus=full was asked for, and .* holds the sample one"):
        timit.load(write(tmp_path, sample_names()), "full")


def test_a_damaged_recording_is_named(tmp_path: Path) -> None:
    names = sample_names()
    write(tmp_path, names, lambda name: WAV[:-1] if name == names[-1] else WAV)
    with pytest.raises(DataError, match=r"dr1-mbcg0/sx5\.wav promises"):
        timit.load(tmp_path)


@pytest.mark.parametrize("content", [b"", b"PK\5\6", b"<html>404</html>", bytes(1000)])
def test_a_zip_that_is_none_is_refused(tmp_path: Path, content: bytes) -> None:
    conftest.write(tmp_path, {"timit/timit.zip": content})
    with pytest.raises(DataError, match=r"timit\.zip is not a whole zip archive"):
        timit.load(tmp_path)


def test_resampling_keeps_speech_and_removes_what_8_khz_cannot_hold() -> None:
    time = np.arange(16000) / 16000
    kept, lost = (timit.resample(np.sin(2 * np.pi * frequency * time)) for frequency in (440, 6000))
    assert kept.shape == (8000,)
    assert np.abs(kept[100:-100] - np.sin(2 * np.pi * 440 * time[::2])[100:-100]).max() < 2e-3  # ripple of the filter
    assert np.abs(lost[100:-100]).max() < 2e-3
    assert timit.resample(np.ones(7)).shape == (4,)


@pytest.mark.data
def test_the_real_sample_has_160_utterances_of_16_speakers(tmp_path: Path) -> None:
    home = Path(os.environ["ORTHOBENCH_DATA"]) / "timit"
    with zipfile.ZipFile(home / "timit.zip") as archive:
        assert sum(name.endswith(".wav") for name in archive.namelist()) == 160
        (tmp_path / "timit").mkdir()
        archive.extractall(tmp_path / "timit")
    speech, unpacked = timit.load(home.parent), timit.load(tmp_path)
    assert speech.name == "sample"
    assert sizes(speech) == {"train": 96, "val": 16, "test": 16}
    assert sum(len(signal) for part in speech.splits.values() for signal in part) == 3_121_560
    for split, part in speech.splits.items():
        for one, other in zip(part, unpacked.splits[split], strict=True):
            assert np.array_equal(one, other)
    shutil.rmtree(tmp_path / "timit")
