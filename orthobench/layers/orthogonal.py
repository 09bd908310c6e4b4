"""Cells with an orthogonal or unitary matrix as layers; values are those of the model: `orthobench list models`."""

from typing import Any

from orthobench.common.schema import did_you_mean
from orthobench.errors import ConfigError
from orthobench.layers.layer import Layer

KINDS = ("restricted", "full", "exp")


class Recurrent(Layer):
    """Any cell with any recurrent matrix: `cell=` and `recurrent=` are names, or classes of one's own."""


class ScoRNN(Layer, model="scornn"):
    """Elman, W by a scaled Cayley transform, modReLU (Helfrich et al. 2018)."""


class NCGRU(Layer, model="ncgru"):
    """A GRU whose candidate matrix is a Neumann-Cayley transform, modReLU (Mucllari et al. 2022)."""


class SGORNN(Layer, model="sgornn"):
    """Two scalar gates around an Elman step, W by plane rotations, ReLU (Taylor-Melanson et al. 2021)."""


class VPRNN(Layer, model="vprnn"):
    """Elman, W by plane rotations and fixed permutations, ReLU (Taylor-Melanson et al. 2021)."""


class SpectralRNN(Layer, model="spectral_rnn"):
    """Elman, singular values of W in a band, leaky ReLU (Zhang et al. 2018)."""


class ORNN(Layer, model="ornn"):
    """Elman, W a product of Householder reflectors, leaky ReLU (Mhammedi et al. 2017)."""


class ExpRNN(Layer, model="exprnn"):
    """Elman, W the exponential of a skew matrix, modReLU (Lezcano-Casado & Martinez-Rubio 2019)."""


class UGRU(Layer, model="ugru"):
    """A GRU whose candidate matrix is the exponential of a skew matrix, tanh (Chu)."""


class EUNN(Layer, model="eunn"):
    """Complex Elman, W by layers of rotations of pairs (Jing et al. 2017)."""


class GORU(Layer, model="goru"):
    """A GRU with an orthogonal candidate matrix of Givens rotations, modReLU (Jing et al. 2019)."""


class URNN(Layer):
    """The unitary RNNs: `kind=` is `restricted` (Arjovsky et al. 2016), `full` (Wisdom et al. 2016) or `exp` (Chu).

    The states of the first two are complex, and their outputs are [Re h, Im h].
    """

    def _model(self, settings: dict[str, Any]) -> str:
        kind = settings.pop("kind", KINDS[0])
        if kind not in KINDS:
            raise ConfigError(f"URNN: kind={kind!r} is not known: {did_you_mean(str(kind), KINDS)}")
        return f"urnn_{kind}"
