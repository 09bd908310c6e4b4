"""Scores of the sound of predicted spectra: segmental signal-to-noise ratio, STOI and PESQ.

As Wisdom et al. (2016, section 5.3) score TIMIT: predicted magnitudes take the phase of the true frames, the first
frame is the true one, and the sound is compared with the true spectra's. Our segmental ratio is plain: frames of 32
ms without overlap, each between -10 and 35 dB (Hansen & Pellom 1998), where the authors' Matlab toolbox adds a speech
detector and an alignment.
"""

import warnings
from typing import Any

import numpy as np

from orthobench.common.packages import install
from orthobench.errors import ConfigError
from orthobench.tasks.real.spectrogram import SIZE, inverse_stft, magnitude

RATE = 8000
LOWEST_SNR, HIGHEST_SNR = -10.0, 35.0
LOWEST_PESQ = 1.0
NAMES = ("segsnr", "stoi", "pesq")


def reconstruct(decibels: np.ndarray, spectra: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The true signal and the predicted one.

    Args:
        decibels: (frames, 129) log-magnitudes predicted for the next frame.
        spectra: (frames, 129) complex, the true frames.

    Returns:
        Two signals ((frames - 3) * 128,) at 8 kHz.
    """
    predicted = magnitude(np.clip(decibels[:-1], -100, 100)) * np.exp(1j * np.angle(spectra[1:]))
    return inverse_stft(spectra), inverse_stft(np.concatenate([spectra[:1], predicted]))


def scores(reference: np.ndarray, estimate: np.ndarray) -> dict[str, float]:
    """All three scores of an estimate, two signals (samples,) at 8 kHz.

    Raises:
        ConfigError: a package of the extra `audio` is not installed.
    """
    values = (segmental_snr(reference, estimate), stoi(reference, estimate), pesq(reference, estimate))
    return dict(zip(NAMES, values, strict=True))


def segmental_snr(reference: np.ndarray, estimate: np.ndarray) -> float:
    """Mean over frames of 10 log10(energy of the reference / energy of the error), dB; silent frames do not count."""
    count = len(reference) // SIZE * SIZE
    signal = (reference[:count].reshape(-1, SIZE) ** 2).sum(1)
    noise = ((reference - estimate)[:count].reshape(-1, SIZE) ** 2).sum(1)
    heard = signal > 0
    if not heard.any():
        return LOWEST_SNR
    with np.errstate(divide="ignore"):
        ratios = 10 * np.log10(signal[heard] / noise[heard])
    return float(np.clip(ratios, LOWEST_SNR, HIGHEST_SNR).mean())


def stoi(reference: np.ndarray, estimate: np.ndarray) -> float:
    """Short-time objective intelligibility, 0 to 1 (Taal et al. 2011).

    Raises:
        ConfigError: the package `pystoi` is not installed.
    """
    measure = _imported("pystoi").stoi
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # nearly silent signals, for which it answers 1e-5
        return float(measure(reference, estimate, RATE))


def pesq(reference: np.ndarray, estimate: np.ndarray) -> float:
    """Perceptual quality, narrow band, as opinion scores from 1 to 4.5 (ITU-T P.862.1); 1 where no speech is heard.

    Raises:
        ConfigError: the package `pesq` is not installed.
    """
    package = _imported("pesq")
    if not estimate.any() or not reference.any():
        return LOWEST_PESQ
    value = package.pesq(RATE, reference, estimate, "nb", on_error=package.PesqError.RETURN_VALUES)
    return max(float(value), LOWEST_PESQ)


def require() -> None:
    """Make sure that the packages are there.

    Raises:
        ConfigError: one is not installed.
    """
    _imported("pystoi")
    _imported("pesq")


def _imported(name: str) -> Any:
    import importlib

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module(name)
    except ImportError as error:
        raise ConfigError(f"speech needs the package {name} ({error}): {install('audio')}.") from error
