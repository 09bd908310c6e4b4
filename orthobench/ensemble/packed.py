"""Parameters of S members in one tensor (S, M) for every kind of step, so that a step costs the same for any number.

Their memory stays where it is, so that a captured graph can read it.
"""

from collections.abc import Hashable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from orthobench.models.optim import as_real, lists

NamedTensors = dict[str, Tensor]


class Pack:
    """Some of the parameters of all members, complex ones as real and imaginary parts, side by side.

    Attributes:
        names: the parameters' names.
        values: (S, M), a leaf with a gradient.
        captured: another leaf of the same memory, for graphs. Autograd keeps a leaf for the stream on which it is first
            used, and a capture that reaches one of another stream is invalid.
    """

    def __init__(self, names: list[str], models: list[nn.Module]) -> None:
        self.names = names
        with torch.inference_mode(False), torch.no_grad():
            own = [as_real(models[0].get_parameter(name)) for name in names]
            self.shapes = [tuple(p.shape) for p in own]
            self._sizes = [p.numel() for p in own]
            self._complex = [models[0].get_parameter(name).is_complex() for name in names]
            self.values = torch.empty(len(models), sum(self._sizes), dtype=own[0].dtype, device=own[0].device)
        self.captured = self.values.detach().requires_grad_()
        self.values.requires_grad_()

    def named(self, captured: bool = False) -> NamedTensors:
        """Every parameter, (S, ...), as a part of `values`, or of `captured`."""
        cut = zip((self.captured if captured else self.values).split(self._sizes, 1), self.shapes, strict=True)
        parts = (p.view(len(p), *shape) for p, shape in cut)
        whole = (torch.view_as_complex(p.contiguous()) if c else p for p, c in zip(parts, self._complex, strict=True))
        return dict(zip(self.names, whole, strict=True))

    def joined(self, rows: list[list[Tensor]]) -> Tensor:
        """Tensor (S, M) of what every member has for every parameter, in its real shape."""
        return torch.stack([torch.cat([as_real(t).flatten() for t in row]) for row in rows])

    def rows(self, values: Tensor) -> list[list[Tensor]]:
        """Parts of a tensor (S, M): for every member what it has for every parameter, in its real shape."""
        cut = [row.split(self._sizes) for row in values.unbind()]
        return [[p.view(s) for p, s in zip(row, self.shapes, strict=True)] for row in cut]

    def gradients(self, values: Tensor) -> dict[str, list[Tensor]]:
        """Gradients (S, M) by name and member, in the parameters' own type."""
        found = zip(*self.rows(values), strict=True)
        return {
            name: [torch.view_as_complex(g.contiguous()) if c else g for g in row]
            for name, row, c in zip(self.names, found, self._complex, strict=True)
        }


class Packed:
    """All parameters and buffers of members of one shape.

    Attributes:
        packs: the parameters that have gradients, those of one kind together.
        fixed: the other parameters, and all buffers, (S, ...).

    Args:
        models: the members' models.
        kinds: the kind of every parameter that has a gradient, by name.
    """

    def __init__(self, models: list[Any], kinds: Mapping[str, Hashable]) -> None:
        alike: dict[Hashable, list[str]] = {}
        for name, p in models[0].named_parameters():
            if name in kinds:
                alike.setdefault((kinds[name], as_real(p.detach()).dtype), []).append(name)
        self.packs = [Pack(names, models) for names in alike.values()]
        self._order = [name for name, _ in models[0].named_parameters()]
        with torch.inference_mode(False), torch.no_grad():
            rest = {n: p for n, p in models[0].named_parameters() if n not in kinds} | dict(models[0].named_buffers())
            self.fixed = {
                n: torch.empty(len(models), *t.shape, dtype=t.dtype, device=t.device) for n, t in rest.items()
            }

    @property
    def values(self) -> list[Tensor]:
        """The packs' values."""
        return [pack.values for pack in self.packs]

    def named(self, captured: bool = False) -> NamedTensors:
        """Every parameter and buffer by name, (S, ...), parameters in the order of the model; see `Pack.captured`."""
        found = dict(self.fixed)
        for pack in self.packs:
            found |= pack.named(captured)
        return {name: found[name] for name in (*self._order, *(n for n in self.fixed if n not in self._order))}

    def load(self, models: list[Any]) -> "Packed":
        """Take over the members' values."""
        with torch.inference_mode(False), torch.no_grad():
            own = [dict(model.named_parameters()) | dict(model.named_buffers()) for model in models]
            for pack in self.packs:
                pack.values.copy_(pack.joined([[tensors[name] for name in pack.names] for tensors in own]))
            for name, fixed in self.fixed.items():
                fixed.copy_(torch.stack([tensors[name] for tensors in own]))
        return self

    @torch.no_grad()
    def store(self, models: list[Any]) -> None:
        """Give the members the values of their parameters."""
        for pack in self.packs:
            for model, row in zip(models, pack.rows(pack.values), strict=True):
                lists._foreach_copy_([as_real(model.get_parameter(name)) for name in pack.names], row)

    def fits(self, models: list[Any]) -> bool:
        """Return True if there is room for just these members, where they are and in their types."""
        p, values = next(models[0].parameters()), [*self.values, *self.fixed.values()][0]
        return (len(models), p.device, as_real(p.detach()).dtype) == (len(values), values.device, values.dtype)
