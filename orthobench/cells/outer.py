"""Cells whose state is a matrix that the input alone decays, erases from and writes to by outer products.

    S <- diag(g_t) S,   S <- S + k_t v_t^T - p_t (S^T r_t)^T,   o_t = S^T q_t

in every head, where the erasure reads the decayed S, before the write. All of them are linear in the state: what they
are made of is computed for many steps at once, and engines run the recurrence for every such cell by one function.
"""

import math
from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from orthobench.cells.base import Matrices, State, projection
from orthobench.cells.convolution import Convolve, convolved
from orthobench.cells.heads import Headed
from orthobench.parametrizations.initializers import Rng, tensor


class Writes(NamedTuple):
    """Writes of some steps to S, for every sequence, step and head; a cell may have several for each of its steps.

    Attributes:
        log_g: ln g, (B, T, H, d_k), or (B, T, H, 1) where all keys have one.
        q: (B, T, H, d_k).
        k: of the same shape.
        v: (B, T, H, d_v).
        r: (B, T, H, d_k); None where nothing is erased.
        p: of the same shape; None where it is k.
    """

    log_g: Tensor
    q: Tensor
    k: Tensor
    v: Tensor
    r: Tensor | None = None
    p: Tensor | None = None

    def each(self, of: Callable[[Tensor], Tensor]) -> "Writes":
        """`of` every one of them that is there."""
        return Writes(*(None if part is None else of(part) for part in self))  # type: ignore[arg-type]


class Outer(Headed):
    """The state is S (heads, d_k, d_v), then the last inputs that the next steps see; the outputs (B, N) are kept."""

    returns_output: bool = True

    def project(self, x: Tensor) -> Tensor:
        return projection(x, self.U, self.joint_bias())

    @abstractmethod
    def writes(
        self, p: Tensor, before: tuple[Tensor, ...], convolve: Convolve
    ) -> tuple[Writes, tuple[Tensor, ...], tuple[Tensor, ...]]:
        """Writes of some steps, what `read` needs of them, and the last inputs that the steps after them see.

        Args:
            p: their projections, (B, T, M).
            before: the last inputs before them.
            convolve: a causal convolution with SiLU, see `orthobench.scan.fused.convolution.convolve`.
        """

    @abstractmethod
    def read(self, o: Tensor, *told: Tensor) -> Tensor:
        """The outputs (B, T, N) of what the queries found (B, T, heads, d_v), and of what `writes` tells.

        Where a step has several writes, each has its query.
        """

    def step(self, p_t: Tensor, state: State, W: Matrices) -> tuple[Tensor, State]:
        S, *before = state
        writes, told, before = self.writes(p_t[:, None], tuple(before), one_step)
        found = []
        for t in range(writes.q.shape[1]):
            log_g, q, k, v, r, p = writes.each(partial(torch.select, dim=1, index=t))
            S = log_g.exp()[..., None] * S
            written = k[..., None] * v[..., None, :]
            if r is not None:
                written = written - (k if p is None else p)[..., None] * (r[..., None] * S).sum(-2, keepdim=True)
            S = S + written
            found.append((q[..., None] * S).sum(-2))
        return self.read(torch.stack(found, dim=1), *told)[:, 0], (S, *before)

    def multiply_adds(self, tokens: bool = False) -> int:
        """See `Cell`: S is multiplied by vectors, and products of two vectors are added to it."""
        return super().multiply_adds(tokens) + self.products * self.heads * self.key_width * self.value_width

    @property
    @abstractmethod
    def products(self) -> int:
        """Number of products with S, and of two vectors that are added to it, in a step."""

    @property
    def values_per_step(self) -> int:
        return self.heads * self.value_width * (4 * self.key_width + 8)


def decay_start(
    rng: Rng, heads: int, A: list[float], dt: list[float], channels: int | None = None, stratified: bool = False
) -> tuple[Tensor, Tensor]:
    """Initial ln A (heads,) and bias b (channels,) of a decay g = exp(-A softplus(x + b)) (Gu & Dao 2023, Mamba).

    Args:
        rng: generator for the initial values.
        heads: number of heads.
        A: the ends of the uniform distribution of A.
        dt: those of softplus(b), whose logarithm is uniform.
        channels: how many b there are; one per head when null.
        stratified: whether there is one draw in each of as many equal parts of a range, so that few heads have short
            and long memories alike.
    """

    def drawn(low: float, high: float, count: int) -> np.ndarray:
        if not stratified:
            return rng.uniform(low, high, size=count)
        return low + (high - low) * (rng.permutation(count) + rng.uniform(size=count)) / count

    ln_A = tensor(np.log(drawn(A[0], A[1], heads)))
    pace = np.exp(drawn(math.log(dt[0]), math.log(dt[1]), channels or heads))
    return ln_A, tensor(pace + np.log(-np.expm1(-pace)))  # the inverse of softplus


def one_step(x: Tensor, before: Tensor, *weights: Tensor) -> tuple[Tensor, Tensor]:
    """A convolution as `Outer.writes` takes it, for one step."""
    y, before = convolved(x[:, 0], before, *weights)
    return y[:, None], before
