"""What a layer keeps beside its parameters: after a mean of weights, and where its values are drawn anew."""

import pytest
import torch

from tests.layers.test_layer import KINDS, make, train

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
