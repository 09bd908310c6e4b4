"""What a layer keeps beside its parameters: after a mean of weights, and where values are drawn anew or not at all."""

import pytest
import torch

from orthobench.layers import Layer
from tests.layers.test_layer import KINDS, make, train, tuples

KEEPING = [
    *("EUNN", "GORU", "NCGRU", "NNRNN", "ORNN", "SGORNN", "UGRU", "VPRNN", "AntisymmetricRNN", "ExpRNN", "ScoRNN"),
    *("SpectralRNN", "URNN restricted", "URNN full", "URNN full rms", "URNN exp", "UGRU geodesic"),
    *("Recurrent lstm", "Recurrent geodesic"),
]


def test_every_layer_with_buffers_is_named() -> None:
    assert {kind for kind in KINDS if any(True for _ in make(kind).buffers())} == {*KEEPING}


@pytest.mark.parametrize("kind", KEEPING)
@pytest.mark.parametrize("assign", [False, True])
def test_a_mean_of_weights_trains_after_inference(kind: str, assign: bool) -> None:
    one, other, twin = make(kind), make(kind), make(kind)
    train(one, seed=3)
    train(other, seed=4)
    both = zip(one.state_dict().items(), other.state_dict().values(), strict=True)
    mean = {key: a.lerp(b, 0.5) if a.is_floating_point() or a.is_complex() else a for (key, a), b in both}
    for layer in (one, twin):
        layer.load_state_dict({key: value.clone() for key, value in mean.items()}, assign=assign)
    with torch.inference_mode():
        one(torch.randn(4, 2, 3))
    assert not any(b.is_inference() for b in one.buffers())
    assert all(map(torch.equal, train(one), train(twin)))


@pytest.mark.sampled(21)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kind", KINDS)
def test_values_drawn_anew_are_those_of_a_new_layer(kind: str, dtype: torch.dtype) -> None:
    layers = [make(kind, num_layers=2, dtype=dtype, device=place) for place in ("cpu", "cpu", "meta")]
    new, anew, empty = layers
    adam(anew, dtype)
    torch.manual_seed(1)
    anew.reset_parameters()
    torch.manual_seed(1)
    empty.to_empty(device="cpu")
    for layer in (anew, empty):
        assert alike(layer, new)
    runs = [adam(layer, dtype) for layer in layers]
    for layer, run in zip((anew, empty), runs[1:], strict=True):
        assert all(map(torch.equal, run, runs[0]))
        assert alike(layer, new)


@pytest.mark.sampled(21)
@pytest.mark.parametrize("kind", KINDS)
def test_shapes_are_known_without_values(kind: str) -> None:
    (y, h_n), (z, end) = (
        make(kind, num_layers=2, device=device)(torch.randn(5, 2, 3, device=device)) for device in ("meta", "cpu")
    )
    assert y.is_meta
    assert [t.shape for t in (y, *tuples(h_n))] == [t.shape for t in (z, *tuples(end))]
    y.sum().backward()


def adam(layer: Layer, dtype: torch.dtype) -> list[torch.Tensor]:
    """Outputs of three steps."""
    optimizer, found = torch.optim.Adam(layer.parameters(), lr=0.05), []
    x = torch.randn(4, 2, 3, generator=torch.Generator().manual_seed(2)).to(dtype)
    for _ in range(3):
        optimizer.zero_grad()
        found.append(layer(x)[0])
        found[-1].square().mean().backward()
        optimizer.step()
    return found


def alike(one: Layer, other: Layer) -> bool:
    """Return True if all that is saved, and all buffers, are the same bit for bit."""
    both = [{**dict(layer.named_buffers()), **layer.state_dict()} for layer in (one, other)]
    return both[0].keys() == both[1].keys() and all(map(torch.equal, both[0].values(), both[1].values()))
