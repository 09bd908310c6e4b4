import io
import os
import struct
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orthobench.datasets.speech_audio import decode
from orthobench.errors import ConfigError, DataError

soundfile = pytest.importorskip("soundfile", reason="the extra `audio` is not installed")
SAMPLES = (1000 * np.sin(np.arange(400) / 7)).astype(np.int16)


def encoded(samples: np.ndarray = SAMPLES, rate: int = 16000, subtype: str = "PCM_16", form: str = "WAV") -> bytes:
    file = io.BytesIO()
    soundfile.write(file, samples, rate, subtype=subtype, format=form)
    return file.getvalue()


def sphere(samples: np.ndarray = SAMPLES, count: int | None = None, order: str = "01", fields: str = "") -> bytes:
    """A file as TIMIT's: a text header of 1024 bytes, then samples."""
    count = len(samples) if count is None else count
    header = (
        f"NIST_1A\n   1024\ndatabase_id -s5 TIMIT\nchannel_count -i 1\nsample_count -i {count}\nsample_rate -i 16000\n"
        f"sample_n_bytes -i 2\nsample_byte_format -s2 {order}\nsample_sig_bits -i 16\n{fields}end_head\n"
    )
    return header.encode().ljust(1024) + samples.astype("<i2" if order == "01" else ">i2").tobytes()


@pytest.mark.parametrize(
    "content",
    [encoded(), sphere(), sphere(order="10"), encoded(form="NIST")],
    ids=["RIFF", "SPHERE", "SPHERE, big endian", "SPHERE by libsndfile"],
)
def test_both_forms_give_the_same_samples(content: bytes) -> None:
    assert np.array_equal(decode(content, "sa1.wav"), SAMPLES / 32768)


def patched(content: bytes, place: int, number: int) -> bytes:
    return content[:place] + struct.pack("<I", number) + content[place + 4 :]


WAV = encoded()
FLOAT = encoded(np.array([0.5, np.nan, 0.25]), subtype="FLOAT")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "neither RIFF nor NIST SPHERE audio: it begins with nothing"),
        (b"OggS" + bytes(40), "neither RIFF"),
        (b"\xef\xbb\xbf" + WAV, "neither RIFF"),
        (encoded(form="FLAC"), "neither RIFF"),
        (WAV[:11], "another kind than WAVE"),
        (b"RIFF" + WAV[4:8] + b"AVI " + WAV[12:], "another kind than WAVE"),
        (WAV[:-1], "cut short"),
        (WAV[: len(WAV) // 2], "cut short"),
        (WAV + b"xxxx", "cut short or damaged"),
        (patched(WAV, 4, 0xFFFFFFFF), "promises 4294967303 bytes"),
        (patched(WAV, 40, 0xFFFFFFFF), "chunk b'data' at byte 36: 4294967295 bytes are promised"),
        (patched(WAV, 16, 0x7FFFFFFF), "chunk b'fmt '"),
        (patched(WAV, 40, 799), "promises 799 bytes of samples"),
        (WAV[:36] + b"tada" + WAV[40:], "no data chunk"),
        (encoded(np.zeros(0, dtype=np.int16)), "no samples"),
        (encoded(np.stack([SAMPLES, SAMPLES], axis=1)), r"2 channel\(s\), PCM_16, 16000 Hz"),
        (encoded(subtype="PCM_U8"), "PCM_U8"),
        (encoded(subtype="PCM_24"), "PCM_24"),
        (encoded(rate=44100), "44100 Hz"),
        (FLOAT, "FLOAT"),
        (sphere()[:-1], "promises 800 bytes of samples and has 799"),
        (sphere(count=2_000_000_000), "no sample_count"),
        (sphere(count=399), "promises 798"),
        (sphere(np.zeros(0)), "no samples|cannot be decoded"),
        (sphere().replace(b"sample_count -i", b"sample_sum -i  "), "no sample_count"),
        (sphere().replace(b"end_head", b"END_HEAD"), "no end_head"),
        (sphere().replace(b"   1024\n", b"   9999\n"), "header's length"),
        (sphere().replace(b"   1024\n", b"   -1  \n"), "header's length"),
        (sphere().replace(b"channel_count -i 1", b"channel_count -i 2"), "channel|cannot be decoded|could be read"),
        (sphere().replace(b"-i 16000", b"-i 44100"), "44100 Hz"),
        (sphere().replace(b"sample_n_bytes -i 2", b"sample_n_bytes -i 3"), "PCM_24|cannot be decoded|could be read"),
        (sphere(fields="sample_coding -s26 pcm,embedded-shorten-v2.00\n"), "cannot be decoded"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",  # a float file holds the time of its making
)
def test_what_is_not_timit_s_audio_is_refused(content: bytes, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence) as caught:
        decode(content, "dr1/sa1.wav")
    assert str(caught.value).startswith("dr1/sa1.wav")
    assert "\n" not in str(caught.value).strip()


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from([WAV, sphere(), FLOAT]),
    st.lists(st.tuples(st.integers(0, 1100), st.integers(0, 255)), max_size=6),
    st.integers(0, 2000),
)
def test_any_bytes_are_decoded_or_refused(content: bytes, changes: list[tuple[int, int]], length: int) -> None:
    changed = bytearray(content)
    for place, value in changes:
        if place < len(changed):
            changed[place] = value
    try:
        samples = decode(bytes(changed[:length] if length < 1000 else changed), "x.wav")
    except DataError:
        return
    assert np.isfinite(samples).all()
    assert len(samples)


def test_without_soundfile_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "soundfile", None)
    with pytest.raises(ConfigError, match=r"soundfile.*\[audio\]"):
        decode(WAV, "x.wav")


@pytest.mark.data
def test_the_one_sphere_file_of_the_real_sample() -> None:
    with zipfile.ZipFile(Path(os.environ["ORTHOBENCH_DATA"]) / "timit" / "timit.zip") as archive:
        samples = decode(archive.read("timit/dr1-fvmh0/si836.wav"), "si836.wav")
    assert len(samples) == 68813
    assert (samples.min() * 32768, samples.max() * 32768) == (-6058, 8163)  # the header's own figures
