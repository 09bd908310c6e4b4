"""Deep feed-forward networks: a first layer, square layers and a linear readout, with residual blocks as an option.

    h_0 = act(W_in x + b_in),   y = W_out h + b_out

    h_k = act(W_k h_{k-1} + b_k)                                        a plain stack
    h_k = h_{k-1} + W_{k,2} act(W_{k,1} h_{k-1} + b_{k,1}) + b_{k,2}    residual blocks of two layers

The square matrices come from a parametrization: SVD makes Spectral-MLP and Spectral-ResNet, a free matrix MLP and
ResNet. Where the paper is silent, the order inside a block, the activation of a plain stack and all initial values are
our choice. Zhang, Lei & Dhillon (2018), "Stabilizing Gradients for Deep Neural Networks via Efficient SVD
Parameterization", sections 5 and 7.2.
"""

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from orthobench.cells.activations import Activation, activate
from orthobench.cells.base import State
from orthobench.common.schema import NonNegativeFloat, Positive
from orthobench.models.base import Network
from orthobench.parametrizations.base import Parametrization
from orthobench.parametrizations.initializers import Rng, weight

MakeMatrix = Callable[[int, int], Parametrization]


class FeedForward(Network):
    """A stack of square layers on vectors (B, I), without time (Zhang et al. 2018, sections 5 and 7.2).

    Args:
        input_size: I, the width of an input.
        output_size: O, the width of an output.
        make_matrix: builds the parametrization of a (rows, columns) matrix.
        rng: generator for the initial values.
        hidden_size: N, the number of units.
        layers: number of square layers between the first and the readout; 30 to 100 in the paper.
        residual: whether they form residual blocks of two; where their number is odd, the last layer is a block by
            itself, h + act(W h + b).
        activation: relu, leaky_relu, abs or tanh.
        negative_slope: leaky ReLU's factor on negative values.
        ends: `free`: the first layer and the readout are dense matrices; `constrained`: rectangular matrices of the
            same parametrization as the square ones.
        input_init: scheme of the first layer's weights, or a bound; used with `free` ends only.
        output_init: scheme of the readout's weights, or a bound; used with `free` ends only.
    """

    sequential = False

    def __init__(
        self,
        input_size: int,
        output_size: int,
        make_matrix: MakeMatrix,
        rng: Rng,
        hidden_size: Positive = 128,
        layers: Positive = 30,
        residual: bool = False,
        activation: Literal["relu", "leaky_relu", "abs", "tanh"] = "leaky_relu",
        negative_slope: NonNegativeFloat = 0.1,
        ends: Literal["free", "constrained"] = "free",
        input_init: str | float = "he_normal",
        output_init: str | float = "he_normal",
    ) -> None:
        super().__init__()
        I, N, O = input_size, hidden_size, output_size
        self.activation: Activation = activation
        self.negative_slope, self.residual = negative_slope, residual
        self.constrained_ends = ends == "constrained"
        if self.constrained_ends:
            self.first, self.last = make_matrix(N, I), make_matrix(O, N)
        else:
            self.W_in = nn.Parameter(weight(input_init, rng, (N, I)))
            self.W_out = nn.Parameter(weight(output_init, rng, (O, N)))
        self.cells = nn.ModuleList()
        self.matrices = nn.ModuleList(make_matrix(N, N) for _ in range(layers))
        self.b_in, self.b_out = nn.Parameter(torch.zeros(N)), nn.Parameter(torch.zeros(O))
        self.b = nn.Parameter(torch.zeros(layers, N))
        self.values_held = (3 * layers + 3) * N

    def forward(
        self, x: Tensor, state: list[State] | None = None, taps: dict[int, Any] | None = None
    ) -> tuple[Tensor, list[State]]:
        """Run the network.

        Args:
            x: (B, I).
            state: unused; there is no time.
            taps: its keys are the square layers, counted from 1, whose output the caller wants (in a residual network
                the sum at the end of the layer's block). The values are filled in here; layers that do not exist are
                removed.

        Returns:
            Outputs (B, O), and no state.
        """
        with torch.autocast(x.device.type, enabled=False):  # a rounded matrix would leave its manifold
            first = self.first() if self.constrained_ends else self.W_in
            last = self.last() if self.constrained_ends else self.W_out
            matrices = [matrix() for matrix in self.matrices]
        h, seen = self._act(F.linear(x, first, self.b_in)), {}
        layers, size = list(zip(matrices, self.b, strict=True)), 2 if self.residual else 1
        for start in range(0, len(layers), size):
            block = layers[start : start + size]
            h = self._block(h, block)
            seen |= {start + k: h for k in range(1, len(block) + 1)}
        for layer in list(taps or ()):
            assert taps is not None
            if layer in seen:
                taps[layer] = seen[layer]
            else:
                del taps[layer]
        return F.linear(h, last, self.b_out), []

    def multiply_adds(self, tokens: bool = False) -> int:
        """See `Network`: of one example; the biases of all layers are a matrix that multiplies nothing."""
        return super().multiply_adds(tokens) - self.b.numel()

    def _block(self, h: Tensor, layers: list[tuple[Tensor, Tensor]]) -> Tensor:
        (W, b), *second = layers
        z = self._act(F.linear(h, W, b))
        if not self.residual:
            return z
        return h + (F.linear(z, *second[0]) if second else z)

    def _act(self, z: Tensor) -> Tensor:
        return activate(self.activation, z, slope=self.negative_slope)

    def recurrent_weights(self) -> list[Tensor]:
        """The constrained matrices, one per layer, with at least as many rows as columns; empty when there is none."""
        return [W if W.shape[0] >= W.shape[1] else W.T for W in super().recurrent_weights()]

    def engines(self) -> list[tuple[str, str]]:
        return [("reference", "layers one after the other: there is no recurrence to drive")]
