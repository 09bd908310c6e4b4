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

from orthobench.cells.base import Cell, State
from orthobench.common.schema import Fraction, Positive, coerce
from orthobench.errors import ConfigError
from orthobench.layers import masks
from orthobench.layers.follow import Follower
from orthobench.layers.frozen import frozen, refuse_for_onnx
from orthobench.layers.resolve import refuse_of_torch, resolve
from orthobench.models.make_cell import make_cell
from orthobench.models.optim import SGD, groups
from orthobench.parametrizations.moving_base import Settling
from orthobench.parametrizations.traced import jit, untraced
from orthobench.scan import choose, recurrence
from orthobench.scan.inputs import refuse_layout
from orthobench.scan.pieces import Pieces, run_pieces

DTYPES = (torch.float32, torch.float64)


class Layer(Follower):
    """A stack of one cell, called as `output, h_n = layer(x, h_0)`.

    Outputs are (T, B, F) of inputs (T, B, I), and h_0 and h_n are (L, B, N), see `forward`.

    Initial values are drawn after `torch.manual_seed`, as those of torch's layers are. What a parametrization does
    after an optimizer's step (an inverse that is renewed, a base point that moves) is done by the next forward pass.

    Args:
        input_size: I, the width of an input.
        hidden_size: N, the number of units.
        num_layers: L, the number of layers.
        bias: must be True: every cell has the biases of its paper.
        batch_first: whether inputs and outputs are (B, T, ...) instead of (T, B, ...).
        dropout: share of the features zeroed between layers in training.
        bidirectional: must be False: run a second layer over the sequences in reverse instead.
        proj_size: must be 0: put an nn.Linear behind the layer instead.
        device: where the parameters are; torch's default device when None.
        dtype: their type, float32 or float64; torch's default type when None.
        engine: what runs the recurrence, see `orthobench.scan`; `reference` also has second derivatives.
        **settings: settings of the cell and of its recurrent matrix, named as on the command line after `model.`.

    Attributes:
        cells: the cells, a ModuleList of L.
        output_size: F, the width of an output.

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
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        engine: str = "auto",
        **settings: Any,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        refuse_of_torch(name, bias=bias, bidirectional=bidirectional, proj_size=proj_size)
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
        self._made = resolve(name, self._model(settings), self.hidden_size, settings)
        device = torch.get_default_device() if device is None else device
        self.cells: Any = nn.ModuleList(self._cells())
        self.output_size = self.cells[-1].feature_size
        self.to(device=device, dtype=dtype or torch.get_default_dtype())
        self.engine = engine
        choose(self.cells[0], engine)
        self._start_following()

    def _cells(self) -> list[Cell]:
        """New cells, whose initial values torch's generator decides, on a CPU."""
        with torch.device("cpu"):
            rng = np.random.default_rng(int(torch.randint(1 << 62, ())))
            made, cells, width = self._made, list[Cell](), self.input_size
            for _ in range(self.num_layers):
                cells.append(make_cell(made.settings, made.cell, made.recurrent, rng, width, self.hidden_size))
                width = cells[-1].feature_size
        return cells

    def _model(self, settings: dict[str, Any]) -> str | None:
        """The model whose values are taken; may take settings out that say which."""
        return self.model

    def forward(
        self,
        x: Any,
        h_0: Tensor | State | None = None,
        *,
        lengths: Any = None,
        reset: Tensor | None = None,
    ) -> tuple[Any, Tensor | State]:
        """Run the layer over sequences.

        Args:
            x: (T, B, I), with `batch_first` (B, T, I), or (T, I) for one sequence; or a PackedSequence.
            h_0: initial state (L, B, N), or (L, N) for one sequence; a tuple of such tensors for a cell with several
                states; where the cell starts when None: zeros, what it learns, or its own empty memory (sLSTM, mLSTM).
            lengths: the number of steps of every sequence of padded inputs, (B,); padding is not read.
            reset: booleans (T, B), (B, T) or (T,): before which steps the state is what a call without `h_0` begins
                with, as where an episode begins.

        Returns:
            Outputs (T, B, F), (B, T, F) or (T, F), zero where there is padding, or a PackedSequence; and the final
            state in the shape of `h_0`, that of every sequence at its own end.

        Raises:
            ValueError: x, h_0, lengths or reset has another shape, type or device, or values out of range.
            ConfigError: it is exported to ONNX, which has no operators for this layer.
        """
        if torch.onnx.is_in_onnx_export():
            if jit.is_tracing():
                with untraced():
                    still = frozen(self)
                return still._forward(x, h_0, lengths, reset)
            refuse_for_onnx(self)
        if torch.compiler.is_exporting() and torch.compiler.is_dynamo_compiling():
            raise ValueError("layers are exported by torch.export.export(..., strict=False), its default.")
        if jit.is_tracing():
            with untraced():
                self._follow()
        elif not torch.compiler.is_exporting():
            self._follow()
        return self._forward(x, h_0, lengths, reset)

    def _forward(self, x: Any, h_0: Any, lengths: Any, reset: Any) -> tuple[Any, Tensor | State]:
        name = type(self).__name__
        batched = self._check(x)
        if isinstance(x, PackedSequence):
            pieces, order = masks.unpacked(name, x, lengths, reset), x.sorted_indices
            start = self._start(len(pieces.end), h_0, True)
            if start is not None and order is not None:
                start = [tuple(s.index_select(0, order) for s in states) for states in start]
            rows, final = self._run_pieces(x.data, start, pieces)
            if x.unsorted_indices is not None:
                final = [tuple(s.index_select(0, x.unsorted_indices) for s in states) for states in final]
            return PackedSequence(rows, x.batch_sizes, order, x.unsorted_indices), _stacked(final)
        x = x if batched and self.batch_first else x.transpose(0, 1) if batched else x.unsqueeze(0)
        (B, T), start = x.shape[:2], self._start(x.shape[0], h_0, batched)
        if lengths is None and reset is None:
            x, final = self._run(x, start)
        else:
            pieces = masks.pieces(name, B, T, lengths, reset, self.batch_first if batched else None)
            rows, final = self._run_pieces(x.flatten(0, 1), start, pieces)
            x = rows.unflatten(0, (B, T))
        x = x.squeeze(0) if not batched else x if self.batch_first else x.transpose(0, 1)
        return x, _stacked(final, batched)

    def _run(self, x: Tensor, start: list[State] | None) -> tuple[Tensor, list[State]]:
        """The outputs (B, T, F) and every layer's final state of inputs (B, T, I)."""
        final = []
        for i, cell in enumerate(self.cells):
            h, end = recurrence(cell, self._dropped(x, i), None if start is None else start[i], self.engine)
            x = cell.features(h)
            final.append(end)
        return x, final

    def _run_pieces(self, x: Tensor, start: list[State] | None, pieces: Pieces) -> tuple[Tensor, list[State]]:
        """The outputs (R, F) and every layer's final state of inputs (R, I)."""
        final = []
        for i, cell in enumerate(self.cells):
            given = None if start is None else start[i]
            x, end = run_pieces(cell, self._dropped(x, i), given, pieces, self.engine)
            final.append(end)
        return x, final

    def _dropped(self, x: Tensor, layer: int) -> Tensor:
        return F.dropout(x, self.dropout) if layer and self.dropout and self.training else x

    def reset_parameters(self) -> None:
        """Draw all initial values again, as a new layer does after `torch.manual_seed`."""
        self._take(self._cells())

    def flatten_parameters(self) -> None:
        """Nothing: here for code that was written for `nn.GRU`."""

    def _fill_constants(self) -> None:
        """Give values to the buffers that no state_dict has, where loading with `assign=True` has left them out."""
        if any(p.is_meta for p in self.parameters()) or not any(b.is_meta for b in self.buffers()):
            return
        for own, new in zip(self.cells.modules(), nn.ModuleList(self._cells()).modules(), strict=True):
            for name, value in new._buffers.items():
                mine = own._buffers[name]
                if value is not None and mine is not None and mine.is_meta:
                    own._buffers[name] = value.to(self.cells[0].U.device, mine.dtype)

    @torch.no_grad()
    def _take(self, cells: list[Cell]) -> None:
        """The values of other cells, those of their buffers that no state_dict has, and their counts of steps."""
        made = nn.ModuleList(cells).to(self.cells[0].U)
        for own, new in zip(self.cells.modules(), made.modules(), strict=True):
            for mine, theirs in ((own._parameters, new._parameters), (own._buffers, new._buffers)):
                for name, value in theirs.items():
                    if value is not None:
                        mine[name].copy_(value)  # type: ignore[union-attr]
            if isinstance(own, Settling):
                with torch.device(self.cells[0].U.device):  # in place of one that stands around the call
                    own.begin_as(new)
        self._followed = self._versions()

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        empty = any(p.is_meta for p in self.parameters())
        super()._apply(fn, recurse)
        if empty and not any(p.is_meta for p in self.parameters()):
            self.reset_parameters()  # `to_empty` leaves memory as it is, that of constants too
        return self

    def parameter_groups(self, lr: float, lr_recurrent: float | None = None) -> list[dict[str, Any]]:
        """Groups for an optimizer of torch: the constrained parameters have a rate of their own and no weight decay,
        and the gains of norms have none either.

        Args:
            lr: the learning rate of the other parameters.
            lr_recurrent: that of the constrained ones; the same when None.
        """
        rule = SGD()
        found = groups(self, rule, lr, rule, lr if lr_recurrent is None else lr_recurrent)
        gains = {id(getattr(cell, name)) for cell in self.cells for name in getattr(cell, "gains", ())}
        free, own = found[0], [p for p in found[0]["params"] if id(p) in gains]
        if own:
            free["params"] = [p for p in free["params"] if id(p) not in gains]
            found.append({**free, "name": "free, decay 0", "params": own, "decay": 0.0})
        keys = ("name", "params", "lr")
        return [
            {key: group[key] for key in keys}
            | ({"weight_decay": 0.0} if group["constrained"] else {})
            | ({"weight_decay": group["decay"]} if "decay" in group else {})
            for group in found
        ]

    def extra_repr(self) -> str:
        """See `nn.Module.extra_repr`."""
        shown = {"num_layers": (self.num_layers, 1), "batch_first": (self.batch_first, False)}
        shown |= {"dropout": (self.dropout, 0.0), "engine": (self.engine, "auto")}
        unusual = [f"{key}={value}" for key, (value, default) in shown.items() if value != default]
        return ", ".join([str(self.input_size), str(self.hidden_size), *unusual])

    def _check(self, x: Any) -> bool:
        """Return True if x is a batch of sequences; refuse what `recurrence` would take for something else."""
        name, dtype = type(self).__name__, self.cells[0].U.dtype
        if dtype not in DTYPES:
            raise ValueError(f"{name} is in {dtype}, which rounds its matrix: use float32 and torch.autocast.")
        if isinstance(x, PackedSequence):
            if not x.data.is_floating_point() or x.data.dim() != 2 or x.data.shape[-1] != self.input_size:
                said = f"they are {tuple(x.data.shape)} in {x.data.dtype}"
                raise ValueError(f"{name} needs numbers (steps, {self.input_size}) in a PackedSequence: {said}.")
            return True
        if not isinstance(x, Tensor):
            raise ValueError(f"{name} needs a tensor: x is a {type(x).__name__}.")
        refuse_layout(name, x)
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
        own, L = _widest([cell.state_shapes() for cell in self.cells]), self.num_layers
        wanted = [(L, B, *shape) if batched else (L, *shape) for shape in own]
        if [tuple(s.shape) for s in states] != wanted:
            given, needed = ", ".join(str(tuple(s.shape)) for s in states), ", ".join(map(str, wanted))
            raise ValueError(f"{type(self).__name__} needs an initial state {needed}: it is {given}.")
        states = states if batched else tuple(s.unsqueeze(1) for s in states)
        return [
            tuple(s[i][:, *map(slice, shape)] for s, shape in zip(states, cell.state_shapes(), strict=True))
            for i, cell in enumerate(self.cells)
        ]


def _widest(shapes: list[tuple[tuple[int, ...], ...]]) -> list[tuple[int, ...]]:
    """The shapes that hold the states of every layer; what a cell keeps of its inputs is as wide as these are."""
    return [tuple(max(sizes) for sizes in zip(*same, strict=True)) for same in zip(*shapes, strict=True)]


def _stacked(final: list[State], batched: bool = True) -> Tensor | State:
    """Every layer's state (L, B, ...), or (L, ...) of one sequence; without a copy where there is one layer."""
    states = tuple(_of_all_layers(s) for s in zip(*final, strict=True))
    states = states if batched else tuple(s.squeeze(1) for s in states)
    return states[0] if len(states) == 1 else states


def _of_all_layers(states: tuple[Tensor, ...]) -> Tensor:
    """State of every layer, (L, B, ...); narrower ones have zeros behind them."""
    if len(states) == 1:
        return states[0].unsqueeze(0)
    if len({s.shape[1:] for s in states}) == 1:
        return torch.stack(states)
    (wide,) = _widest([(tuple(s.shape),) for s in states])
    padding = [
        [n for size, full in zip(s.shape[::-1], wide[::-1], strict=True) for n in (0, full - size)] for s in states
    ]
    return torch.stack([F.pad(s, by) if any(by) else s for s, by in zip(states, padding, strict=True)])
