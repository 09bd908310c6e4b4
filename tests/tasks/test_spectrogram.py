import numpy as np
import pytest
import scipy.signal
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

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


@pytest.fixture
def signal() -> np.ndarray:
    return np.random.default_rng(3).normal(size=1000)


def padded(signal: np.ndarray) -> np.ndarray:
    return np.concatenate([np.zeros(SIZE), signal, np.zeros(-len(signal) % HOP + SIZE)])


def test_the_window_is_periodic() -> None:
    assert np.allclose(hann(), scipy.signal.get_window("hann", SIZE, fftbins=True), atol=1e-15)


def test_frames_are_scipy_s(signal: np.ndarray) -> None:
    _, _, expected = scipy.signal.stft(
        padded(signal), window="hann", nperseg=SIZE, noverlap=SIZE - HOP, boundary=None, padded=False
    )
    assert np.allclose(stft(signal), expected.T * hann().sum(), atol=1e-12)  # scipy divides by the window's sum


def test_frames_are_torch_s(signal: np.ndarray) -> None:
    window = torch.hann_window(SIZE, periodic=True, dtype=torch.float64)
    expected = torch.stft(torch.from_numpy(padded(signal)), SIZE, HOP, window=window, center=False, return_complex=True)
    assert np.allclose(stft(signal), expected.T.numpy(), atol=1e-12)


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
