"""Checks of state that a class from outside the package hides: what it keeps beside its state and its buffers.

Answers would then depend on what was computed before, and a checkpoint would not hold it.
"""

import copy
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from orthobench.cells.base import Cell
from orthobench.errors import ConfigError
from orthobench.scan import reference

B = 2
LONG, CUT = 24, 9  # steps of the sequences that are run whole and in two pieces
RTOL, ATOL = 1e-3, 1e-4
NEARBY = 1e-6  # a relative change of the input, ten times what rounding is
PACKAGES = ("orthobench", "torch")  # whose modules, and private attributes that they declare, are not looked at
MODULE = frozenset(vars(nn.Module()))


def inputs(cell: Cell, steps: int, seed: int) -> Tensor:
    """Standard normal inputs of two sequences, (B, steps, I)."""
    draws = torch.Generator().manual_seed(seed)
    return torch.randn(B, steps, cell.input_size, dtype=cell.U.dtype, generator=draws)


def answers(made: Cell, x: Tensor) -> Tensor:
    """Features of every step that a readout gets, (B, T, F)."""
    return made.features(reference.run(made, x, made.initial_state(x.shape[0]))[0])


@torch.no_grad()
def refuse_hidden_memory(where: str, made: Cell, x: Tensor) -> None:
    """Refuse a cell that answers otherwise in two pieces: it sees steps to come, or remembers beside its state.

    Rounding differs between the two, and a chaotic cell enlarges that: what a tiny change of the input does is allowed.
    """
    whole, nearby = answers(made, x), answers(made, x + NEARBY * x * inputs(made, LONG, seed=4))
    first, state = reference.run(made, x[:, :CUT], made.initial_state(B))
    second, _ = reference.run(made, x[:, CUT:], state)
    pieces = torch.cat([made.features(first), made.features(second)], dim=1)
    size, chaos = ((y.abs().amax((0, 2), keepdim=True)) for y in (whole, whole - nearby))
    far = (whole - pieces).abs() > RTOL * size + 10 * chaos
    if far[:, :CUT].any():
        raise ConfigError(
            f"{where}: its answer to the first {CUT} of {LONG} steps depends on the steps after them: no step may see "
            "those to come, so `project` must treat each step alone."
        )
    if far.any():
        raise ConfigError(
            f"{where}: a sequence of {LONG} steps has another answer when it is cut after {CUT} and goes on from the "
            "state there: whatever `step` or `project` need of earlier steps must be in the state."
        )


def refuse_what_calls_leave(where: str, made: Cell, spare: Cell, x: Tensor) -> None:
    """Refuse a cell that in training draws by other generators than torch's, or keeps what no buffer holds.

    Its buffers, which checkpoints have, are put back before it is asked again.

    Args:
        where: the class, for messages.
        made: the cell.
        spare: another of the same numbers that has never been called in training.
        x: inputs (B, T, I).
    """
    begun = copy.deepcopy(spare.state_dict())
    with torch.no_grad():
        before = answers(spare, x)
    found = []
    for _ in range(2):
        made.load_state_dict(begun)
        made.train()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            found.append(answers(made, x).detach())
        made.eval()
    made.load_state_dict(begun)
    with torch.no_grad():
        after = answers(made, x)
    for first, second, when in ((*found, "in training"), (before, after, "after it has been called in training")):
        if not torch.allclose(first, second, rtol=RTOL, atol=ATOL):
            raise ConfigError(
                f"{where}: {when} the same sequences have another answer with torch's generator in the same state: "
                "draw by torch alone, and keep what is counted in a buffer (register_buffer), which checkpoints hold."
            )


def refuse_kept_answers(where: str, spare: nn.Module, answer_of: Callable[[Any], Tensor]) -> None:
    """Refuse a class whose answer without gradients, as in validation, is one from before its parameters changed.

    Args:
        where: the class, for messages.
        spare: a module whose parameters are moved.
        answer_of: what is computed by it.
    """
    spare.eval()
    draws = torch.Generator().manual_seed(7)
    with torch.no_grad():
        answer_of(spare)
        for p in spare.parameters():
            p.add_(0.1 * torch.randn(p.shape, dtype=p.dtype, generator=draws))
    try:
        wanted = answer_of(spare).detach()
        with torch.no_grad():
            found = answer_of(spare)
    except Exception:  # these values are not those that the class begins with, and it need not take all
        return
    if wanted.isfinite().all() and not torch.allclose(found, wanted, rtol=RTOL, atol=ATOL):
        raise ConfigError(
            f"{where}: once its parameters have changed, it answers otherwise under torch.no_grad(), as in validation "
            "and tests, than with gradients: whatever is kept from call to call must follow the parameters."
        )


def refuse_loose_tensors(where: str, made: nn.Module) -> None:
    """Refuse tensors that torch does not know to be the module's: not counted, not trained, not moved to a GPU."""
    known = {id(p) for p in made.parameters()}
    for path, module in made.named_modules():
        if _is_known(type(module)):
            continue
        theirs = {name for base in filter(_is_known, type(module).__mro__) for name in inspect.get_annotations(base)}
        private = MODULE | {name for name in theirs if name.startswith("_")}
        for name, value in vars(module).items():
            if name not in private and any(id(t) not in known for t in _tensors(value)):
                raise ConfigError(
                    f"{where}: {path and f'{path}.'}{name} holds a tensor that torch does not know to be the module's: "
                    "make it an nn.Parameter, a buffer (register_buffer), or an nn.ParameterList, or do not keep it."
                )


def _is_known(cls: type) -> bool:
    return cls.__module__.partition(".")[0] in PACKAGES


def _tensors(value: Any) -> Iterator[Tensor]:
    """The tensors that an attribute holds, in containers too, and in modules in these."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, nn.Module):
        yield from value.parameters()
    elif isinstance(value, list | tuple | set | dict):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _tensors(part)
