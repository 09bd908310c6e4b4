"""TIMIT speech prediction: the next frame's log-magnitudes from the frames so far (Wisdom et al. 2016; Helfrich et
al. 2018, 5.4).

Recordings at 8 kHz become frames of 129 log-magnitudes in decibels (`spectrogram`), neither shifted nor scaled. A
batch is padded to its longest recording with silence, -50 dB; the last frame's target is silence too.

The mean squared error leaves padding out of the sum. `padding_in_mean=true`, as in Wisdom's code, keeps it in the
count: the sum is divided by as many frames as the longest training recording has (for evaluation, the longest of all
other speakers), and the numbers grow smaller with it. scoRNN's table quotes Wisdom's numbers beside its own, so this
is the default. With `false` the mean is over spoken frames alone, as in expRNN's rebuild. Both are reported,
whichever is trained on.
"""

from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from orthobench.common.schema import Positive
from orthobench.datasets import timit
from orthobench.tasks.base import SPLITS, Batch, Split, Task
from orthobench.tasks.metric import Metric
from orthobench.tasks.real import speech_scores
from orthobench.tasks.real.spectrogram import BINS, SILENCE, frame_count, log_magnitude, stft

PERSISTENCE = {True: 23.086936, False: 38.687086}  # the sample's test recordings; recomputed by a test
ABOUT_LONGEST = 500
HEARD = (
    Metric("segsnr", "dB", "higher"),
    Metric("stoi", "correlation", "higher", (-1.0, 1.0)),
    Metric("pesq", "mean opinion score", "higher", (1.0, 5.0)),
)


class TIMIT(Task):
    """TIMIT speech: the next frame of log-magnitudes (Wisdom et al. 2016; Helfrich et al. 2018, section 5.4).

    A batch is x (B, T, 129) and target (B, T, 129) in dB, and mask (B, T), T the frames of its longest recording.
    The trivial predictor repeats the present frame. Its score is known for the sample; for the licensed corpus
    `baseline` is empty, and `baseline_reason` says why.

    Attributes:
        split_name: `full` (3,696 / 400 / 192 recordings) or `sample` (96 / 16 / 16), the data that the numbers are
            from.

    Args:
        corpus: `full` or `sample`; `auto` is `full` in a run, and in Python the one in `data_root/timit`.
        padding_in_mean: whether the mean counts padding, as Wisdom's code does, or spoken frames alone.
        audio_scores: whether the test also gives segmental SNR, STOI and PESQ of the predictions.
        **kwargs: see `Task`.
    """

    readout: ClassVar[Literal["last", "all"]] = "all"
    objective: ClassVar[Literal["classify", "regress"]] = "regress"
    metric: ClassVar[str] = "loss"
    unit: ClassVar[str] = "recordings"
    data_set: ClassVar[str | None] = "timit"
    fixed_length: ClassVar[str | None] = "recordings differ in length, and each is read whole"

    def __init__(
        self,
        corpus: timit.Choice = "auto",
        padding_in_mean: bool = True,
        audio_scores: bool = False,
        batch_size: Positive = 28,
        eval_batch_size: Positive = 32,
        **kwargs: Any,
    ) -> None:
        super().__init__(batch_size=batch_size, eval_batch_size=eval_batch_size, **kwargs)
        self.corpus: timit.Choice = corpus
        self.padding_in_mean, self.audio_scores = padding_in_mean, audio_scores
        self.input_size, self.output_size = BINS, BINS
        self.T, self.length = None, ABOUT_LONGEST
        self._spectra: dict[str, list[np.ndarray]] | None = None
        self._longest: dict[str, int] = {}
        self._order: tuple[int, np.ndarray] = (-1, np.empty(0, dtype=np.int64))

    @staticmethod
    def resolve(given: dict[str, Any], data_root: Path) -> dict[str, Any]:
        """`corpus=auto` of a run is the whole corpus, the papers' data, so that its id depends on no data."""
        return given | {"corpus": "full"} if given["corpus"] == "auto" else given

    @cached_property
    def split_name(self) -> timit.Name:  # type: ignore[override]
        """`full` or `sample`."""
        return timit.corpus_name(self.data_root) if self.corpus == "auto" else self.corpus

    @property
    def baseline(self) -> dict[str, float]:  # type: ignore[override]
        """The score of repeating the present frame."""
        return {"loss": PERSISTENCE[self.padding_in_mean]} if self.split_name == "sample" else {}

    @property
    def baseline_reason(self) -> str | None:  # type: ignore[override]
        """Why there is no baseline; None when there is one."""
        return None if self.baseline else "the corpus is licensed, and its score was not measured"

    def check(self) -> None:
        if self.audio_scores:
            speech_scores.require()
        if self._spectra is None:
            speech = timit.load(self.data_root, self.corpus, self.verify)
            self._longest = {part: frame_count(samples) for part, samples in speech.longest.items()}
            self._spectra = {
                split: [stft(signal).astype(np.complex64) for signal in signals]
                for split, signals in speech.splits.items()
            }

    def examples(self, split: Split) -> int:
        return timit.UTTERANCES[self.split_name][split]

    def batches(self, split: Split) -> int:
        count = timit.UTTERANCES[self.split_name][split]
        return max(count // self.full(split), 1) if split == "train" else -(-count // self.full(split))

    def batch(self, split: Split, epoch: int, index: int) -> Batch:
        self.check()
        assert self._spectra is not None
        spectra = self._spectra[split]
        size = self.full(split)
        rows = np.arange(len(spectra))
        if split == "train":
            if self._order[0] != epoch:
                rng = np.random.default_rng([self.seed, SPLITS.index(split), epoch])
                self._order = (epoch, rng.permutation(len(spectra)))
            rows = self._order[1]
        chosen = [spectra[row] for row in rows[index * size : (index + 1) * size]]
        longest = max(map(len, chosen))
        frames = np.full((len(chosen), longest + 1, BINS), SILENCE, dtype=np.float32)
        mask = np.zeros((len(chosen), longest), dtype=np.float32)
        for row, one in enumerate(chosen):
            frames[row, : len(one)] = log_magnitude(one)
            mask[row, : len(one)] = 1
        batch = tuple(torch.from_numpy(array) for array in (frames[:, :-1], frames[:, 1:], mask))
        if self.audio_scores and split == "test":
            padded = [np.pad(one, ((0, longest - len(one)), (0, 0))) for one in chosen]
            return (*batch, torch.from_numpy(np.stack(padded)))
        return batch

    def loss(self, y: Tensor, target: Tensor, mask: Tensor | None = None, spectra: Tensor | None = None) -> Tensor:
        """Mean squared error in dB^2 over (B, T, 129), as `padding_in_mean` counts; mask is (B, T)."""
        error, spoken = _squared_error(y, target, mask)
        if not self.padding_in_mean:
            return error / spoken
        return error / (len(target) * self._longest.get("train", target.shape[1]))

    def measure(
        self, y: Tensor, target: Tensor, mask: Tensor | None = None, spectra: Tensor | None = None
    ) -> dict[str, Tensor]:
        error, spoken = _squared_error(y, target, mask)
        count = len(target) * self._longest.get("eval", target.shape[1])
        values = {"mse_with_padding": error / count, "spoken": spoken / count}
        if spectra is not None and mask is not None:
            values |= _heard(y, mask, spectra)
        return values

    def weight(self, target: Tensor, mask: Tensor | None = None, spectra: Tensor | None = None) -> float:
        """A batch's number of recordings."""
        return len(target)

    def summarise(self, means: dict[str, float]) -> dict[str, float]:
        with_padding = means["mse_with_padding"]
        without = with_padding / means["spoken"]
        others = {name: value for name, value in means.items() if name in speech_scores.NAMES}
        chosen = with_padding if self.padding_in_mean else without
        return {"loss": chosen, "mse_with_padding": with_padding, "mse_without_padding": without, **others}

    @classmethod
    def declared(cls) -> tuple[Metric, ...]:
        errors = ("loss", "mse_with_padding", "mse_without_padding")
        return *(Metric(name, "dB^2", "lower", (0.0, None)) for name in errors), *HEARD

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the metrics that are reported; the audio scores are the test's alone."""
        heard = {metric.name for metric in HEARD}
        return tuple(name for name in super().metrics if self.audio_scores or name not in heard)


def _squared_error(y: Tensor, target: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """The sum over spoken frames of the mean over bins, and the number of spoken frames."""
    error = ((y - target) ** 2).mean(-1)
    mask = torch.ones_like(error) if mask is None else mask
    return (error * mask).sum(), mask.sum()


def _heard(y: Tensor, mask: Tensor, spectra: Tensor) -> dict[str, Tensor]:
    """Mean audio scores of a batch."""
    rows = []
    for decibels, frames, length in zip(
        y.float().cpu().numpy(), spectra.cpu().numpy(), mask.sum(1).long(), strict=True
    ):
        reference, estimate = speech_scores.reconstruct(decibels[:length], frames[:length])
        rows.append(list(speech_scores.scores(reference, estimate).values()))
    means = torch.tensor(rows, dtype=torch.float64).mean(0)
    return dict(zip(speech_scores.NAMES, means, strict=True))
