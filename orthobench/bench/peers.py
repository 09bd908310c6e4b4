"""Ours beside the layers of torch and of other packages that are installed, in one process, in turns.

One call is forward and backward over a sequence of inputs of width n, with a gradient on every output: what somebody
waits for who takes one layer or the other. A ratio is the other package's time in ours, so that below 1 we are slower.
Where a package has the very cell, it is that; a package with none of ours stands beside the cell that is nearest.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib import import_module, metadata, util
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid, normalize
from torch.nn.utils import parametrizations

from orthobench.bench.cells import make_cell
from orthobench.bench.scans import both_ways
from orthobench.bench.timing import Bench, Row
from orthobench.scan import choose, recurrence

FLA = "flash-linear-attention"
HEADS = 4  # of fla's rules and of xLSTM's layers
NEWER = ("deltanet", "gated_deltanet", "kda", "gla", "mamba2", "mamba3", "rwkv7", "m2rnn", "pdssm", "mlstm", "slstm",
         "attention")  # fmt: skip
SIZES = ((128, 50, 200), (128, 32, 1000))
Layer = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Peer:
    """A layer of another package beside a model of ours.

    Attributes:
        package: what is imported; `distribution`, where it differs, is what is installed.
        layer: its name there.
        model: ours, in conf/model.
        make: the module for n, B and T, and what it makes of an input of shape (B, T, n); None for one that computes
            with JAX, which has no turns with torch in one process.
        gpu: whether it needs a GPU.
    """

    package: str
    layer: str
    model: str
    make: Callable[[int, int, int], tuple[nn.Module, Layer]] | None
    gpu: bool = False
    distribution: str | None = None

    @property
    def name(self) -> str:
        """Its name in the page."""
        return f"{self.package}.{self.layer}"


def _first(module: nn.Module) -> tuple[nn.Module, Layer]:
    return module, lambda x: module(x)[0]


def _whole(module: nn.Module) -> tuple[nn.Module, Layer]:
    def layer(x: Tensor) -> Tensor:
        made = module(x)
        return made[0] if isinstance(made, tuple) else made

    return module, layer


def _of_torch(name: str, **options: Any) -> Callable[[int, int, int], tuple[nn.Module, Layer]]:
    return lambda n, B, T: _first(getattr(nn, name)(n, n, batch_first=True, **options))


def _orthogonal(n: int, B: int, T: int) -> tuple[nn.Module, Layer]:
    """nn.RNN whose recurrent matrix torch's own parametrization keeps orthogonal."""
    return _first(parametrizations.orthogonal(nn.RNN(n, n, batch_first=True), "weight_hh_l0", "cayley"))


def _geotorch(n: int, B: int, T: int) -> tuple[nn.Module, Layer]:
    """nn.RNN whose recurrent matrix geotorch keeps orthogonal."""
    module = nn.RNN(n, n, batch_first=True)
    import_module("geotorch").orthogonal(module, "weight_hh_l0")
    return _first(module)


def _recurrent(name: str) -> Callable[[int, int, int], tuple[nn.Module, Layer]]:
    return lambda n, B, T: _first(getattr(import_module("torchrecurrent"), name)(n, n, batch_first=True))


def _fla(name: str, **options: Any) -> Callable[[int, int, int], tuple[nn.Module, Layer]]:
    def make(n: int, B: int, T: int) -> tuple[nn.Module, Layer]:
        return _whole(getattr(import_module("fla.layers"), name)(hidden_size=n, **options))

    return make


def _xlstm(n: int, B: int, T: int) -> tuple[nn.Module, Layer]:
    xlstm = import_module("xlstm")
    return _whole(xlstm.mLSTMLayer(xlstm.mLSTMLayerConfig(embedding_dim=n, num_heads=HEADS, context_length=T)))


def _slstm(n: int, B: int, T: int) -> tuple[nn.Module, Layer]:
    xlstm = import_module("xlstm")
    return _whole(xlstm.sLSTMLayer(xlstm.sLSTMLayerConfig(embedding_dim=n, num_heads=HEADS, backend="vanilla")))


def _gru_like(model: str) -> Callable[[int, int, int], tuple[nn.Module, Layer]]:
    """nn.GRU of as many units as come nearest to the parameters of a model of n units."""

    def make(n: int, B: int, T: int) -> tuple[nn.Module, Layer]:
        count = sum(p.numel() for p in make_cell(model, n, T, n).parameters())
        units = min(range(1, 16 * n), key=lambda m: abs(3 * m * (m + n + 2) - count))
        return _first(nn.GRU(n, units, batch_first=True))

    return make


def _lrnnx(n: int, B: int, T: int) -> tuple[nn.Module, Layer]:
    return _whole(import_module("lrnnx.models.lti").LRU(d_model=n, d_state=n))


class _PlainOps(nn.Module):
    """A rule of fla's in plain torch, between the projections that its layer has.

    Args:
        n: inputs and units.
        rule: queries, keys, values of shape (B, T, heads, n / heads), the strengths of shape (B, T, heads) and the
            logarithms of what is kept, of the same or the keys' shape, to outputs of the values' shape.
        each: whether every key's feature is kept by itself.
    """

    def __init__(self, n: int, rule: Callable[..., Tensor], each: bool = False) -> None:
        super().__init__()
        self.rule, self.each = rule, each
        self.wide, self.strength = nn.Linear(n, 3 * n, bias=False), nn.Linear(n, HEADS, bias=False)
        self.kept, self.out = nn.Linear(n, n if each else HEADS), nn.Linear(n, n, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Outputs of shape (B, T, n)."""
        q, k, v = (part.unflatten(-1, (HEADS, -1)) for part in self.wide(x).chunk(3, -1))
        kept = logsigmoid(self.kept(x))
        kept = kept.unflatten(-1, (HEADS, -1)) if self.each else kept
        q, k = normalize(q, dim=-1), normalize(k, dim=-1)
        return self.out(self.rule(q, k, v, self.strength(x).sigmoid(), kept).flatten(-2))


def _plain_ops(path: str, name: str, each: bool = False) -> Callable[[int, int, int], tuple[nn.Module, Layer]]:
    def make(n: int, B: int, T: int) -> tuple[nn.Module, Layer]:
        found = getattr(import_module(f"fla.ops.{path}.naive"), name)

        def delta(q: Tensor, k: Tensor, v: Tensor, beta: Tensor, kept: Tensor) -> Tensor:
            heads_first = (part.transpose(1, 2) for part in (q, k, v, beta))
            return found(*heads_first)[0].transpose(1, 2)

        rules: dict[str, Callable[..., Tensor]] = {
            "delta_rule": delta,
            "gated_delta_rule": lambda q, k, v, beta, kept: found(q, k, v, beta, kept)[0],
            "gla": lambda q, k, v, beta, kept: found(q, k, v, kept)[0],
            "kda": lambda q, k, v, beta, kept: found(q, k, v, kept, beta)[0],
            "generalized_delta_rule.dplr": lambda q, k, v, beta, kept: found(
                *(part.transpose(1, 2) for part in (q, k, v, -k, k * beta[..., None], kept))
            )[0].transpose(1, 2),
        }
        return _whole(_PlainOps(n, rules[path], each))

    return make


PEERS = (
    Peer("torch", "nn.RNN", "scornn", _of_torch("RNN")),
    Peer("torch", "nn.RNN relu", "irnn", _of_torch("RNN", nonlinearity="relu")),
    Peer("torch", "nn.RNN, orthogonal", "scornn", _orthogonal),
    Peer("torch", "nn.GRU", "gru", _of_torch("GRU")),
    Peer("torch", "nn.LSTM", "lstm", _of_torch("LSTM")),
    Peer("geotorch", "orthogonal nn.RNN", "exprnn", _geotorch),
    *(
        Peer("torchrecurrent", name, model, _recurrent(name))
        for name, model in {
            "LEM": "lem", "coRNN": "cornn", "UnICORNN": "unicornn", "AntisymmetricRNN": "antisymmetric_rnn",
        }.items()
    ),
    Peer("lrnnx", "LRU", "lru", _lrnnx),
    Peer("xlstm", "mLSTMLayer", "mlstm", _xlstm),
    Peer("xlstm", "sLSTMLayer", "slstm", _slstm),
    Peer("memax", "LRU", "lru", make=None),
    Peer("fla", "delta_rule in plain torch", "deltanet", _plain_ops("delta_rule", "delta_rule_recurrence"),
         distribution=FLA),
    Peer("fla", "gated_delta_rule in plain torch", "gated_deltanet",
         _plain_ops("gated_delta_rule", "naive_recurrent_gated_delta_rule"), distribution=FLA),
    Peer("fla", "kda in plain torch", "kda", _plain_ops("kda", "naive_recurrent_kda", each=True), distribution=FLA),
    Peer("fla", "dplr in plain torch", "rwkv7",
         _plain_ops("generalized_delta_rule.dplr", "dplr_recurrence", each=True), distribution=FLA),
    Peer("fla", "gla in plain torch", "gla", _plain_ops("gla", "naive_recurrent_gla", each=True), distribution=FLA),
    *(Peer("torch", "nn.GRU of as many parameters", model, _gru_like(model)) for model in NEWER),
    *(
        Peer("fla", name, model, _fla(name, **options), gpu=True, distribution=FLA)
        for name, model, options in (
            ("DeltaNet", "deltanet", {}), ("GatedDeltaNet", "gated_deltanet", {}), ("GatedLinearAttention", "gla", {}),
        )
    ),
)  # fmt: skip


def measure(bench: Bench) -> Iterator[Row]:
    """All rows of this file; what is missing or cannot be made is named with the reason."""
    for n, B, T in ((64, 8, 50),) if bench.quick else SIZES:
        for peer in PEERS:
            yield from compare(bench, peer, n, B, T)


def compare(bench: Bench, peer: Peer, n: int, B: int, T: int) -> list[Row]:
    """Rows of a peer beside ours, or a single row that says why not."""
    case = f"{peer.model} n={n} B={B} T={T}"
    reason = why_not(peer, bench.device)
    if reason is None and peer.make is not None:
        x = torch.randn(B, T, n, device=bench.device)
        cell = make_cell(peer.model, n, T, n).to(bench.device)
        try:
            module, layer = peer.make(n, B, T)
            module.to(bench.device)
            other = both_ways(module, lambda: layer(x))
            other()
        except Exception as error:  # another package's, of any kind
            said = str(error).splitlines()
            reason = f"it cannot be run here: {said[0] if said else type(error).__name__}"
        else:
            works = {peer.name: other, "ours": both_ways(cell, lambda: recurrence(cell, x)[0])}
            first, ours = bench.compare("peers", case, works)
            numbers = (f"{sum(p.numel() for p in one.parameters()):,} parameters" for one in (module, cell))
            of_peer, own = numbers
            return [replace(first, unit=of_peer), replace(ours, unit=f"by {choose(cell)[0]}, {own}")]
    return [Row("peers", case, peer.name, unit=f"not measured: {reason}")]


def why_not(peer: Peer, device: torch.device) -> str | None:
    """Why a peer is not measured; None where it can be."""
    if util.find_spec(peer.package) is None:
        return f"{peer.distribution or peer.package} is not installed"
    if peer.make is None:
        return f"{peer.package} {version(peer)} computes with JAX, which cannot take turns with torch in one process"
    if peer.gpu and device.type != "cuda":
        return f"{peer.distribution or peer.package} {version(peer)} needs a GPU"
    return None


def version(peer: Peer) -> str:
    """The version of a peer's package."""
    try:
        return metadata.version(peer.distribution or peer.package)
    except metadata.PackageNotFoundError:
        return "of unknown version"
