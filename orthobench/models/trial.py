"""A trial of classes from outside the package: what breaks their contract is told before a run, in one sentence.

Two steps of two sequences say whether the shapes and types are right, whether every parameter takes part, and whether
an answer depends on its own sequence and nothing else.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from orthobench.cells.base import Cell
from orthobench.errors import ConfigError
from orthobench.optim import Rule
from orthobench.parametrizations.base import Parametrization
from orthobench.scan import reference

B, T = 2, 2
RTOL, ATOL = 1e-3, 1e-4
MODULE = frozenset(vars(nn.Module()))


def tried_cell(cls: type[Cell], arguments: dict[str, Any]) -> Cell:
    """A cell of a class from outside the package.

    Raises:
        ConfigError: it cannot be made, or it breaks the contract of `Cell`.
    """
    where = f"{cls.__name__} in {cls.__module__}"
    with _told(where, "making it, and one step of two sequences,"):
        made: Any = cls(**arguments)
        kinds = (made.U.dtype, made.U.dtype.to_complex())
        odd = next(((name, p.dtype) for name, p in made.named_parameters() if p.dtype not in kinds), None)
        if odd:
            raise ConfigError(f"{where}: its parameter {odd[0]} is in {odd[1]}, the others are in {kinds[0]}.")
        _refuse_loose_tensors(where, made)
        x = torch.randn(B, T, made.input_size, dtype=made.U.dtype, generator=torch.Generator().manual_seed(1))
        with torch.no_grad():
            _check_step(where, made, x)
    made.eval()  # without what is random in training
    with _told(where, "two steps of two sequences,"):
        answer = _answers(made, x)
        again, alone, other = _answers(made, x), _answers(made, x[:1]), _answers(made, -x)
    made.train()
    if not torch.equal(answer, again):
        raise ConfigError(
            f"{where}: the same sequences give another answer the second time: `step` depends on something beside its "
            "arguments, such as what it keeps from step to step, or chance."
        )
    if not torch.allclose(alone, answer[:1], rtol=RTOL, atol=ATOL):
        raise ConfigError(f"{where}: the answer to a sequence depends on what other sequences are in its batch.")
    if torch.equal(answer, other):
        raise ConfigError(f"{where}: the input makes no difference to the answer.")
    _refuse_idle_parameters(where, made, answer)
    return made


def tried_map(cls: type[Parametrization], arguments: dict[str, Any]) -> Parametrization:
    """A parametrization of a class from outside the package.

    Raises:
        ConfigError: it cannot be made, or it breaks the contract of `Parametrization`.
    """
    where, n = f"{cls.__name__} in {cls.__module__}", arguments["n"]
    with _told(where, "making it, and its matrix,"):
        made = cls(**arguments)
        W: Any = made()
        if not isinstance(W, Tensor) or W.shape != (n, n):
            given = tuple(W.shape) if isinstance(W, Tensor) else type(W).__name__
            raise ConfigError(f"{where}: `forward` returns {given} for n={n}, and not a matrix {(n, n)}.")
        if not (W.is_floating_point() or W.is_complex()):
            raise ConfigError(f"{where}: `forward` returns a matrix in {W.dtype}.")
        if made.constrained and not made.contains(W.detach(), made.tolerance):
            raise ConfigError(
                f"{where}: its first matrix is not of the kind that it is constrained to: `contains` says so, within "
                f"its tolerance of {made.tolerance:g}."
            )
    _refuse_idle_parameters(where, made, W)
    return made


def tried_rule(cls: type[Rule], arguments: dict[str, Any]) -> Rule:
    """An optimizer's rule of a class from outside the package.

    Raises:
        ConfigError: it cannot be made, its step fails, or it moves nothing.
    """
    where = f"{cls.__name__} in {cls.__module__}"
    before = torch.ones(3)
    p = [before.clone()]
    with _told(where, "making it, and one step,"), torch.no_grad():
        made = cls(**arguments)
        made.step(p, [torch.ones(3)], [{}], 0.1)
    if torch.equal(p[0], before):
        raise ConfigError(
            f"{where}: `step` moves nothing: it must change the tensors of p in place, as p[0].sub_(...)."
        )
    return made


@contextmanager
def _told(where: str, doing: str) -> Iterator[None]:
    """Turn whatever a class of the user's raises into one sentence."""
    try:
        yield
    except ConfigError:
        raise
    except Exception as error:
        told = " ".join(str(error).split())
        raise ConfigError(f"{where}: {doing} ends in {type(error).__name__}: {told}.") from error


def _check_step(where: str, made: Any, x: Tensor) -> None:
    """Look at the answer of one step: its form, its shapes and its types."""
    start = made.initial_state(B)
    answer = made.step(made.project(x)[0], start, made.matrices())
    if made.returns_output and (not isinstance(answer, tuple) or len(answer) != 2):
        raise ConfigError(f"{where}: with returns_output, `step` returns the pair (output, state).")
    output, state = answer if made.returns_output else (None, answer)
    wanted = [(B, *shape) for shape in made.state_shapes()]
    if not isinstance(state, tuple):
        raise ConfigError(
            f"{where}: `step` returns a {type(state).__name__} and not a tuple of states, such as `(h,)`."
        )
    shapes = [tuple(part.shape) for part in state]
    if shapes != wanted:
        raise ConfigError(f"{where}: `step` returns states of shapes {shapes} for two sequences, not {wanted}.")
    types, begun = [part.dtype for part in state], [part.dtype for part in start]
    if types != begun:
        raise ConfigError(f"{where}: `step` returns states in {types}, and they begin in {begun}.")
    seen = made.features(state[0] if output is None else output)
    if tuple(seen.shape) != (B, made.feature_size) or not seen.is_floating_point():
        raise ConfigError(
            f"{where}: what a readout gets is {tuple(seen.shape)} in {seen.dtype} for two sequences, and must be "
            f"{(B, made.feature_size)} in real numbers: see `features` and `feature_size`."
        )


def _answers(made: Cell, x: Tensor) -> Tensor:
    """What a readout gets of every step, (B, T, F)."""
    return made.features(reference.run(made, x, made.initial_state(x.shape[0]))[0])


def _refuse_idle_parameters(where: str, made: nn.Module, answer: Tensor) -> None:
    """Refuse parameters that no gradient reaches: they would be counted, and never trained."""
    own = [(name, p) for name, p in made.named_parameters() if p.requires_grad]
    if own and not answer.requires_grad:
        raise ConfigError(f"{where}: no gradient reaches its parameters: compute with torch alone, without detach().")
    weights = torch.randn(answer.shape, dtype=answer.dtype, generator=torch.Generator().manual_seed(2))
    found = torch.autograd.grad((answer * weights).abs().sum(), [p for _, p in own], allow_unused=True) if own else ()
    idle = next((name for (name, _), g in zip(own, found, strict=True) if g is None), None)
    if idle is not None:
        raise ConfigError(f"{where}: no gradient reaches its parameter {idle}: it would be counted and never trained.")


def _refuse_loose_tensors(where: str, made: nn.Module) -> None:
    """Refuse tensors that torch does not know to be the module's: not counted, not trained, not moved to a GPU."""
    for name, value in vars(made).items():
        parts = [value]
        if isinstance(value, list | tuple | set | dict):
            parts = list(value.values() if isinstance(value, dict) else value)
        if name not in MODULE and any(isinstance(part, Tensor) for part in parts):
            raise ConfigError(
                f"{where}: {name} holds a tensor that torch does not know to be the cell's: make it an nn.Parameter, a "
                "buffer (register_buffer), or an nn.ParameterList."
            )
