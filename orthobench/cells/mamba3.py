"""Mamba-3: Mamba-2 with a turning state, a rule of second order, and no convolution.

    S_t = a_t S_{t-1} + (1 - l_t) dt_t a_t B_{t-1} X_{t-1}^T + l_t dt_t B_t X_t^T,   o_t = S_t^T C_t + D X_t
    y_t = O (o_t * SiLU(U_z x_t))

in every head, with S (d_k, d_v). dt = softplus(U_r x + b), a = exp(-A dt) with A = act(U_A x), l = sigmoid(U_l x).
B and C are linear in x, at a mean square of one, times a gain, and with a bias of the head. Both are then turned: pair
i of their numbers by the sum of dt_s pi tanh(U_i x_s) over all steps s so far. So a state turns and decays, and its
eigenvalues can be any of the unit disc. l = 1 is Mamba-2's rule, l = 1/2 the trapezoidal one.

One write a step is enough: P_t = S_t - l_t dt_t B_t X_t^T obeys

    P_t = a_t P_{t-1} + a_t (l_{t-1} dt_{t-1} + (1 - l_t) dt_t) B_{t-1} X_{t-1}^T

and S^T C is read as P^T C + l dt (B . C) X.

Of rank R, with several inputs and outputs (MIMO), every step has R of B, C, X = m_r * X and z = n_r * z, one after the
other: S gets the sum of their writes, and y_t = O sum_r w_r * o_r * SiLU(z_r).
Lahoti, Li, Chen, Wang, Bick, Kolter, Dao & Gu (2026), "Mamba-3: Improved Sequence Modeling using State Space
Principles", section 3.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from orthobench.cells.convolution import Convolve
from orthobench.cells.heads import rms_normalised
from orthobench.cells.outer import Outer, Writes, decay_start
from orthobench.cells.pairs import times
from orthobench.common.schema import OptionalPositive, Positive
from orthobench.errors import ConfigError
from orthobench.parametrizations.initializers import uniform

LEAST_A = 1e-4


class Mamba3(Outer):
    """Mamba-3: Mamba-2 with a turning state and a rule of second order (Lahoti et al. 2026).

    The state is P (heads, d_k, d_v), the angles (heads, pairs), and of the step before B (1, rank heads, d_k),
    X (1, heads, d_v) and l dt (1, heads). The outputs are (B, N).

    Args:
        key_width: d_k, the authors' d_state; N / heads when null.
        pairs: how many pairs of d_k turn; d_k / 4 when null, which is half of them.
        decay: act: 1 + c above zero and 1 / (1 - c) below it, `heavy_tail`, or `softplus`.
        dt: the ends of the range of dt at the start, whose logarithm is uniform; a turn by pi in a step needs dt >= 1.
        stratified: whether dt starts spread evenly over the heads, in place of independent draws.
        rank: R, what a head writes and reads in a step.
        **kwargs: see `Headed`.

    Raises:
        ConfigError: more pairs than d_k holds, or dt is no range of positive numbers.
    """

    gates: tuple[str, ...] = ("z", "x", "B", "C", "dt", "A", "l", "angle")
    opened: ClassVar[tuple[str, ...]] = ("l",)
    gains: ClassVar[tuple[str, ...]] = ("B_scale", "C_scale")

    def __init__(
        self,
        key_width: OptionalPositive = 16,
        pairs: OptionalPositive = None,
        decay: Literal["heavy_tail", "softplus"] = "heavy_tail",
        dt: list[float] = (0.001, 0.1),  # type: ignore[assignment]
        stratified: bool = False,
        rank: Positive = 1,
        **kwargs: Any,
    ) -> None:
        super().__init__(key_width=key_width, **kwargs)
        rng, heads, self.rank = kwargs["rng"], self.heads, rank
        K, P = self.key_width, heads * self.value_width
        self.pairs, self.decay = max(1, K // 4) if pairs is None else pairs, decay
        if 2 * self.pairs > K:
            raise ConfigError(
                f"model.pairs={self.pairs} does not fit model.key_width={K}: it must be at most {K // 2}."
            )
        if len(dt) != 2 or not 0 < dt[0] < dt[1]:
            raise ConfigError(f"model.dt={list(dt)} is no range: two positive numbers that grow are needed.")
        self.sizes = (P, P, rank * K, rank * K, heads, heads, heads, self.pairs)
        self.U = nn.Parameter(uniform(rng, (sum(self.sizes), self.input_size), self.input_size**-0.5))
        _, start = decay_start(rng, heads, [1, 1], dt, stratified=stratified)
        self.dt, self.D = nn.Parameter(start), nn.Parameter(torch.ones(heads))
        self.B_scale, self.C_scale = nn.Parameter(torch.ones(K)), nn.Parameter(torch.ones(K))
        self.B_shift, self.C_shift = (nn.Parameter(torch.ones(rank * heads * K)) for _ in "BC")
        if rank > 1:
            self.X_factor = nn.Parameter(torch.full((rank, P), 1 / rank))
            self.z_factor = nn.Parameter(torch.ones(rank, P))
            self.o_factor = nn.Parameter(torch.full((rank, P), 1 / rank))
        self.O = nn.Parameter(uniform(rng, (self.hidden_size, P), P**-0.5))

    def state_shapes(self) -> tuple[tuple[int, ...], ...]:
        H, K, V = self.heads, self.key_width, self.value_width
        return (H, K, V), (H, self.pairs), (1, self.rank * H, K), (1, H, V), (1, H)

    def writes(
        self, p: Tensor, before: tuple[Tensor, ...], convolve: Convolve, keys: "MakeKeys | None" = None
    ) -> tuple[Writes, tuple[Tensor, ...], tuple[Tensor, ...]]:
        """See `Outer`; `read` is told what steps add to what P holds, and what the output gate is computed from.

        An engine may have its own way of `turned_keys`.
        """
        z, X, B, C, r, c, l, angle = p.split(self.sizes, dim=-1)
        past_angles, *past = before
        dt, l, X = F.softplus(r + self.dt), torch.sigmoid(l), self.split(X)
        act = torch.where(c >= 0, 1 + c, 1 / (1 - c.clamp(max=0))) if self.decay == "heavy_tail" else F.softplus(c)
        turns = dt[..., None] * (math.pi * torch.tanh(angle))[:, :, None]
        angles = (past_angles[:, None] + turns.double().cumsum(1)).remainder(2 * math.pi).to(p.dtype)
        whole_X, whole_share = (torch.cat([old, new], dim=1) for old, new in zip(past[1:], (X, l * dt), strict=True))
        old_X, log_a = whole_X[:, :-1], -act.clamp(min=LEAST_A) * dt
        share = log_a.exp() * (whole_share[:, :-1] + (1 - l) * dt)
        shifts = [shift.unflatten(0, (self.rank * self.heads, -1)) for shift in (self.B_shift, self.C_shift)]
        B, C = (
            rms_normalised(y.unflatten(-1, (self.rank, -1)), scale)
            for y, scale in ((B, self.B_scale), (C, self.C_scale))
        )
        if self.rank > 1:
            B, C = (turned(y, shift, angles) for y, shift in zip((B, C), shifts, strict=True))
            whole = torch.cat([past[0], B], dim=1)
            written, told = self._several(log_a, share, whole[:, :-1], old_X, l * dt, B, C, X, z)
            last_key = whole[:, -1:]
        else:
            make_keys = keys or turned_keys
            key, query, product, last_key = make_keys(B[:, :, 0], C[:, :, 0], shifts, angles, share, past[0])
            now = (l * dt * product + self.D)[..., None] * X
            written, told = Writes(log_a[..., None], query, key, old_X), (now, z)
        return written, told, (angles[:, -1], last_key, whole_X[:, -1:], whole_share[:, -1:])

    def _several(
        self, log_a: Tensor, share: Tensor, old_B: Tensor, old_X: Tensor, new: Tensor, B: Tensor, C: Tensor,
        X: Tensor, z: Tensor
    ) -> tuple[Writes, tuple[Tensor, ...]]:  # fmt: skip
        """2 R - 1 writes for a step: those of the R keys, the last of which has the first query, then R - 1 queries."""
        R, H = self.rank, self.heads
        old_B, B, C = (part.unflatten(2, (R, H)) for part in (old_B, B, C))
        factor = self.X_factor.unflatten(1, (H, -1))
        old_X, X = old_X[:, :, None] * factor, X[:, :, None] * factor
        shares = torch.einsum("bth,btshk,btrhk->btrsh", new, B, C)
        now = torch.einsum("btrsh,btshv->btrhv", shares, X) + self.D[:, None] * X

        def padded(part: Tensor, first: int) -> Tensor:
            """R parts of a step, (B, T, R, ...), after zeros or before them."""
            return F.pad(part, (0, 0, 0, 0, first, R - 1 - first)).flatten(1, 2)

        decay = F.pad(log_a[:, :, None, :, None], (0, 0, 0, 0, 0, 2 * R - 2)).flatten(1, 2)
        key = share[:, :, None, :, None] * old_B
        return Writes(decay, padded(C, R - 1), padded(key, 0), padded(old_X, 0)), (now, z)

    def read(self, o: Tensor, *told: Tensor) -> Tensor:
        """See `Outer`."""
        now, z = told
        if self.rank == 1:
            return F.linear((o + now).flatten(-2) * F.silu(z), self.O)
        o = o.unflatten(1, (-1, 2 * self.rank - 1))[:, :, self.rank - 1 :] + now
        return F.linear((o.flatten(-2) * F.silu(z[:, :, None] * self.z_factor) * self.o_factor).sum(2), self.O)

    @property
    def products(self) -> int:
        """Three for each of R, as the equation stands: two writes and a read."""
        return 3 * self.rank

    @property
    def values_per_step(self) -> int:
        return (2 * self.rank - 1) * super().values_per_step

    def learning_rate_scales(self) -> dict[str, float]:
        """The bias of dt and the skip have no weight decay, as in the authors' code."""
        return dict.fromkeys(("dt", "D"), 1.0)


MakeKeys = Callable[[Tensor, Tensor, Sequence[Tensor], Tensor, Tensor, Tensor], tuple[Tensor, Tensor, Tensor, Tensor]]


def turned_keys(
    B: Tensor, C: Tensor, shifts: Sequence[Tensor], angles: Tensor, share: Tensor, old: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Keys times shares and queries, (B, T, heads, d_k), a step's key times its query (B, T, heads), and the last key.

    Args:
        B: shared parts of the keys (B, T, d_k); a step writes the key of the one before it.
        C: those of the queries.
        shifts: of both, (heads, d_k).
        angles: by which they are turned, (B, T, heads, pairs).
        share: (B, T, heads).
        old: the key before the first, (B, 1, heads, d_k).
    """
    B, C = (turned(y[:, :, None], shift, angles) for y, shift in zip((B, C), shifts, strict=True))
    whole = torch.cat([old, B], dim=1)
    return share[..., None] * whole[:, :-1], C, (B * C).sum(-1), whole[:, -1:]


def turned(y: Tensor, shift: Tensor, angles: Tensor) -> Tensor:
    """B or C of every head, (B, T, R heads, d_k), from their shared parts (B, T, R, d_k) and shifts (R heads, d_k)."""
    R, pairs = y.shape[2], angles.shape[-1]
    y, angles = (y[..., None, :] + shift.unflatten(0, (R, -1))).flatten(2, 3), angles.repeat(1, 1, R, 1)
    first, rest = y[..., : 2 * pairs].unflatten(-1, (-1, 2)), y[..., 2 * pairs :]
    return torch.cat([times(first, angles.cos(), angles.sin()).flatten(-2), rest], dim=-1)
