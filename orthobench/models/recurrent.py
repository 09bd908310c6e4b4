"""Embedding -> stacked recurrent layers -> linear readout.

Shapes: B batch, T time, I input, N hidden, O output.
"""

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from orthobench.cells.base import Cell, State
from orthobench.cells.convolution import InputConvolution
from orthobench.cells.projection import linear
from orthobench.common.schema import Fraction, OptionalPositive, Positive, did_you_mean
from orthobench.errors import ConfigError
from orthobench.models.base import Network
from orthobench.models.segments import over_steps
from orthobench.parametrizations.initializers import Rng, glorot_uniform, weight
from orthobench.scan import recurrence, reference
from orthobench.scan.inputs import checked
from orthobench.scan.steps import at_steps

MakeCell = Callable[[int, int], Cell]
BIASES = ("zeros", "glorot", "torch", "truncated_normal 0.1")
PLACES = ("embedding", "hidden", "output")


class Recurrent(Network):
    """A stack of one cell: embedding, recurrent layers (B, T, N), linear readout (B, O) or (B, T, O).

    Args:
        input_size: I, the width of an input or the number of tokens.
        output_size: O, the width of an output.
        readout: `last` reads the last hidden state only, `all` every one.
        make_cell: builds a cell from (input size, hidden size).
        rng: generator for the initial values.
        engine: the engine that runs the cells, see `orthobench.scan`.
        hidden_size: N, the number of units.
        layers: number of recurrent layers.
        layer_sizes: hidden size of every layer, in place of `layers` and `hidden_size`.
        dropout: share of units zeroed on the embedding, between layers and before the readout.
        embedding_dropout: share on the embedding; `dropout` when null.
        hidden_dropout: share between layers; `dropout` when null.
        output_dropout: share before the readout; `dropout` when null.
        logit_dropout: share after the readout (Chu, section 4).
        locked_dropout: whether a sequence keeps one mask for all its steps, as in AWD-LSTM (Merity et al. 2018).
        embedding_size: width of a learnt embedding of tokens; null feeds one-hot vectors.
        embedding_init: scheme of the embedding, or a bound.
        tied: whether the readout shares the embedding's weights; the last layer then has the embedding's width.
        input_convolution: steps that a causal convolution in front of the first layer sees, the current one included,
            see `InputConvolution`; null for none. It is no part of the paper of any cell.
        output_init: scheme of the readout's weights, or a bound.
        output_bias_init: `zeros`, `glorot`, `torch`, `truncated_normal 0.1`, or a number that every entry starts from.
            `glorot` is what TensorFlow draws for a bias created without an initialiser: U(-b, b) with b = sqrt(3 / O);
            `torch` is nn.Linear's, b = 1 / sqrt(N).

    Raises:
        ConfigError: an unknown scheme, or a readout tied to an embedding that is not there or has other tokens.
    """

    reads_steps: bool = True

    def __init__(
        self,
        input_size: int,
        output_size: int,
        readout: Literal["last", "all"],
        make_cell: MakeCell,
        rng: Rng,
        engine: str = "auto",
        hidden_size: Positive = 128,
        layers: Positive = 1,
        layer_sizes: list[Positive] | None = None,
        dropout: Fraction = 0.0,
        embedding_dropout: Fraction | None = None,
        hidden_dropout: Fraction | None = None,
        output_dropout: Fraction | None = None,
        logit_dropout: Fraction = 0.0,
        locked_dropout: bool = False,
        embedding_size: Positive | None = None,
        embedding_init: str | float = 0.1,
        tied: bool = False,
        input_convolution: OptionalPositive = None,
        output_init: str | float = "glorot",
        output_bias_init: str | float = "zeros",
    ) -> None:
        super().__init__()
        self.readout, self.engine, self.locked_dropout = readout, engine, locked_dropout
        self.dropouts = {
            place: dropout if rate is None else rate
            for place, rate in zip(PLACES, (embedding_dropout, hidden_dropout, output_dropout), strict=True)
        } | {"logits": logit_dropout}
        if tied and embedding_size is None:
            raise ConfigError("model.tied=true needs an embedding to share: set model.embedding_size.")
        if tied and input_size != output_size:
            sizes = f"{input_size} tokens go in and {output_size} outputs come out"
            raise ConfigError(f"model.tied=true does not apply here: {sizes}; use model.tied=false.")
        self.embedding: nn.Parameter | None = None
        if embedding_size is not None:
            self.embedding = nn.Parameter(weight(embedding_init, rng, (input_size, embedding_size)))
        last = embedding_size if tied and embedding_size else hidden_size
        sizes = layer_sizes or [*[hidden_size] * (layers - 1), last]
        last = sizes[-1]
        if tied and last != embedding_size:
            raise ConfigError(
                f"model.layer_sizes ends with {last}, but a tied readout needs the embedding's width, {embedding_size}."
            )
        width, cells = embedding_size or input_size, list[Cell]()
        self.in_front = 0 if input_convolution is None else 1
        if input_convolution is not None:
            cells.append(InputConvolution(width, input_convolution, rng))
            width = cells[-1].feature_size
        for n in sizes:
            cells.append(make_cell(width, n))
            width = cells[-1].feature_size
        self.cells = nn.ModuleList(cells)
        if tied and width != last:
            raise ConfigError(
                f"model.tied=true does not apply to {width} features of {last} units; use model.tied=false."
            )
        self.output_weight = None if tied else nn.Parameter(weight(output_init, rng, (output_size, width)))
        self.output_bias = nn.Parameter(readout_bias(output_bias_init, rng, output_size, width))

    def forward(
        self,
        x: Tensor,
        state: list[State] | None = None,
        taps: dict[int, Tensor] | None = None,
        steps: Tensor | None = None,
    ) -> tuple[Tensor, list[State]]:
        """Run the network.

        Args:
            x: (B, T, I), or tokens (B, T).
            state: initial state of every layer; the cells' own when None.
            taps: its keys are the steps of the last layer whose hidden state the caller wants, which only the engine
                `reference` provides; the values are filled in here.
            steps: see `Network.forward`.

        Returns:
            Outputs, (B, O) with `readout="last"` and (B, T, O) with `all`; and the final state of every layer.
        """
        return over_steps(self, x, state, taps, steps)

    def why_no_segments(self) -> str | None:
        random = next((place for place, rate in self.dropouts.items() if rate), None)
        return random and f"dropout ({random}) would draw other masks"

    def whole(
        self,
        x: Tensor,
        state: list[State] | None,
        taps: dict[int, Tensor] | None = None,
        steps: Tensor | None = None,
    ) -> tuple[Tensor, list[State]]:
        """Outputs and final states of a sequence, all of it at once."""
        h = x if self.embedding is None else self._drop(F.embedding(x, self.embedding), "embedding")
        final = []
        for i, cell in enumerate(self.cells):
            start = None if state is None else state[i]
            if i > self.in_front:
                h = self._drop(h, "hidden")
            if taps is not None and cell is self.cells[-1]:
                h, end = reference.run(cell, h, checked(cell, h, start), taps)
                h = at_steps(h, steps)
            else:
                h, end = recurrence(cell, h, start, self.engine, self.steps_of(cell, x, steps, self.readout == "last"))
            final.append(end)
            if self.readout == "last" and cell is self.cells[-1]:
                # a slice of all states would send back a gradient full of zeros
                h = last_of(h) if cell.returns_output else end[0]
            h = cell.features(h)
        decoder = self.embedding if self.output_weight is None else self.output_weight
        assert decoder is not None
        h = self._drop(h, "output")
        narrow = len(decoder) < h.shape[-1]
        if h.dim() == 3 and (self.checkpoint is not None or (narrow and (h.is_cuda or _steps_first(h)))):
            # steps first, as most engines keep them, so that no copy in another order is made
            y = (linear if h.is_cuda else F.linear)(h.transpose(0, 1), decoder, self.output_bias).transpose(0, 1)
            y = y if h.is_cuda or self.checkpoint is not None else y.contiguous()
        else:
            y = F.linear(h, decoder, self.output_bias)
        return self._drop(y, "logits"), final

    def layer_inputs(self, x: Tensor) -> list[Tensor]:
        found = [x if self.embedding is None else F.embedding(x, self.embedding)]
        for cell in self.cells[:-1]:
            found.append(cell.features(recurrence(cell, found[-1], None, self.engine)[0]))
        return found

    def multiply_adds(self, tokens: bool = False) -> int:
        """See `Network`: the cells, and the readout where it reads every step; an embedding is looked up."""
        decoder = self.embedding if self.output_weight is None else self.output_weight
        assert decoder is not None
        return self._of_cells(tokens and self.embedding is None) + (self.readout == "all") * decoder.numel()

    def _drop(self, h: Tensor, place: str) -> Tensor:
        return self.dropped(h, self.dropouts[place])


def _steps_first(h: Tensor) -> bool:
    """Return True if the memory of h (B, T, N) has one step after the other; an exported program has no such choice."""
    return not torch.compiler.is_exporting() and h.stride(0) < h.stride(1)


def last_of(h: Tensor) -> Tensor:
    """The outputs of the last step, (B, F), of outputs (B, T, F).

    Raises:
        ValueError: there is no step.
    """
    if not h.shape[1]:
        raise ValueError(f"a sequence of no steps has no last output: x is (B, 0, ...), and the outputs {h.shape}.")
    return h[:, -1]


def readout_bias(scheme: str | float, rng: Rng, size: int, width: int) -> Tensor:
    """The bias (size,) of a readout of `width` features, by scheme; see `Recurrent`."""
    if scheme == "glorot":
        return glorot_uniform(rng, (1, size), fan_in=size, fan_out=size)[0]
    if not isinstance(scheme, str) or scheme == "zeros":
        return torch.full((size,), 0.0 if scheme == "zeros" else float(scheme))
    if scheme != "torch" and not scheme.startswith(("normal ", "truncated_normal ")):
        known = did_you_mean(scheme, BIASES)
        raise ConfigError(f"model.output_bias_init={scheme} is not known: {known}")
    return weight(scheme, rng, (1, size), units=width)[0]
