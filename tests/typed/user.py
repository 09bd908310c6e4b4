"""What a typed program of a user writes: `tests/test_typed.py` checks it strictly."""

import torch
from torch import Tensor, nn

import orthobench
from orthobench import layers


class Model(nn.Module):
    """A layer, and what reads it."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = layers.ScoRNN(3, 16, batch_first=True)
        self.readout = nn.Linear(self.rnn.output_size, 2)

    def forward(self, x: Tensor) -> Tensor:
        h, state = self.rnn(x, reset=torch.zeros(x.shape[:2], dtype=torch.bool))
        last: Tensor = state if isinstance(state, Tensor) else state[0]
        return self.readout(h[:, -1]) + last.sum()


def main() -> None:
    """Train nothing, and look at everything that is public."""
    model = Model()
    still: nn.Module = layers.frozen(model)
    fresh = orthobench.build("model=gru", "task=copying", "T=20")
    run = orthobench.load("runs/copying-scornn-93fdd1b366")
    print(still(torch.zeros(2, 5, 3)), fresh.model, run.settings.task["name"], run.model, run.record["status"])
    print(orthobench.records("runs").columns.tolist())
