"""Residual blocks around a recurrent layer, the form in which linear recurrences are published.

    x <- E x + e,   then in every block   x <- x + Drop(GLU(GELU(layer(Norm(x)))))
    GLU(a) = (V_1 a + c_1) * sigmoid(V_2 a + c_2)

and a linear readout of the last step, of the mean over the steps, or of every step. The layer is any cell, and what is
taken from it are its features. Orvieto et al. (2023), "Resurrecting Recurrent Neural Networks for Long Sequences".
"""

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from orthobench.cells.base import State, projection
from orthobench.common.schema import Fraction, OptionalPositive, Positive
from orthobench.errors import ConfigError
from orthobench.models.base import Network
from orthobench.models.recurrent import MakeCell, last_of, readout_bias
from orthobench.models.segments import over_steps
from orthobench.parametrizations.initializers import Rng, weight
from orthobench.scan import recurrence, reference
from orthobench.scan.inputs import checked
from orthobench.scan.steps import at_steps

EPSILON = 1e-5


class Block(Network):
    """A stack of residual blocks (B, T, D) around a cell (Orvieto et al. 2023), and a readout (B, O) or (B, T, O).

    The layers are causal, so that a state goes on from one call to the next, except through a mean.

    Args:
        input_size: I, the width of an input or the number of tokens.
        output_size: O, the width of an output.
        readout: `last` reads once per sequence, `all` at every step.
        make_cell: builds a cell from (input size, hidden size).
        rng: generator for the initial values.
        engine: the engine that runs the cells, see `orthobench.scan`.
        hidden_size: N, the units of every cell.
        width: D, the width of the blocks; `hidden_size` when null.
        layers: number of blocks.
        norm: what a layer reads: x at zero mean and unit variance, scaled and shifted (`layer`), or x itself.
        glu: whether the gate is there; false leaves one linear map from the features to D in its place.
        dropout: share of the units of a block's branch that are zeroed.
        locked_dropout: whether a sequence keeps one mask for all its steps.
        pooling: what a readout once per sequence reads: the `last` step or the `mean` over all.
        output_init: scheme of the readout's weights, or a bound.
        output_bias_init: start of the readout's bias, as that of `Recurrent`.

    Raises:
        ConfigError: an unknown scheme, or a mean for a task that wants an output at every step.
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
        width: OptionalPositive = None,
        layers: Positive = 1,
        norm: Literal["layer", "none"] = "layer",
        glu: bool = True,
        dropout: Fraction = 0.0,
        locked_dropout: bool = False,
        pooling: Literal["last", "mean"] = "last",
        output_init: str | float = "linear",
        output_bias_init: str | float = "zeros",
    ) -> None:
        super().__init__()
        if pooling == "mean" and readout == "all":
            raise ConfigError("model.pooling=mean does not apply to a task with an output at every step: use last.")
        I, O, D = input_size, output_size, width or hidden_size
        self.readout, self.engine, self.pooling = readout, engine, pooling
        self.glu, self.dropout, self.locked_dropout = glu, dropout, locked_dropout
        self.encoder = nn.Parameter(weight("linear", rng, (D, I)))
        self.encoder_bias = nn.Parameter(weight("linear", rng, (1, D), fan_in=I)[0])
        self.cells = nn.ModuleList([make_cell(D, hidden_size) for _ in range(layers)])
        maps = 2 if glu else 1
        widths = [int(cell.feature_size) for cell in self.cells]
        self.V = nn.ParameterList(weight("linear", rng, (maps * D, F_)) for F_ in widths)
        self.c = nn.ParameterList(weight("linear", rng, (1, maps * D), fan_in=F_)[0] for F_ in widths)
        self.norms = nn.ParameterList()
        if norm == "layer":
            self.norms.extend(torch.stack([torch.ones(D), torch.zeros(D)]) for _ in range(layers))
        self.output_weight = nn.Parameter(weight(output_init, rng, (O, D)))
        self.output_bias = nn.Parameter(readout_bias(output_bias_init, rng, O, D))
        self.values_per_step = layers * (2 * D + (3 * maps + 1) * D) + sum(2 * F_ for F_ in widths)

    def forward(
        self,
        x: Tensor,
        state: list[State] | None = None,
        taps: dict[int, Tensor] | None = None,
        steps: Tensor | None = None,
    ) -> tuple[Tensor, list[State]]:
        """Run the network; see `Recurrent.forward`."""
        return over_steps(self, x, state, taps, steps)

    def why_no_segments(self) -> str | None:
        if self.dropout:
            return "dropout would draw other masks"
        return "model.pooling=mean reads all steps at once" if self.pooling == "mean" else None

    def whole(
        self,
        x: Tensor,
        state: list[State] | None,
        taps: dict[int, Tensor] | None = None,
        steps: Tensor | None = None,
    ) -> tuple[Tensor, list[State]]:
        """Outputs and final states of a sequence, all of it at once."""
        final = []
        h = self._encoded(x)
        for i, cell in enumerate(self.cells):
            last, start = cell is self.cells[-1], None if state is None else state[i]
            read = self._normed(h, i)
            if taps is not None and last:
                seen, end = reference.run(cell, read, checked(cell, read, start), taps)
                seen = at_steps(seen, steps)
            else:
                seen, end = recurrence(cell, read, start, self.engine, self.steps_of(cell, x, steps, self._once()))
            final.append(end)
            if last and self._once():
                h, seen = last_of(h), last_of(seen) if cell.returns_output else end[0]
            if last:
                h = at_steps(h, steps)
            h = h + self.dropped(self._branch(seen, i), self.dropout)
        if self.readout == "last" and self.pooling == "mean":
            h = h.mean(1)
        return F.linear(h, self.output_weight, self.output_bias), final

    def multiply_adds(self, tokens: bool = False) -> int:
        """See `Network`: where only the last step is read, the last block's branch is taken once per sequence."""
        maps = [*self.V[:-1]] if self._once() else [*self.V]
        maps += [] if tokens else [self.encoder]
        maps += [self.output_weight] if self.readout == "all" else []
        return self._of_cells(tokens=False) + sum(p.numel() for p in maps)

    def layer_inputs(self, x: Tensor) -> list[Tensor]:
        h, found = self._encoded(x), []
        for i, cell in enumerate(self.cells):
            found.append(self._normed(h, i))
            if cell is not self.cells[-1]:
                h = h + self._branch(recurrence(cell, found[-1], None, self.engine)[0], i)
        return found

    def _once(self) -> bool:
        """Return True if the last step alone is read."""
        return self.readout == "last" and self.pooling == "last"

    def _encoded(self, x: Tensor) -> Tensor:
        """E x + e, (B, T, D)."""
        return projection(x, self.encoder, self.encoder_bias).transpose(0, 1)

    def _normed(self, h: Tensor, i: int) -> Tensor:
        if not len(self.norms):
            return h
        scale, shift = self.norms[i]
        return F.layer_norm(h, h.shape[-1:], scale, shift, EPSILON)

    def _branch(self, seen: Tensor, i: int) -> Tensor:
        """GLU(GELU(features)), (..., D)."""
        a = F.linear(F.gelu(self.cells[i].features(seen)), self.V[i], self.c[i])
        return F.glu(a, dim=-1) if self.glu else a
