"""Gated linear attention and gated delta rules: one recurrence, of which each published one is a choice.

    S <- diag(g) S,   S <- S + k (w * v - S^T (b * k))^T,   o = S^T q / sqrt(d_k)

in every head, with S (d_k, d_v). q, k and v are linear in x and may pass a causal convolution over the last steps,
channel by channel, and SiLU. The outputs of a head get unit mean square, may be gated, and a matrix mixes them.

    decay     scalar  ln g = -A softplus(w . x + dt), one number a head      vector  with W_2 W_1 x, one a key
              sigmoid ln g = ln sigmoid(W_2 W_1 x + c) / 16, one a key       none    g = 1
    rule      add     b = 0, w = 1        delta  b = w = sigmoid(w . x), one number a head, q and k at length 1
              split   b = sigmoid(W_b x), one a key, w = sigmoid(W_w x), one a value, q and k at length 1
    negative  doubles b, and with it w of the delta rule, so that eigenvalues may be negative

Gated DeltaNet has decay=scalar and rule=delta (Yang, Kautz & Hatamizadeh 2025, "Gated Delta Networks: Improving Mamba2
with Delta Rule"), KDA decay=vector and rule=delta (Kimi Team 2025, "Kimi Linear: An Expressive, Efficient Attention
Architecture"), GLA decay=sigmoid and rule=add (Yang, Wang, Shen, Panda & Kim 2024, "Gated Linear Attention Transformers
with Hardware-Efficient Training"), Gated DeltaNet-2 decay=vector and rule=split.
"""

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from orthobench.cells.convolution import Convolve
from orthobench.cells.heads import GatedNorm, gated_norm, unit
from orthobench.cells.outer import Outer, Writes, decay_start
from orthobench.common.schema import OptionalPositive
from orthobench.errors import ConfigError
from orthobench.parametrizations.initializers import normal, uniform

SLOWER = 16  # the root that GLA takes of its sigmoid


class GatedOuter(Outer):
    """Gated DeltaNet (Yang et al. 2025), KDA (Kimi Team 2025) and GLA (Yang et al. 2024), as choices of one cell.

    The state is S (heads, d_k, d_v) and, with a convolution of K steps, its last inputs (K - 1, C). The outputs are
    (B, N).

    Args:
        decay: what g is computed from.
        decay_rank: rows of W_1 of the decay, where there is one; d_v when null.
        rule: what is erased and written.
        negative: whether what is erased is doubled.
        convolution: steps that the convolution sees, the current one included; null for none.
        output_gate: what the outputs are multiplied by: `silu` or `sigmoid` of a map of x.
        low_rank_gate: whether that map is of rank d_v, with a bias, in place of a full one without.
        init: start of all maps: `linear` as nn.Linear's, or `fla`, N(0, 0.02^2), as in the authors' models.
        A: the ends between which A starts.
        dt: those between which softplus(dt) starts.
        stratified: whether both starts are spread evenly over the heads, in place of independent draws.
        **kwargs: see `Headed`.

    Raises:
        ConfigError: `A` or `dt` is no range of two growing numbers, or `negative` is set where nothing is erased.
    """

    gates: tuple[str, ...] = ("q", "k", "v")

    def __init__(
        self,
        decay: Literal["none", "scalar", "vector", "sigmoid"] = "scalar",
        decay_rank: OptionalPositive = None,
        rule: Literal["add", "delta", "split"] = "delta",
        negative: bool = False,
        convolution: OptionalPositive = 4,
        output_gate: Literal["none", "silu", "sigmoid"] = "silu",
        low_rank_gate: bool = False,
        init: Literal["linear", "fla"] = "linear",
        A: list[float] = (0.0, 16.0),  # type: ignore[assignment]
        dt: list[float] = (0.001, 0.1),  # type: ignore[assignment]
        stratified: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        rng, heads = kwargs["rng"], self.heads
        _check_range("A", A, least=0.0)
        _check_range("dt", dt, least=1e-12)
        if negative and rule == "add":
            raise ConfigError(
                "model.negative=true does not apply with model.rule=add, which erases nothing: use model.rule=delta."
            )
        K, V = heads * self.key_width, heads * self.value_width
        self.decay, self.rule, self.output_gate = decay, rule, output_gate
        self.reach, self.convolution = 2.0 if negative else 1.0, convolution
        rank = decay_rank or self.value_width
        low_rank, gated = decay in ("vector", "sigmoid"), output_gate != "none"
        strengths = {"add": (0, 0), "delta": (heads, 0), "split": (K, V)}[rule]
        slow = rank if low_rank else heads if decay == "scalar" else 0
        self.sizes = (2 * K + V, *strengths, slow, (self.value_width if low_rank_gate else V) * gated)
        self._draw = lambda rows, columns: (
            normal(rng, (rows, columns), 0.02) if init == "fla" else uniform(rng, (rows, columns), columns**-0.5)
        )
        self.U = nn.Parameter(self._draw(sum(self.sizes), self.input_size))
        if convolution is not None:
            self.kernel = nn.Parameter(uniform(rng, (convolution, self.sizes[0]), convolution**-0.5))
        if decay in ("scalar", "vector"):
            ln_A, bias = decay_start(rng, heads, A, dt, K if low_rank else None, stratified)
            self.A, self.dt = nn.Parameter(ln_A), nn.Parameter(bias)
        if low_rank:
            self.D = nn.Parameter(self._draw(K, rank))
        if decay == "sigmoid":
            self.c = nn.Parameter(uniform(rng, (K,), rank**-0.5))
        self.low_rank_gate = gated and low_rank_gate
        if self.low_rank_gate:
            self.E = nn.Parameter(self._draw(V, self.value_width))
            self.e = nn.Parameter(uniform(rng, (V,), self.value_width**-0.5))
        self.scale = nn.Parameter(torch.ones(self.value_width))
        self.O = nn.Parameter(self._draw(self.hidden_size, V))
        del self._draw

    def state_shapes(self) -> tuple[tuple[int, ...], ...]:
        S = (self.heads, self.key_width, self.value_width)
        return (S,) if self.convolution is None else (S, (self.convolution - 1, self.sizes[0]))

    def writes(
        self,
        p: Tensor,
        before: tuple[Tensor, ...],
        convolve: Convolve,
        unit: Callable[[Tensor], Tensor] = unit,
    ) -> tuple[Writes, tuple[Tensor, ...], tuple[Tensor, ...]]:
        """See `Outer`; `read` is told what the output gate is computed from. An engine may have its own `unit`."""
        qkv, b, w, a, shown = p.split(self.sizes, dim=-1)
        if before:
            qkv, last = convolve(qkv, before[0], self.kernel)
            before = (last,)
        elif self.rule != "add":
            qkv = F.silu(qkv)
        K = self.heads * self.key_width
        q, k, v = (self.split(part) for part in qkv.split([K, K, qkv.shape[-1] - 2 * K], dim=-1))
        erased = None
        if self.rule != "add":
            q, k = unit(q), unit(k)
            b = torch.sigmoid(b)
            w = self.reach * b if self.rule == "delta" else torch.sigmoid(w)
            erased = self.reach * self.split(b) * k
            v = self.split(w) * v
        return Writes(self.log_decay(a, k), q * self.key_width**-0.5, k, v, erased), (shown,), before

    def log_decay(self, a: Tensor, k: Tensor) -> Tensor:
        """The logarithm of g, (B, T, H, d_k) or (B, T, H, 1), from what it is computed from; k is of its shape."""
        if self.decay == "none":
            return k.new_zeros(*k.shape[:-1], 1)
        if self.decay == "scalar":
            return (-self.A.exp() * F.softplus(a + self.dt))[..., None]
        if self.decay == "vector":
            return -self.A.exp()[:, None] * self.split(F.softplus(F.linear(a, self.D, self.dt)))
        return self.split(F.logsigmoid(F.linear(a, self.D, self.c))) / SLOWER

    def read(self, o: Tensor, *told: Tensor, norm: GatedNorm = gated_norm) -> Tensor:
        """See `Outer`."""
        (shown,) = told
        if self.output_gate == "none":
            return F.linear(norm(o, self.scale).flatten(-2), self.O)
        shown = F.linear(shown, self.E, self.e) if self.low_rank_gate else shown
        return F.linear(norm(o, self.scale, self.split(shown), self.output_gate).flatten(-2), self.O)

    @property
    def products(self) -> int:
        return 2 if self.rule == "add" else 3

    def learning_rate_scales(self) -> dict[str, float]:
        """The decay's own parameters and the norm's gain have no weight decay, as in the authors' code."""
        return dict.fromkeys([*(("A", "dt") if self.decay in ("scalar", "vector") else ()), "scale"], 1.0)


def _check_range(key: str, given: list[float], least: float) -> None:
    if len(given) != 2 or not least <= given[0] < given[1]:
        raise ConfigError(f"model.{key}={list(given)} is no range: two numbers that grow are needed, such as [1,16].")
