import os
from pathlib import Path

import numpy as np
import pytest
import torch

import orthobench
from orthobench.datasets import timit
from orthobench.errors import ConfigError, DataError
from orthobench.tasks.real import speech_scores
from orthobench.tasks.real.spectrogram import BINS, SILENCE, frame_count, log_magnitude, stft
from orthobench.tasks.real.timit import PERSISTENCE, TIMIT

RNG = np.random.default_rng(8)
COUNTS = timit.UTTERANCES["sample"]
DATA = os.environ.get("ORTHOBENCH_DATA", "")


@pytest.fixture
def speech(monkeypatch: pytest.MonkeyPatch) -> timit.Speech:
    """Noise of different lengths in place of the sample."""
    splits = {
        split: [RNG.normal(size=length).astype(np.float32) for length in RNG.integers(3500, 4000, size=count)]
        for split, count in COUNTS.items()
    }
    made = timit.Speech("sample", splits, {"train": max(map(len, splits["train"])), "eval": 4096})
    monkeypatch.setattr(timit, "load", lambda root, corpus, verify: made)
    monkeypatch.setattr(timit, "corpus_name", lambda root: "sample")
    return made


def test_sizes_are_known_without_the_data() -> None:
    task = TIMIT(data_root="/nowhere")
    assert task.input_size == task.output_size == BINS
    assert task.T is None
    assert task.split_name == "full"
    assert task.baseline == {}
    assert task.baseline_reason
    assert [task.batches(split) for split in ("train", "val", "test")] == [132, 13, 6]  # 132 is Wisdom's count
    assert TIMIT(corpus="sample").batches("train") == 3


def test_a_batch_is_padded_with_silence_and_predicts_the_next_frame(speech: timit.Speech) -> None:
    task = TIMIT(eval_batch_size=5)
    x, target, mask = task.batch("val", 0, 1)
    expected = [log_magnitude(stft(signal).astype(np.complex64)) for signal in speech.splits["val"][5:10]]
    assert x.shape == target.shape == (5, max(map(len, expected)), BINS)
    assert mask.shape == x.shape[:2]
    assert x.dtype == torch.float32
    for row, frames in enumerate(expected):
        length = len(frames)
        assert np.array_equal(x[row, :length], frames)
        assert bool((x[row, length:] == SILENCE).all())
        assert np.array_equal(target[row, : length - 1], frames[1:])
        assert bool((target[row, length - 1 :] == SILENCE).all())
        assert mask[row].tolist() == [1.0] * length + [0.0] * (x.shape[1] - length)


def test_an_epoch_visits_recordings_at_most_once_in_an_order_of_its_own(speech: timit.Speech) -> None:
    task = TIMIT(batch_size=10, seed=2)
    epochs = [torch.cat([task.batch("train", epoch, i)[0][:, 5, :3] for i in range(9)]) for epoch in (0, 1, 0)]
    assert torch.equal(epochs[0], epochs[2])
    assert not torch.equal(epochs[0], epochs[1])
    assert len({tuple(row.tolist()) for row in epochs[0]}) == 90
    assert sum(len(task.batch("test", 0, i)[0]) for i in range(task.batches("test"))) == 16


def test_both_means(speech: timit.Speech) -> None:
    for padding_in_mean in (False, True):
        task = TIMIT(padding_in_mean=padding_in_mean, batch_size=6)
        x, target, mask = task.batch("train", 0, 0)
        y = RNG.normal(size=x.shape)
        squares = ((y - target.numpy()) ** 2 * mask.numpy()[..., None]).sum()
        frames = 6 * frame_count(speech.longest["train"]) if padding_in_mean else float(mask.sum())
        loss = task.loss(torch.from_numpy(y), target.double(), mask.double())
        assert float(loss) == pytest.approx(squares / (frames * BINS), rel=1e-9)


@pytest.mark.parametrize("size", [3, 16])
def test_metrics_over_a_split_do_not_depend_on_the_batches(speech: timit.Speech, size: int) -> None:
    task = TIMIT(eval_batch_size=size, padding_in_mean=False)
    sums: dict[str, float] = {}
    for i in range(task.batches("test")):
        x, target, mask = task.batch("test", 0, i)
        for name, value in task.measure(x, target, mask).items():
            sums[name] = sums.get(name, 0.0) + float(value) * task.weight(target, mask)
    found = task.summarise({name: total / 16 for name, total in sums.items()})
    frames = [log_magnitude(stft(signal)).astype(np.float64) for signal in speech.splits["test"]]
    squares = sum(((np.r_[f[1:], np.full((1, BINS), SILENCE)] - f) ** 2).mean(1).sum() for f in frames)
    assert found["mse_without_padding"] == pytest.approx(squares / sum(map(len, frames)), rel=1e-4)
    assert found["mse_with_padding"] == pytest.approx(squares / (16 * frame_count(4096)), rel=1e-4)
    assert found["loss"] == found["mse_without_padding"]
    assert tuple(found) == task.metrics


def test_audio_scores_are_the_test_s_alone(speech: timit.Speech) -> None:
    pytest.importorskip("pystoi")
    pytest.importorskip("pesq")
    task = TIMIT(audio_scores=True, eval_batch_size=2)
    assert len(task.batch("train", 0, 0)) == len(task.batch("val", 0, 0)) == 3
    x, target, mask, spectra = task.batch("test", 0, 0)
    assert spectra.shape == x.shape
    assert spectra.is_complex()
    means = {name: float(value) for name, value in task.measure(target, target, mask, spectra).items()}
    found = task.summarise(means)
    assert set(found) == set(task.metrics)
    assert found["loss"] == 0
    assert found["stoi"] == pytest.approx(1, abs=1e-3)
    assert found["segsnr"] > 25
    assert task.weight(target, mask, spectra) == 2
    assert float(task.loss(target, target, mask, spectra)) == 0


def test_audio_scores_need_their_packages_before_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise ConfigError("no pesq")

    monkeypatch.setattr(speech_scores, "require", fail)
    with pytest.raises(ConfigError, match="no pesq"):
        TIMIT(audio_scores=True).check()


def test_a_length_and_missing_data_are_refused_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="recordings differ in length"):
        orthobench.build("model=rnn", "task=timit", "T=100")
    with pytest.raises(DataError, match="prepare timit"):
        TIMIT(data_root=str(tmp_path)).check()


@pytest.mark.data
@pytest.mark.parametrize("padding_in_mean", [True, False])
def test_the_sample_s_baseline_is_persistence(padding_in_mean: bool) -> None:
    pytest.importorskip("soundfile")
    task = TIMIT(data_root=DATA, padding_in_mean=padding_in_mean, eval_batch_size=16)
    assert task.split_name == "sample"
    assert task.batches("test") == 1
    x, target, mask = (part.double() for part in task.batch("test", 0, 0))
    found = task.summarise({name: float(value) for name, value in task.measure(x, target, mask).items()})
    assert found["loss"] == pytest.approx(PERSISTENCE[padding_in_mean], rel=1e-6)
    assert task.baseline == {"loss": PERSISTENCE[padding_in_mean]}


@pytest.mark.data
def test_a_short_run_on_the_sample(tmp_path: Path) -> None:
    pytest.importorskip("soundfile")
    words = ("model=rnn", "task=timit", "task.corpus=sample", "model.hidden_size=16", "trainer.max_steps=2")
    record = orthobench.build(*words, "logger=none", f"data_root={DATA}", f"runs_root={tmp_path}").run()
    assert record["status"] == "done"
    assert record["T"] is None
    assert {"test/loss", "test/mse_with_padding", "test/mse_without_padding"} <= record["metrics"]["last"].keys()
