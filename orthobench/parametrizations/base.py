"""The base class of all parametrizations of a recurrent matrix."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor, nn


class Parametrization(nn.Module, ABC):
    """Map from free parameters to a recurrent matrix (n, n).

    Called once per forward pass of a model, never per time step. A subclass draws its paper's initialisation from the
    NumPy generator `rng` that its constructor is given.

    Attributes:
        n: size of the matrix.
        learning_rate: the optimizer's learning rate in the step before `after_step`, for the maps that use it.
        tolerance: the largest ||W^H W - I||_F, or what else `contains` measures, that rounding or the method's own
            error explains; beyond it a run's record says that orthogonality is lost. Single precision accounts for
            about 1e-5 at n=500.
        constrained: whether the matrix stays on a manifold (orthogonal, unitary, or singular values in a band). Its
            parameters then form the optimizer's recurrent group and never get weight decay.
        scales_gradient: whether a hook of its own changes the gradient of its matrix, which torch.func.vmap would leave
            out; an ensemble then computes the matrix of each member by itself.
        in_onnx: whether ONNX has the operators that compute the matrix.
        in_double: names of buffers that stay in double precision whatever type the module is converted to.
    """

    constrained: ClassVar[bool] = True
    scales_gradient: bool = False
    in_onnx: ClassVar[bool] = True
    in_double: ClassVar[tuple[str, ...]] = ()
    tolerance: float = 1e-2
    learning_rate: float = 1e-3

    def __init__(self, n: int) -> None:
        super().__init__()
        self.n = n

    @abstractmethod
    def forward(self) -> Tensor:
        """The matrix W (n, n), computed from the free parameters."""

    def parameter_count(self) -> int:
        """Number of free parameters: n(n-1)/2 for a skew matrix."""
        return sum(parameter.numel() for parameter in self.parameters())

    def multiply_adds(self) -> int:
        """Multiply-adds of one product W h, complex ones where W is complex: n^2, or fewer where W has a structure.

        The structure counts whether or not an engine makes use of it.
        """
        return self.n**2

    def contains(self, W: Tensor, tolerance: float) -> bool:
        """Return True if W (n, n) lies on the manifold: here ||W^H W - I||_F <= tolerance."""
        return float(deviation(W.detach())) <= tolerance

    def after_step(self) -> None:
        """Move a base point, renew an inverse or renormalise; called after every optimizer step, and idempotent."""

    def penalty(self) -> Tensor | None:
        """Term that training adds to the loss, a scalar; None for nothing."""
        return None

    def learning_rate_scales(self) -> dict[str, float]:
        """Factors on the learning rate, by parameter name; parameters that are not named have 1.

        The rate is that of the recurrent group, or where the matrix is not constrained that of the free parameters;
        those of the latter that are named have no weight decay.
        """
        return {}

    def at_free_rate(self) -> dict[str, float | None]:
        """The parameters of a constrained matrix that train as free ones do, each with its weight decay.

        None stands for the optimizer's own decay.
        """
        return {}

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
        """`Module._apply`, which moves and converts everything, but for the type of the buffers in `in_double`."""
        kept = {name: self._buffers.pop(name) for name in self.in_double if name in self._buffers}
        super()._apply(fn, recurse)
        for name, buffer in kept.items():
            assert buffer is not None
            moved = fn(torch.view_as_real(buffer) if buffer.is_complex() else buffer)
            same = moved if moved.dtype == torch.float64 else buffer.to(moved.device)
            self._buffers[name] = torch.view_as_complex(same) if buffer.is_complex() and same is moved else same
        return self

    @staticmethod
    def is_complex(given: dict[str, Any]) -> bool:
        """Return True if the settings that are `given` make the matrix complex, which a real state cannot use."""
        return False

    @staticmethod
    def limits(n: int) -> dict[str, int]:
        """The largest allowed value of every argument that is a count tied to n."""
        return {}

    @staticmethod
    def valid_size(n: int) -> str | None:
        """Reason why n is not possible, and the sizes near it that are: the end of a sentence; None if it is."""
        return None


class Parametrized(nn.Module):
    """A module whose recurrent matrices come from parametrizations."""

    def parametrizations(self) -> list[Parametrization]:
        """All of them, constrained or free."""
        return parametrizations(self)

    def constrained(self) -> list[Parametrization]:
        """Those whose matrix stays on a manifold."""
        return [p for p in self.parametrizations() if p.constrained]

    def recurrent_weights(self) -> list[Tensor]:
        """The constrained matrices (N, N), in the order of `constrained`; empty when there is none."""
        return [p() for p in self.constrained()]

    def penalty(self) -> Tensor | None:
        """Term to be added to the loss in training, a scalar; None for nothing.

        Only a setting such as `gain_penalty` of `model=nnrnn` asks for it.
        """
        found = [penalty for p in self.parametrizations() if (penalty := p.penalty()) is not None]
        return torch.stack(found).sum() if found else None


def parametrizations(module: nn.Module) -> list[Parametrization]:
    """Every parametrization in a module, constrained or free."""
    return [found for found in module.modules() if isinstance(found, Parametrization)]


def even(n: int, why: str) -> str | None:
    """Refusal of an n that must be even, for `valid_size`; `why` is the reason."""
    near = " or ".join(str(size) for size in (n - 1, n + 1) if size > 0)
    return f"{why}: use {near}." if n % 2 else None


def inside_and_outside(module: nn.Module) -> tuple[list[Parametrization], list[nn.Parameter]]:
    """A module's parametrizations, and its parameters outside of them."""
    maps = parametrizations(module)
    inside = {id(p) for found in maps for p in found.parameters()}
    return maps, [p for p in module.parameters() if id(p) not in inside]


wrapped: Any = torch._C._functorch.is_functorch_wrapped_tensor  # type: ignore[attr-defined]


def reading_waits(t: Tensor) -> bool:
    """Return True if reading a value of t in Python would wait for a GPU."""
    return t.is_cuda


def deviation(W: Tensor) -> Tensor:
    """||W^H W - I||_F, the distance from orthogonality, in W's own precision."""
    gram = W.mH @ W
    return torch.linalg.matrix_norm(gram - torch.eye(W.shape[-1], dtype=W.dtype, device=W.device))
