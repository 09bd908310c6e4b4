"""The contract of cells, matrices and rules from outside the package: what breaks it is told before a run.

A few steps of two sequences say whether the shapes and types are right, whether every parameter takes part, and whether
an answer depends on its own sequence, on the steps until then, and on nothing else. Every class is made twice from the
same seed, so that it is seen whether its numbers follow it.
"""

import copy
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from orthobench.cells.base import Cell
from orthobench.common.registry import in_module, is_ours
from orthobench.errors import ConfigError, OrthobenchError, in_one_sentence
from orthobench.models.hidden_state_checks import (
    ATOL,
    LONG,
    RTOL,
    B,
    answers,
    inputs,
    refuse_hidden_memory,
    refuse_kept_answers,
    refuse_loose_tensors,
    refuse_what_calls_leave,
)
from orthobench.models.optim import Rule
from orthobench.parametrizations.base import Parametrization, parametrizations

T = 2
OTHERS = ((1.0, 0.1), (1.0, 1.0), (0.0, 0.3))  # p <- a p + b z, z standard normal: where gradients are looked for again


def tried_cell(cls: type[Cell], arguments: dict[str, Any]) -> Cell:
    """A cell of a class from outside the package.

    Raises:
        ConfigError: it cannot be made, or it breaks the contract of `Cell`.
    """
    where = in_module(cls)
    with in_one_sentence(where, "making it, and one step of two sequences,"):
        made, spare = _made_twice(where, cls, arguments)
        kinds = (made.U.dtype, made.U.dtype.to_complex())
        odd = next(((name, p.dtype) for name, p in made.named_parameters() if p.dtype not in kinds), None)
        if odd:
            raise ConfigError(
                f"{where}: its parameter {odd[0]} is in {odd[1]}, the others are in {kinds[0]}: make them alike."
            )
        refuse_loose_tensors(where, made)
        inside = {id(p) for found in parametrizations(made) if found.constrained for p in found.parameters()}
        _refuse_unknown_scales(where, made, [name for name, p in made.named_parameters() if id(p) not in inside])
        x = inputs(made, LONG, seed=1)
        with torch.no_grad():
            _check_step(where, made, x)
    for module in (made, spare):
        module.eval()  # without what is random in training
    _check_tokens(where, made)
    with in_one_sentence(where, "two steps of two sequences,"):
        _check_answers(where, made, x[:, :T])
    with in_one_sentence(where, f"{LONG} steps of two sequences,"):
        refuse_hidden_memory(where, made, x)
        refuse_what_calls_leave(where, made, spare, x)
        _refuse_idle_parameters(where, made, spare, lambda cell, seed: answers(cell, inputs(cell, LONG, seed)))
        refuse_loose_tensors(where, made)
        refuse_kept_answers(where, spare, lambda cell: answers(cell, x))
    made.train()
    return made


def tried_map(cls: type[Parametrization], arguments: dict[str, Any]) -> Parametrization:
    """A parametrization of a class from outside the package.

    Raises:
        ConfigError: it cannot be made, or it breaks the contract of `Parametrization`.
    """
    where, n = in_module(cls), arguments["n"]
    with in_one_sentence(where, "making it, and its matrix,"):
        made, spare = _made_twice(where, cls, arguments)
        _refuse_unknown_scales(where, made, [name for name, _ in made.named_parameters()])
        W: Any = made()
        if not isinstance(W, Tensor) or W.shape != (n, n):
            given = tuple(W.shape) if isinstance(W, Tensor) else type(W).__name__
            raise ConfigError(f"{where}: `forward` returns {given} for n={n}, and must return a matrix {(n, n)}.")
        if not (W.is_floating_point() or W.is_complex()):
            raise ConfigError(
                f"{where}: `forward` returns a matrix in {W.dtype}, and must return one in the type of its parameters."
            )
        if not W.isfinite().all():
            raise ConfigError(
                f"{where}: its first matrix holds numbers that are not finite (NaN or infinity): "
                "correct how its parameters are drawn."
            )
        if made.constrained and not made.contains(W.detach(), made.tolerance):
            raise ConfigError(
                f"{where}: its first matrix is not of the kind that it is constrained to: "
                f"`contains` says so, within its tolerance of {made.tolerance:g}; correct `forward` or `contains`."
            )
        _refuse_idle_parameters(where, made, spare, lambda found, seed: found())
        refuse_loose_tensors(where, made)
        refuse_kept_answers(where, spare, lambda found: found())
    return made


def tried_rule(cls: type[Rule], arguments: dict[str, Any]) -> Rule:
    """An optimizer's rule of a class from outside the package.

    Raises:
        ConfigError: it cannot be made, its step fails, or it moves nothing.
    """
    where = in_module(cls)
    before = torch.ones(3)
    p = [before.clone()]
    with in_one_sentence(where, "making it, and one step,"), torch.no_grad():
        made = cls(**arguments)
        made.step(p, [torch.ones(3)], [{}], 0.1)
    if torch.equal(p[0], before):
        raise ConfigError(
            f"{where}: `step` moves nothing: it must change the tensors of p in place, as p[0].sub_(...)."
        )
    return made


def faults_of_strangers(model: Any, doing: str) -> AbstractContextManager[None]:
    """Turn what a network with cells from outside the package raises into one sentence; ours may show their faults."""
    strangers = [type(cell) for cell in model.cells if not is_ours(type(cell))]
    where = ", ".join(map(in_module, dict.fromkeys(strangers)))
    return in_one_sentence(where, doing, (OrthobenchError, MemoryError)) if strangers else nullcontext()


def _made_twice(where: str, cls: type[nn.Module], arguments: dict[str, Any]) -> tuple[Any, Any]:
    """The module, and another from the same states of `rng` and of torch's generator.

    Raises:
        ConfigError: they begin with other numbers.
    """
    copied = copy.deepcopy(arguments)
    with torch.random.fork_rng(devices=[]):
        spare = cls(**copied)
    made = cls(**arguments)
    for (name, first), (_, second) in zip(_numbers(made), _numbers(spare), strict=True):
        inexact = first.is_floating_point() or first.is_complex()
        alike = torch.allclose(first, second, rtol=1e-5, atol=1e-7, equal_nan=True) if inexact else first.equal(second)
        if not alike:
            raise ConfigError(
                f"{where}: its {name} holds other numbers when it is made again from the same seed: draw by torch or "
                "by `rng`, which follow seed=, and not by the generators of NumPy's or Python's own."
            )
    return made, spare


def _numbers(module: nn.Module) -> list[tuple[str, Tensor]]:
    return [*module.named_parameters(), *module.named_buffers()]


def _check_step(where: str, made: Any, x: Tensor) -> None:
    """Look at the answer of one step: its form, its shapes and its types."""
    start = made.initial_state(B)
    before = [part._version for part in start]
    answer = made.step(made.project(x)[0], start, made.matrices())
    if made.returns_output and (not isinstance(answer, tuple) or len(answer) != 2):
        raise ConfigError(f"{where}: with returns_output, `step` must return the pair (output, state).")
    output, state = answer if made.returns_output else (None, answer)
    wanted = [(B, *shape) for shape in made.state_shapes()]
    if not isinstance(state, tuple):
        raise ConfigError(
            f"{where}: `step` returns a {type(state).__name__} and not a tuple of states, such as `(h,)`."
        )
    if [part._version for part in start] != before:
        raise ConfigError(
            f"{where}: `step` changes the state that it is given, which the gradient needs as it was: compute a new "
            "one, as h * 0.5 in place of h.mul_(0.5)."
        )
    shapes = [tuple(part.shape) for part in state]
    if shapes != wanted:
        raise ConfigError(
            f"{where}: `step` returns states of shapes {shapes} for two sequences, and must return {wanted}."
        )
    types, begun = [part.dtype for part in state], [part.dtype for part in start]
    if types != begun:
        raise ConfigError(f"{where}: `step` returns states in {types}, and must return them in {begun}, as they begin.")
    seen = made.features(state[0] if output is None else output)
    if tuple(seen.shape) != (B, made.feature_size) or not seen.is_floating_point():
        raise ConfigError(
            f"{where}: what a readout gets is {tuple(seen.shape)} in {seen.dtype} for two sequences, and must be "
            f"{(B, made.feature_size)} in real numbers: see `features` and `feature_size`."
        )


def _check_tokens(where: str, made: Any) -> None:
    """Look at the projection of tokens: it must be as that of vectors."""
    tokens = torch.arange(B * T).view(B, T) % made.input_size
    with (
        in_one_sentence(where, "`project` of tokens (B, T), which stand for one-hot vectors (B, T, I),"),
        torch.no_grad(),
    ):
        found, wanted = made.project(tokens), made.project(inputs(made, T, seed=1))
        if found.shape != wanted.shape:
            raise ConfigError(
                f"{where}: `project` returns {tuple(found.shape)} for tokens {(B, T)} and "
                f"{tuple(wanted.shape)} for the vectors (B, T, I): "
                "use `orthobench.cells.base.projection`, which takes both."
            )


def _check_answers(where: str, made: Cell, x: Tensor) -> None:
    """Look at what the answers to sequences depend on: on each one's own inputs alone."""
    answer = answers(made, x)
    if not answer.isfinite().all():
        raise ConfigError(
            f"{where}: its answer to two steps of standard normal inputs holds numbers that are not finite (NaN "
            "or infinity): use smaller initial weights, or a bounded activation."
        )
    again, alone, other = answers(made, x), answers(made, x[:1]), answers(made, inputs(made, T, seed=3))
    if not torch.equal(answer, again):
        raise ConfigError(
            f"{where}: the same sequences give another answer the second time: `step` depends on something beside its "
            "arguments, such as what it keeps from step to step, or chance."
        )
    if not torch.allclose(alone, answer[:1], rtol=RTOL, atol=ATOL):
        raise ConfigError(
            f"{where}: the answer to a sequence depends on what other sequences are in its batch: "
            "treat every row of it alone."
        )
    if torch.equal(answer, other):
        raise ConfigError(f"{where}: the input makes no difference to the answer: use p_t in `step`.")


def _refuse_idle_parameters(
    where: str, made: nn.Module, spare: nn.Module, answer_of: Callable[[Any, int], Tensor]
) -> None:
    """Refuse parameters that no gradient reaches: they would be counted, and never trained.

    A gradient may be zero at the start, as behind a factor that begins with zero, so it is looked for elsewhere too.

    Args:
        where: the class, for messages.
        made: the module.
        spare: another, whose parameters are moved.
        answer_of: what is computed by a module from the inputs of a seed.
    """
    own = [name for name, p in made.named_parameters() if p.requires_grad]
    answer = answer_of(made, 1)
    if own and not answer.requires_grad:
        raise ConfigError(f"{where}: no gradient reaches its parameters: compute with torch alone, without detach().")
    found = _gradients(made, own, answer) if own else {}
    idle = next((name for name, g in found.items() if g is None), None)
    if idle is not None:
        raise ConfigError(
            f"{where}: no gradient reaches its parameter {idle}: use it in `step`, or delete it, "
            "for it would be counted and never trained."
        )
    still = [name for name, g in found.items() if g is not None and not g.any()]
    begun = {name: p.detach().clone() for name, p in spare.named_parameters()} if still else {}
    for seed, (kept, spread) in enumerate(OTHERS, start=5):
        if not still:
            return
        draws = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for name, p in spare.named_parameters():
                p.copy_(kept * begun[name] + spread * torch.randn(p.shape, dtype=p.dtype, generator=draws))
        try:
            found = _gradients(spare, still, answer_of(spare, seed))
        except Exception:  # these values are not those that the class begins with, and it need not take all
            return
        still = [name for name, g in found.items() if g is not None and not g.any()]
    if still:
        raise ConfigError(
            f"{where}: the gradient of its parameter {still[0]} is zero, "
            "with other values of its parameters too: use it in `step`, or delete it."
        )


def _gradients(module: nn.Module, names: list[str], answer: Tensor) -> dict[str, Tensor | None]:
    """The gradients of a random function of the answer; None where none reaches a parameter."""
    weights = torch.randn(answer.shape, dtype=answer.dtype, generator=torch.Generator().manual_seed(2))
    own = [module.get_parameter(name) for name in names]
    return dict(zip(names, torch.autograd.grad((answer * weights).abs().sum(), own, allow_unused=True), strict=True))


def _refuse_unknown_scales(where: str, made: Any, own: list[str]) -> None:
    """Refuse factors on the learning rate of what is no parameter."""
    unknown = next((name for name in made.learning_rate_scales() if name not in own), None)
    if unknown is not None:
        raise ConfigError(
            f"{where}: `learning_rate_scales` names {unknown!r}, which it may not scale; "
            f"use those of its free parameters alone: {', '.join(own) or 'none'}."
        )
