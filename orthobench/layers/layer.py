"""The base class of all layers: `torch.nn.RNN` with another cell inside.

Shapes: T time, B batch, I input, N hidden, F features (N, but for complex cells and cells with outputs of their own),
L layers.
"""

from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import PackedSequence
from torch.optim.optimizer import register_optimizer_step_post_hook

from orthobench.cells.base import Cell, State
from orthobench.errors import ConfigError
from orthobench.layers.resolve import resolve
from orthobench.models.make_cell import make_cell
from orthobench.optim import SGD, groups
from orthobench.parametrizations.base import Parametrized
from orthobench.parametrizations.moving_base import Settling
from orthobench.scan import choose, recurrence
from orthobench.scan.uncompiled import uncompiled
from orthobench.schema import Fraction, Positive, coerce

DTYPES = (torch.float32, torch.float64)


class _Fused:
    """How many steps optimizers with `fused=True` have made in this process; torch does not count what they change."""

    steps = 0

    @classmethod
    def count(cls, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        cls.steps += any(group.get("fused") for group in optimizer.param_groups)


register_optimizer_step_post_hook(_Fused.count)


class Layer(Parametrized):
    """A stack of one cell, called as `output, h_n = layer(x, h_0)`.

    Initial values are drawn after `torch.manual_seed`, as those of torch's layers are. What a parametrization does
    after an optimizer's step (an inverse that is renewed, a base point that moves) is done by the next forward pass.

    Args:
        input_size: I.
        hidden_size: N.
        num_layers: L.
        batch_first: whether inputs and outputs are (B, T, ...) instead of (T, B, ...).
        dropout: share of the features zeroed between layers in training.
        device: where the parameters are.
        dtype: their type, float32 or float64.
        engine: what runs the recurrence, see `orthobench.scan`; `reference` also has second derivatives.
        **settings: settings of the cell and of its recurrent matrix, named as on the command line after `model.`.

    Attributes:
        cells: the cells, a ModuleList of L.
        output_size: F.

    Raises:
        ConfigError: an unknown setting, a wrong type or a value out of range.
    """

    model: ClassVar[str | None] = None

    def __init_subclass__(cls, model: str | None = None, **kwargs: Any) -> None:
        """Take the values of conf/model/<model>.yaml, in place of those of the constructors."""
        super().__init_subclass__(**kwargs)
        cls.model = model or cls.model

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        batch_first: bool = False,
        dropout: float = 0.0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        engine: str = "auto",
        **settings: Any,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        self.input_size = coerce(input_size, Positive, f"{name}: input_size")
        self.hidden_size = coerce(hidden_size, Positive, f"{name}: hidden_size")
        self.num_layers = coerce(num_layers, Positive, f"{name}: num_layers")
        self.batch_first = coerce(batch_first, bool, f"{name}: batch_first")
        self.dropout = coerce(dropout, Fraction, f"{name}: dropout")
        if not isinstance(dtype, torch.dtype | None):
            raise ConfigError(f"{name}: dtype={dtype!r} is no type of torch: use torch.float32 or torch.float64.")
        if dtype not in (None, *DTYPES):
            raise ConfigError(
                f"{name}: dtype={dtype} would round the recurrent matrix: use float32 and torch.autocast."
            )
        made = resolve(name, self._model(settings), self.hidden_size, settings)
        rng = np.random.default_rng(int(torch.randint(1 << 62, (), device="cpu")))
        cells: list[Cell] = []
        width = self.input_size
        for _ in range(self.num_layers):
            cells.append(make_cell(made.settings, made.cell, made.recurrent, rng, width, self.hidden_size))
            width = cells[-1].feature_size
        self.cells: Any = nn.ModuleList(cells)
        self.output_size = width
        self.to(device=device, dtype=dtype or torch.get_default_dtype())
        self.engine = engine
        choose(self.cells[0], engine)
        for parametrization in self.parametrizations():
            if isinstance(parametrization, Settling):
                parametrization.careful = True
        self._followed = self._versions()
        self.register_load_state_dict_post_hook(_loaded)  # what was saved has been settled

    def _model(self, settings: dict[str, Any]) -> str | None:
        """The model whose values are taken; may take settings out that say which."""
        return self.model

    def forward(self, x: Tensor, h_0: Tensor | State | None = None) -> tuple[Tensor, Tensor | State]:
        """Run the layer over sequences.

        Args:
            x: (T, B, I), with `batch_first` (B, T, I), or (T, I) for one sequence.
            h_0: initial state (L, B, N), or (L, N) for one sequence; a tuple of such tensors for a cell with several
                states; where the cell starts when null: zeros, what it learns, or its own empty memory (sLSTM, mLSTM).

        Returns:
            Outputs (T, B, F), (B, T, F) or (T, F), and the final state in the shape of `h_0`.

        Raises:
            ValueError: x or h_0 has another shape, type or device.
        """
        self._follow()
        batched = self._check(x)
        x = x if batched and self.batch_first else x.transpose(0, 1) if batched else x.unsqueeze(0)
        start, final = self._start(x.shape[0], h_0, batched), []
        for i, cell in enumerate(self.cells):
            if i and self.dropout and self.training:
                x = F.dropout(x, self.dropout)
            h, end = recurrence(cell, x, None if start is None else start[i], self.engine)
            x = cell.features(h)
            final.append(end)
        h_n = tuple(_stacked(states) for states in zip(*final, strict=True))
        if not batched:
            x, h_n = x.squeeze(0), tuple(s.squeeze(1) for s in h_n)
        elif not self.batch_first:
            x = x.transpose(0, 1)
        return x, h_n[0] if len(h_n) == 1 else h_n

    def after_step(self) -> None:
        """What the parametrizations do after an optimizer's step; a forward pass does it where it is due.

        A call looks at the parameters' values, as a forward pass does not on a GPU.
        """
        for parametrization in self.parametrizations():
            if isinstance(parametrization, Settling):
                parametrization.look_again()
        self._settle()

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """See `nn.Module.state_dict`; what is due after an optimizer's step is done before."""
        self._follow()
        return super().state_dict(*args, **kwargs)

    def recurrent_weights(self) -> list[Tensor]:
        """The constrained matrices (N, N), one per layer and gate; empty when there is none."""
        self._follow()
        return super().recurrent_weights()

    def parameter_groups(self, lr: float, lr_recurrent: float | None = None) -> list[dict[str, Any]]:
        """Groups for an optimizer of torch: the constrained parameters have a rate of their own and no weight decay.

        Args:
            lr: the learning rate of the other parameters.
            lr_recurrent: that of the constrained ones; the same when null.
        """
        rule = SGD()
        found = groups(self, rule, lr, rule, lr if lr_recurrent is None else lr_recurrent)
        keys = ("name", "params", "lr")
        return [
            {key: group[key] for key in keys} | ({"weight_decay": 0.0} if group["constrained"] else {})
            for group in found
        ]

    def extra_repr(self) -> str:
        """See `nn.Module.extra_repr`."""
        shown = {"num_layers": (self.num_layers, 1), "batch_first": (self.batch_first, False)}
        shown |= {"dropout": (self.dropout, 0.0), "engine": (self.engine, "auto")}
        unusual = [f"{key}={value}" for key, (value, default) in shown.items() if value != default]
        return ", ".join([str(self.input_size), str(self.hidden_size), *unusual])

    def _check(self, x: Any) -> bool:
        """Whether x is a batch of sequences; refuses what `recurrence` would take for something else."""
        name, dtype = type(self).__name__, self.cells[0].U.dtype
        if dtype not in DTYPES:
            raise ValueError(f"{name} is in {dtype}, which rounds its matrix: use float32 and torch.autocast.")
        if isinstance(x, PackedSequence):
            raise ValueError(f"{name} takes no PackedSequence: pad the sequences, and mask the loss.")
        if not isinstance(x, Tensor):
            raise ValueError(f"{name} needs a tensor: x is a {type(x).__name__}.")
        wanted = f"({'B, T' if self.batch_first else 'T, B'}, {self.input_size}) or (T, {self.input_size})"
        if not x.is_floating_point() or x.dim() not in (2, 3) or x.shape[-1] != self.input_size:
            raise ValueError(f"{name} needs numbers {wanted}: x is {tuple(x.shape)} in {x.dtype}.")
        return x.dim() == 3

    def _start(self, B: int, h_0: Tensor | State | None, batched: bool) -> list[State] | None:
        """The initial state of every layer."""
        if h_0 is None:
            return None
        states = h_0 if isinstance(h_0, tuple | list) else (h_0,)
        other = next((s for s in states if not isinstance(s, Tensor)), None)
        if other is not None:
            raise ValueError(f"{type(self).__name__} needs tensors as its initial state: it is given {other!r}.")
        own, L = self.cells[0].state_shapes(), self.num_layers
        wanted = [(L, B, *shape) if batched else (L, *shape) for shape in own]
        if [tuple(s.shape) for s in states] != wanted:
            given, needed = ", ".join(str(tuple(s.shape)) for s in states), ", ".join(map(str, wanted))
            raise ValueError(f"{type(self).__name__} needs an initial state {needed}: it is {given}.")
        states = states if batched else tuple(s.unsqueeze(1) for s in states)
        return [tuple(s[i] for s in states) for i in range(L)]

    def _versions(self) -> tuple[tuple[int, int], ...] | None:
        """What tells that parameters have moved, without a look at values; null where they are not the layer's own."""
        own = [q for p in self.parametrizations() for q in p.parameters()]
        if any(not isinstance(q, nn.Parameter) or q.is_inference() for q in own):
            return None
        return *((id(q), q._version) for q in own), (0, _Fused.steps)

    @uncompiled  # it reads counts that a graph does not have
    def _follow(self) -> None:
        if torch.compiler.is_exporting() or getattr(self, "_is_replica", False):
            return
        now, before = self._versions(), self._followed
        if now is None or now == before:
            return
        uncounted = before is None or now[-1] != before[-1]
        self.after_step() if uncounted else self._settle()

    def _settle(self) -> None:
        for parametrization in self.parametrizations():
            parametrization.after_step()
        self._followed = self._versions()

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        followed = self._followed == self._versions() if hasattr(self, "_followed") else False
        super()._apply(fn, recurse)
        if followed:
            self._followed = self._versions()
        return self

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_followed": self._followed == self._versions()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._followed = self._versions() if state["_followed"] else None

    def _replicate_for_data_parallel(self) -> Any:
        if any(isinstance(p, Settling) and not p.is_settled() for p in self.parametrizations()):
            use = "call layer.after_step() after every optimizer.step(), or use DistributedDataParallel"
            raise RuntimeError(f"{type(self).__name__} cannot follow the optimizer's step in copies of itself: {use}.")
        return super()._replicate_for_data_parallel()


def _loaded(layer: Layer, keys: Any) -> None:
    layer._followed = layer._versions()


def _stacked(states: tuple[Tensor, ...]) -> Tensor:
    """(L, B, ...), without a copy where there is one layer."""
    return states[0].unsqueeze(0) if len(states) == 1 else torch.stack(states)
