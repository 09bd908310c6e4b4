"""The later models as a user of PyTorch would write them: a loop over time, every product in its step.

Each function takes one of our cells for its weights and returns a step (x_t, state) -> (output, state); the recurrent
matrices are computed once per sequence. The files of `cells` have the equations.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from orthobench.cells.base import State

Transition = Callable[[Tensor, State], tuple[Tensor, State]]


def run(model: str, cell: Any, x: Tensor) -> Tensor:
    """All outputs (B, T, ...) of a model of `PLAIN` on inputs (B, T, I), by its plain loop."""
    step, state, outputs = PLAIN[model](cell), cell.initial_state(len(x)), []
    for x_t in x.unbind(1):
        output, state = step(x_t, state)
        outputs.append(output)
    return torch.stack(outputs, 1)


def lstm(cell: Any) -> Transition:
    """Long short-term memory."""
    U, b, W = cell.U, stacked(cell.b, cell.gates), stacked(weights(cell), cell.gates)

    def step(x_t: Tensor, state: State) -> tuple[Tensor, State]:
        h, c = state
        i, f, g, o = (F.linear(x_t, U, b) + F.linear(h, W)).chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        return h, (h, c)

    return step


def gru(cell: Any) -> Transition:
    """Gated recurrent unit, reset after the product."""
    U, b, W = cell.U, stacked(cell.b, cell.gates), stacked(weights(cell), cell.gates)

    def step(x_t: Tensor, state: State) -> tuple[Tensor, State]:
        (h,) = state
        r_x, u_x, c_x = F.linear(x_t, U, b).chunk(3, 1)
        r_h, u_h, c_h = F.linear(h, W).chunk(3, 1)
        u, c = torch.sigmoid(u_x + u_h), torch.tanh(c_x + torch.sigmoid(r_x + r_h) * c_h)
        h = u * h + (1 - u) * c
        return h, (h,)

    return step


def chain(cell: Any) -> Transition:
    """Elman with ReLU."""
    U, b, W = cell.U, cell.b["h"], cell.recurrent["h"]()

    def step(x_t: Tensor, state: State) -> tuple[Tensor, State]:
        h = torch.relu(F.linear(x_t, U, b) + F.linear(state[0], W))
        return h, (h,)

    return step


def modrelu(cell: Any) -> Transition:
    """Elman with modReLU."""
    U, b, W = cell.U, cell.b["h"], cell.recurrent["h"]()

    def step(x_t: Tensor, state: State) -> tuple[Tensor, State]:
        z = F.linear(x_t, U) + F.linear(state[0], W)
        h = torch.sign(z) * torch.relu(z.abs() + b)
        return h, (h,)

    return step


def lem(cell: Any) -> Transition:
    """Long expressive memory."""
    U, b, W, W_y = cell.U, stacked(cell.b, cell.gates), stacked(weights(cell), "abz"), cell.recurrent["y"]()

    def step(x_t: Tensor, state: State) -> tuple[Tensor, State]:
        y, z = state
        a_x, b_x, z_x, y_x = F.linear(x_t, U, b).chunk(4, 1)
        a_y, b_y, z_y = F.linear(y, W).chunk(3, 1)
        pace_y, pace_z = cell.dt * torch.sigmoid(a_x + a_y), cell.dt * torch.sigmoid(b_x + b_y)
        z = (1 - pace_z) * z + pace_z * torch.tanh(z_x + z_y)
        y = (1 - pace_y) * y + pace_y * torch.tanh(y_x + F.linear(z, W_y))
        return y, (y, z)

    return step


def cornn(cell: Any) -> Transition:
    """Coupled oscillators, one linear map of input and states, as in the authors' code."""
    W, b = torch.cat([cell.U, *weights(cell).values()], 1), cell.b["z"]

    def step(x_t: Tensor, state: State) -> tuple[Tensor, State]:
        y, z = state
        force = torch.tanh(F.linear(torch.cat([x_t, y, z], 1), W, b))
        z = z + cell.dt * (force - cell.gamma * y - cell.epsilon * z)
        y = y + cell.dt * z
        return y, (y, z)

    return step


def unicornn(cell: Any) -> Transition:
    """Independent oscillators."""
    U, b, w, pace = cell.U, cell.b["z"], cell.w, cell.dt * torch.sigmoid(cell.c)

    def step(x_t: Tensor, state: State) -> tuple[Tensor, State]:
        y, z = state
        z = z - pace * (torch.tanh(w * y + F.linear(x_t, U, b)) + cell.alpha * y)
        y = y + pace * z
        return y, (y, z)

    return step


def lipschitz(cell: Any) -> Transition:
    """A linear and a nonlinear flow."""
    U, b, A, W = cell.U, cell.b["h"], cell.recurrent["A"](), cell.recurrent["W"]()

    def step(x_t: Tensor, state: State) -> tuple[Tensor, State]:
        (h,) = state
        h = h + cell.eps * (F.linear(h, A) + torch.tanh(F.linear(h, W) + F.linear(x_t, U, b)))
        return h, (h,)

    return step


def antisymmetric(cell: Any) -> Transition:
    """A nonlinear flow alone."""
    U, b, W = cell.U, cell.b["h"], cell.recurrent["W"]()

    def step(x_t: Tensor, state: State) -> tuple[Tensor, State]:
        (h,) = state
        h = h + cell.eps * torch.tanh(F.linear(h, W) + F.linear(x_t, U, b))
        return h, (h,)

    return step


def lru(cell: Any) -> Transition:
    """A complex diagonal; the readout is outside."""
    factor = torch.exp(torch.complex(-cell.nu.exp(), cell.theta.exp()))
    gain = cell.g.exp()

    def step(x_t: Tensor, state: State) -> tuple[Tensor, State]:
        h = factor * state[0] + gain * torch.complex(*F.linear(x_t, cell.U).chunk(2, 1))
        return h, (h,)

    return step


def rotation(cell: Any) -> Transition:
    """Complex units that the input turns and damps."""
    U_re, U_im, U_phi, U_a = cell.U.chunk(4)

    def step(x_t: Tensor, state: State) -> tuple[Tensor, State]:
        a, phi = F.softplus(F.linear(x_t, U_a, cell.b["a"])), F.linear(x_t, U_phi, cell.b["phi"])
        h = torch.polar(torch.exp(-a), phi) * state[0] + torch.complex(F.linear(x_t, U_re), F.linear(x_t, U_im))
        return h, (h,)

    return step


def mingru(cell: Any) -> Transition:
    """Minimal gated recurrent unit."""
    b = stacked(cell.b, cell.gates)

    def step(x_t: Tensor, state: State) -> tuple[Tensor, State]:
        z, v = F.linear(x_t, cell.U, b).chunk(2, 1)
        z = torch.sigmoid(z)
        h = (1 - z) * state[0] + z * positive(v)
        return h, (h,)

    return step


def minlstm(cell: Any) -> Transition:
    """Minimal long short-term memory."""
    b = stacked(cell.b, cell.gates)

    def step(x_t: Tensor, state: State) -> tuple[Tensor, State]:
        f, i, v = F.linear(x_t, cell.U, b).chunk(3, 1)
        f, i = torch.sigmoid(f), torch.sigmoid(i)
        h = f / (f + i) * state[0] + i / (f + i) * positive(v)
        return h, (h,)

    return step


def deltaproduct(cell: Any) -> Transition:
    """Delta rule, one write or several; ungated, behind a convolution."""
    heads, sizes = (cell.heads, cell.width), cell.sizes

    def step(x_t: Tensor, state: State) -> tuple[Tensor, State]:
        S, seen = state
        mixed, beta, shown = F.linear(x_t, cell.U).split([cell.channels, sizes[3], sizes[5]], 1)
        window = torch.cat([seen, mixed[:, None]], 1)
        q, keys, values = F.silu((window * cell.kernel).sum(1)).split(sizes[:3], 1)
        betas = cell.reach * torch.sigmoid(beta).view(len(S), cell.products, cell.heads, 1)
        keys, values = (part.view(len(S), cell.products, *heads) for part in (keys, values))
        for j in range(cell.products):
            k = unit(keys[:, j])
            missing = values[:, j] - torch.einsum("bhkv,bhk->bhv", S, k)
            S = S + torch.einsum("bhk,bhv->bhkv", betas[:, j] * k, missing)
        o = torch.einsum("bhkv,bhk->bhv", S, unit(q.view(len(S), *heads)) / cell.width**0.5)
        o = (o / torch.sqrt(o.square().mean(-1, keepdim=True) + 1e-5) * cell.scale).flatten(1)
        return F.linear(o * F.silu(shown) if sizes[5] else o, cell.O), (S, window[:, 1:])

    return step


def slstm(cell: Any) -> Transition:
    """LSTM with exponential gates and memory mixing within heads; i and f read a convolution."""
    b, early = stacked(cell.b, cell.gates), 2 * cell.hidden_size

    def step(x_t: Tensor, state: State) -> tuple[Tensor, State]:
        h, c, n, m, seen = state
        mixed = torch.einsum("ghij,bhj->bghi", cell.R, h.view(len(h), cell.heads, cell.width))
        window = torch.cat([seen, x_t[:, None]], 1)
        p = F.linear(F.silu((window * cell.kernel).sum(1)), cell.U[:early], b[:early])
        p = torch.cat([p, F.linear(x_t, cell.U[early:], b[early:])], 1)
        i, f, v, o = (p + mixed.flatten(1)).chunk(4, 1)
        kept = F.logsigmoid(f) + m
        m = torch.maximum(kept, i)
        i, f = torch.exp(i - m), torch.exp(kept - m)
        c, n = f * c + i * torch.tanh(v), f * n + i
        h = torch.sigmoid(o) * c / n
        return h, (h, c, n, m, window[:, 1:])

    return step


def mlstm(cell: Any) -> Transition:
    """Matrix memory with exponential gates, which read q, k and v, behind a convolution."""
    N, heads = cell.hidden_size, (cell.heads, cell.width)
    b, b_gates = torch.cat([cell.U.new_zeros(3 * N), cell.b["o"]]), torch.cat([cell.b["i"], cell.b["f"]])

    def step(x_t: Tensor, state: State) -> tuple[Tensor, State]:
        C, n, m, seen = state
        qk, v, o = F.linear(x_t, cell.U, b).split([2 * N, N, N], 1)
        window = torch.cat([seen, qk[:, None]], 1)
        qk = F.silu((window * cell.kernel).sum(1))
        i, f = F.linear(torch.cat([qk, v], 1), cell.G, b_gates).chunk(2, 1)
        q, k = qk.chunk(2, 1)
        q, k, v = (part.view(len(C), *heads) for part in (q, k, v))
        kept, k = F.logsigmoid(f) + m, k / cell.width**0.5
        m = torch.maximum(kept, i)
        i, f = torch.exp(i - m), torch.exp(kept - m)
        C = f[..., None, None] * C + torch.einsum("bhk,bhv->bhkv", i[..., None] * k, v)
        n = f[..., None] * n + i[..., None] * k
        size = torch.maximum((n * q).sum(-1).abs(), torch.exp(-m))
        h = F.layer_norm(torch.einsum("bhkv,bhk->bhv", C, q) / size[..., None], (cell.width,))
        return torch.sigmoid(o) * h.flatten(1) * cell.scale, (C, n, m, window[:, 1:])

    return step


def weights(cell: Any) -> dict[str, Tensor]:
    """The recurrent matrices by name."""
    return {name: make() for name, make in cell.recurrent.items()}


def stacked(parts: Any, gates: Any) -> Tensor:
    """The rows of all gates, in their order."""
    return torch.cat([parts[gate] for gate in gates])


def positive(v: Tensor) -> Tensor:
    """What minGRU's candidate passes through, its authors' g."""
    return torch.where(v >= 0, v + 0.5, torch.sigmoid(v))


def unit(x: Tensor) -> Tensor:
    """Vectors (..., d) at length 1."""
    return x / torch.sqrt(x.square().sum(-1, keepdim=True) + 1e-6)


PLAIN: dict[str, Callable[[Any], Transition]] = {
    "lstm_chrono": lstm,
    "gru_chrono": gru,
    "lem": lem,
    "cornn": cornn,
    "unicornn": unicornn,
    "lipschitz_rnn": lipschitz,
    "antisymmetric_rnn": antisymmetric,
    "lru": lru,
    "mingru": mingru,
    "minlstm": minlstm,
    "rotation": rotation,
    "deltanet": deltaproduct,
    "deltaproduct": deltaproduct,
    "slstm": slstm,
    "mlstm": mlstm,
    "rnn_chain": chain,
    "nnrnn": modrelu,
}
