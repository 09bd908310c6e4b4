"""Decoding one recording from the bytes of a RIFF (.wav) or NIST SPHERE file: mono, 16 bit, 16 kHz, as TIMIT's are.

The first bytes tell the format, not the file's name (TIMIT's SPHERE files end in .WAV too). libsndfile decodes, but it
reads a truncated file without an error, so the header's sizes are first compared with those of the file.
"""

import io
import re
import struct
from typing import Any

import numpy as np

from orthobench.common.packages import install
from orthobench.errors import ConfigError, DataError

RATE = 16000
WIDTH = 2
SPHERE = b"NIST_1A\n"


def decode(content: bytes, name: str) -> np.ndarray:
    """The samples (n,), float64 between -1 and 1, of the recording in `content`; `name` is for messages.

    Raises:
        ConfigError: the package `soundfile` is not installed.
        DataError: the format is another one, the header does not agree with the bytes that follow, or there are no
            samples.
    """
    soundfile = _soundfile()
    if content[:4] == b"RIFF":
        promised = _riff_bytes(content, name)
    elif content[:8] == SPHERE:
        promised = _sphere_bytes(content, name)
    else:
        begins = content[:8].hex() or "nothing"
        raise DataError(f"{name} is neither RIFF nor NIST SPHERE audio: it begins with {begins}; convert it to WAVE.")
    try:
        with soundfile.SoundFile(io.BytesIO(content)) as file:
            form = (file.channels, file.subtype, file.samplerate)
            if form != (1, "PCM_16", RATE):
                raise DataError(
                    f"{name} has {form[0]} channel(s), {form[1]}, {form[2]} Hz; "
                    f"it must have 1 channel, PCM_16, {RATE} Hz."
                )
            samples = file.read(dtype="float64")
    except (soundfile.SoundFileError, RuntimeError, ValueError) as error:
        raise DataError(f"{name} cannot be decoded ({error}): fetch it again.") from error
    if not len(samples):
        raise DataError(f"{name} has no samples: fetch the file again.")
    if len(samples) * WIDTH != promised:
        raise DataError(
            f"{name} promises {promised} bytes of samples and {len(samples) * WIDTH} could be read"
            ": fetch the file again."
        )
    return samples


def _riff_bytes(content: bytes, name: str) -> int:
    """Size of the `data` chunk in bytes; refused unless every chunk lies within the file."""
    if len(content) < 12 or content[8:12] != b"WAVE":
        raise DataError(f"{name} is a RIFF file of another kind than WAVE: convert it to WAVE.")
    size = struct.unpack_from("<I", content, 4)[0] + 8
    if size != len(content):
        raise DataError(
            f"{name} promises {size} bytes and has {len(content)}: it is cut short or damaged: fetch it again."
        )
    place = 12
    while place + 8 <= len(content):
        kind, length = struct.unpack_from("<4sI", content, place)
        if place + 8 + length > len(content):
            raise DataError(
                f"{name}, chunk {kind!r} at byte {place}: {length} bytes are promised, fewer are there: fetch it again."
            )
        if kind == b"data":
            return length
        place += 8 + length + length % 2
    raise DataError(f"{name} has no data chunk: fetch the file again.")


def _sphere_bytes(content: bytes, name: str) -> int:
    """Size of the samples in bytes by the header; refused unless the file holds as many."""
    length = content[8:16].strip()
    if not length.isdigit() or not 16 <= int(length) <= len(content):
        raise DataError(
            f"{name}: the second line of a SPHERE file is its header's length, not {length!r}; fetch the file again."
        )
    header = content[: int(length)]
    found = re.search(rb"^sample_count -i (\d{1,9})\s*$", header, re.MULTILINE)
    if not found or b"end_head" not in header:
        raise DataError(f"{name}: the SPHERE header has no sample_count or no end_head: fetch the file again.")
    promised, there = int(found[1]) * WIDTH, len(content) - len(header)
    if promised != there:
        raise DataError(f"{name} promises {promised} bytes of samples and has {there}: fetch the file again.")
    return promised


def _soundfile() -> Any:
    try:
        import soundfile
    except (ImportError, OSError) as error:
        raise ConfigError(f"speech needs the package soundfile ({error}): {install('audio')}.") from error
    return soundfile
