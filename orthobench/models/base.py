"""The base class of all networks, with what the learner, the optimizer and the records need of them."""

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from orthobench.cells.base import State
from orthobench.models.segments import Checkpoint
from orthobench.parametrizations.base import Parametrized, inside_and_outside
from orthobench.parametrizations.traced import traced
from orthobench.scan import choose


class Network(Parametrized, ABC):
    """A model, called as y, state = network(x, state).

    Attributes:
        cells: the recurrent layers' cells, a ModuleList; empty where there is no recurrence.
        sequential: whether it reads sequences, (B, T, I) or tokens (B, T); otherwise (B, I).
        values_held: numbers per example that a training step keeps in memory, those of the recurrent layers left out.
        values_per_step: the same, per example and step of a sequence.
        engine: what runs the cells, see `orthobench.scan`.
        sequences: about how many sequences it computes at once; None where that is not known.
        locked_dropout: whether a sequence keeps one mask for all its steps.
        reads_steps: whether `forward` may be asked for the outputs of some steps alone, where there is one for each.
        checkpoint: how it goes over segments of a sequence, see `models.segments`; None for the whole at once.
    """

    cells: Any
    sequential: bool = True
    values_held: int = 0
    values_per_step: int = 0
    engine: str = "auto"
    sequences: int | None = None
    locked_dropout: bool = False
    reads_steps: bool = False
    checkpoint: Checkpoint = None

    def why_no_segments(self) -> str | None:
        """Reason why it cannot go over a sequence in segments; None where it can."""
        return "only recurrent networks go over a sequence step by step"

    @abstractmethod
    def forward(
        self,
        x: Tensor,
        state: list[State] | None = None,
        taps: dict[int, Any] | None = None,
        steps: Tensor | None = None,
    ) -> tuple[Tensor, list[State]]:
        """Run the network.

        Args:
            x: (B, T, I), or tokens (B, T); (B, I) where there is no time.
            state: of every recurrent layer, tensors (B, N) as `Cell.initial_state` gives them; these when None.
            taps: its keys are the steps (layers, where there is no time) whose hidden state is wanted, (B, N); the
                values are filled in here.
            steps: the steps (B, K) whose outputs are wanted, different ones in a sequence, where it `reads_steps`.

        Returns:
            Outputs, (B, O) or at every step (B, T, O), or at K `steps`; and the final state of every recurrent layer.
        """

    def steps_of(self, cell: Any, x: Tensor, steps: Tensor | None, last: bool) -> Tensor | None:
        """The steps (B, K) at which a layer's outputs are read: `steps` of the last layer, all of others (None).

        Args:
            cell: the layer's cell.
            x: the network's inputs, (B, T, I) or tokens (B, T).
            steps: see `forward`.
            last: whether the readout reads the last step alone, which is then the only one of a cell whose outputs are
                not its states; while anything traces, it is chosen from all.

        Raises:
            ValueError: the readout reads the last step, and others are asked for.
        """
        if cell is not self.cells[-1]:
            return None
        if last and steps is not None:
            raise ValueError("the readout reads the last step alone: other steps need one of every step.")
        if not last or not cell.returns_output or not x.shape[1] or traced(x):
            return steps
        return torch.full((len(x), 1), x.shape[1] - 1, device=x.device)

    def dropped(self, h: Tensor, rate: float) -> Tensor:
        """Return h (B, N) or (B, T, N), in training with a share `rate` of it zeroed; see `locked_dropout`."""
        if not rate or not self.training:
            return h
        if self.locked_dropout and h.dim() == 3:
            return h * F.dropout(torch.ones_like(h[:, :1]), rate)
        return F.dropout(h, rate)

    def engines(self) -> list[tuple[str, str]]:
        """(engine, reason) for every recurrent layer; one pair for a network without recurrent layers."""
        found = []
        for cell in self.cells:
            name, why = choose(cell, self.engine, sequences=self.sequences)
            remark = cell.remark()
            found.append((name, why if remark is None else f"{why}; {remark}"))
        return found

    def layer_inputs(self, x: Tensor) -> list[Tensor]:
        """Inputs (B, T, I) of every recurrent layer, each with its own I, where the model is given x, without dropout.

        Args:
            x: as `forward` takes it, (B, T, I) or tokens (B, T), from the initial state.
        """
        return []

    def parameter_counts(self) -> dict[str, int]:
        """Free parameters: `total`, and `recurrent` for the recurrent (or hidden, square) matrices alone.

        What is frozen is not free.
        """
        maps, others = inside_and_outside(self)
        recurrent = sum(p.parameter_count() for p in maps if any(q.requires_grad for q in p.parameters()))
        return {"total": recurrent + sum(q.numel() for q in others if q.requires_grad), "recurrent": recurrent}

    def budget(self, tokens: bool = False) -> dict[str, int]:
        """`state_bytes`, what one sequence's states take between two steps, and `multiply_adds` of a step of it.

        Args:
            tokens: whether the inputs are tokens.
        """
        state = sum(cell.state_bytes() for cell in self.cells)
        return {"state_bytes": state, "multiply_adds": self.multiply_adds(tokens)}

    def multiply_adds(self, tokens: bool = False) -> int:
        """Real multiply-adds of one step of one sequence, or of one example where there is no time.

        Here those of the cells, and one for every number of every other matrix; a network that uses one of them
        otherwise redefines this. Elementwise operations are left out, and so is what is computed once per forward
        pass or once per sequence.

        Args:
            tokens: whether the inputs are tokens, whose product with a matrix is a row of it and costs nothing.
        """
        maps, others = inside_and_outside(self)
        known = {id(module) for cell in self.cells for module in (*cell.modules(), *cell.parameters())}
        free = sum(q.numel() for q in others if q.dim() > 1 and id(q) not in known)
        return self._of_cells(tokens) + free + sum(p.multiply_adds() for p in maps if id(p) not in known)

    def _of_cells(self, tokens: bool) -> int:
        return sum(cell.multiply_adds(tokens and not layer) for layer, cell in enumerate(self.cells))
