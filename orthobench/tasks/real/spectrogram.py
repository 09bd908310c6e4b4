"""The short-time spectra that TIMIT's networks read, and the way back to sound.

Frames of 256 samples every 128 under a periodic Hann window, 129 bins; the signal is filled up with zeros to a
multiple of 128 and by 256 zeros at either end, and frames are not centred (Wisdom et al. 2016, section 5.3, and their
code). Two Hann windows 128 samples apart add up to one, so that adding the inverse transforms gives the signal back.
"""

import numpy as np

SIZE, HOP, BINS = 256, 128, 129
FLOOR = 1e-5
SILENCE = -50.0


def frame_count(samples: int) -> int:
    """Frames of a signal of `samples` samples."""
    return -(-samples // HOP) + 3


def hann() -> np.ndarray:
    """The periodic window, (256,)."""
    return 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(SIZE) / SIZE)


def stft(signal: np.ndarray) -> np.ndarray:
    """Spectra (frames, 129), complex128, of a signal (samples,)."""
    filled = np.zeros((frame_count(len(signal)) + 1) * HOP)
    filled[SIZE : SIZE + len(signal)] = signal
    return np.fft.rfft(np.lib.stride_tricks.sliding_window_view(filled, SIZE)[::HOP] * hann())


def inverse_stft(spectra: np.ndarray) -> np.ndarray:
    """The signal ((frames - 3) * 128,) whose spectra, (frames, 129), these are."""
    frames = np.fft.irfft(spectra, n=SIZE)
    signal = np.zeros((len(frames) + 1) * HOP)
    for i, frame in enumerate(frames):
        signal[i * HOP : i * HOP + SIZE] += frame
    return signal[SIZE:-SIZE]


def log_magnitude(spectra: np.ndarray) -> np.ndarray:
    """10 log10(1e-5 + |X|^2), float32: decibels; silence is -50."""
    return (10 * np.log10(FLOOR + np.real(spectra) ** 2 + np.imag(spectra) ** 2)).astype(np.float32)


def magnitude(decibels: np.ndarray) -> np.ndarray:
    """|X| from `log_magnitude`, without taking the floor off, as Wisdom's code reconstructs it."""
    return 10 ** (np.asarray(decibels, dtype=np.float64) / 20)
