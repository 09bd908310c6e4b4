"""Spectrograms of speech, and the scores of their frames."""

import sys

import numpy as np
import pytest
import scipy.signal
from hypothesis import given, settings
from hypothesis import strategies as st

from orthobench.errors import ConfigError
from orthobench.tasks.real import speech_scores
from orthobench.tasks.real.spectrogram import (
    BINS,
    HOP,
    SILENCE,
    SIZE,
    frame_count,
    hann,
    inverse_stft,
    log_magnitude,
    magnitude,
    stft,
)

RNG = np.random.default_rng(5)
TIME = np.arange(24000) / 8000
# Bursts of a buzz at 120 Hz with moving formants: enough like speech for the measures that listen for it.
BUZZ = sum(np.sin(2 * np.pi * 120 * k * TIME) / k * (1 + np.sin(2 * np.pi * (1 + k / 7) * TIME)) for k in range(1, 25))
SPEECH = 0.05 * BUZZ * (np.sin(2 * np.pi * 1.5 * TIME) > -0.3)
NOISE = RNG.normal(size=len(SPEECH))


def noisy(decibels: float) -> np.ndarray:
    """SPEECH with noise of the same envelope that many dB below it."""
    return SPEECH * (1 + NOISE * 10 ** (-decibels / 20))


@pytest.mark.parametrize("ratio", [0.0, 10.0, 20.0])
def test_segmental_snr_of_a_known_ratio(ratio: float) -> None:
    constant = np.where(np.arange(8192) % 2, 1.0, -1.0)
    estimate = constant * (1 + 10 ** (-ratio / 20))
    assert speech_scores.segmental_snr(constant, estimate) == pytest.approx(ratio, abs=1e-9)


def test_segmental_snr_is_bounded_and_skips_silence() -> None:
    signal = np.concatenate([np.ones(2560), np.zeros(2560)])
    assert speech_scores.segmental_snr(signal, signal) == 35
    assert speech_scores.segmental_snr(signal, -1000 * signal) == -10
    assert speech_scores.segmental_snr(signal, signal + np.r_[np.zeros(2560), np.ones(2560)]) == 35
    assert speech_scores.segmental_snr(np.zeros(512), np.ones(512)) == -10
    one_frame_wrong = np.r_[-1000 * np.ones(256), np.ones(2304), np.zeros(2560)]
    assert speech_scores.segmental_snr(signal, one_frame_wrong) == pytest.approx((9 * 35 - 10) / 10), "frame by frame"


def test_stoi_is_one_for_the_same_sound_and_falls_with_noise() -> None:
    pytest.importorskip("pystoi")
    found = [speech_scores.stoi(SPEECH, estimate) for estimate in (SPEECH, noisy(10), noisy(-5), np.zeros_like(SPEECH))]
    assert found[0] == pytest.approx(1, abs=1e-6)
    assert found == sorted(found, reverse=True)
    assert found[2] < 0.9


def test_pesq_is_best_for_the_same_sound_and_falls_with_noise() -> None:
    pytest.importorskip("pesq")
    found = [speech_scores.pesq(SPEECH, estimate) for estimate in (SPEECH, noisy(20), noisy(0))]
    assert found[0] == pytest.approx(4.549, abs=0.01)  # the top of P.862.1
    assert found[0] > found[1] > found[2] >= 1


def test_pesq_without_speech_is_the_lowest_score() -> None:
    pytest.importorskip("pesq")
    for estimate in (np.zeros(8000), np.full(8000, 1e-9), 1e30 * np.ones(8000)):
        assert 1 <= speech_scores.pesq(SPEECH[:8000], estimate) < 4.6
    assert speech_scores.pesq(np.zeros(8000), np.zeros(8000)) == 1


def test_perfect_predictions_give_the_sound_back_and_hopeless_ones_stay_finite() -> None:
    frames = stft(SPEECH)
    perfect = np.concatenate([log_magnitude(frames)[1:], np.full((1, 129), -50, np.float32)])
    reference, estimate = speech_scores.reconstruct(perfect, frames)
    assert np.allclose(reference[: len(SPEECH)], SPEECH, atol=1e-12)
    assert speech_scores.segmental_snr(reference, estimate) > 25  # the floor of 1e-5 is all that is lost
    for decibels in (1e6, -1e6):
        assert np.isfinite(speech_scores.reconstruct(np.full(frames.shape, decibels, np.float32), frames)[1]).all()


@pytest.mark.parametrize("package", ["pystoi", "pesq"])
def test_without_the_packages_the_extra_is_named(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    if package == "pesq":
        pytest.importorskip("pystoi")
    with pytest.raises(ConfigError, match=rf"{package} .*\[audio\]"):
        speech_scores.require()


@pytest.fixture
def signal() -> np.ndarray:
    return np.random.default_rng(3).normal(size=1000)


def padded(signal: np.ndarray) -> np.ndarray:
    return np.concatenate([np.zeros(SIZE), signal, np.zeros(-len(signal) % HOP + SIZE)])


def test_the_window_and_frames_are_scipys(signal: np.ndarray) -> None:
    assert np.allclose(hann(), scipy.signal.get_window("hann", SIZE, fftbins=True), atol=1e-15)
    _, _, expected = scipy.signal.stft(
        padded(signal), window="hann", nperseg=SIZE, noverlap=SIZE - HOP, boundary=None, padded=False
    )
    assert np.allclose(stft(signal), expected.T * hann().sum(), atol=1e-12)  # scipy divides by the window's sum


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 1500))
def test_shapes_and_the_way_back(length: int) -> None:
    signal = np.random.default_rng(length).normal(size=length)
    frames = stft(signal)
    assert frames.shape == (frame_count(length), BINS)
    back = inverse_stft(frames)
    assert back.shape == ((len(frames) - 3) * HOP,)
    assert np.allclose(back[:length], signal, atol=1e-12)
    assert np.allclose(back[length:], 0, atol=1e-12)


def test_log_magnitudes_are_decibels_above_a_floor(signal: np.ndarray) -> None:
    frames = stft(signal)
    decibels = log_magnitude(frames)
    assert decibels.dtype == np.float32
    assert decibels.shape == frames.shape
    assert np.allclose(decibels, 10 * np.log10(1e-5 + np.abs(frames) ** 2), atol=1e-5)
    assert np.allclose(magnitude(decibels) ** 2, np.abs(frames) ** 2 + 1e-5, rtol=1e-5)
    assert log_magnitude(frames)[-1, 0] == np.float32(SILENCE)  # the last frame holds nothing but zeros
