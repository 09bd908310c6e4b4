"""Layers for PyTorch code of one's own, used like `torch.nn.RNN`; see docs/layers.md."""

from orthobench.layers.layer import Layer
from orthobench.layers.published import (
    EUNN,
    GORU,
    NCGRU,
    ORNN,
    SGORNN,
    UGRU,
    URNN,
    VPRNN,
    ExpRNN,
    Recurrent,
    ScoRNN,
    SpectralRNN,
)

__all__ = [
    "EUNN",
    "GORU",
    "NCGRU",
    "ORNN",
    "SGORNN",
    "UGRU",
    "URNN",
    "VPRNN",
    "ExpRNN",
    "Layer",
    "Recurrent",
    "ScoRNN",
    "SpectralRNN",
]
