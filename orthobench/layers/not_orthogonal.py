"""Cells whose matrix is not orthogonal, later models and baselines, as layers; see `orthogonal.py`."""

from orthobench.layers.layer import Layer


class LRU(Layer, model="lru"):
    """A diagonal complex recurrence, linear in the state (Orvieto et al. 2023)."""


class MinGRU(Layer, model="mingru"):
    """A GRU whose gates do not see the state (Feng et al. 2024)."""


class MinLSTM(Layer, model="minlstm"):
    """An LSTM whose gates do not see the state (Feng et al. 2024)."""


class CoRNN(Layer, model="cornn"):
    """Coupled oscillators; the states are position and velocity (Rusch & Mishra 2021)."""


class UnICORNN(Layer, model="unicornn"):
    """Independent undamped oscillators (Rusch & Mishra 2021)."""


class LEM(Layer, model="lem"):
    """Long expressive memory: two states with time steps of their own (Rusch et al. 2022)."""


class LipschitzRNN(Layer, model="lipschitz_rnn"):
    """A discretised differential equation with bounded matrices (Erichson et al. 2021)."""


class AntisymmetricRNN(Layer, model="antisymmetric_rnn"):
    """A discretised differential equation with an antisymmetric matrix (Chang et al. 2019)."""


class NNRNN(Layer, model="nnrnn"):
    """Rotations and gains in an orthogonal basis, and a free non-normal part (Kerg et al. 2019)."""


class RotationRNN(Layer, model="rotation"):
    """Complex units that the input turns and damps, linear in the state (ours)."""


class DeltaNet(Layer, model="deltanet"):
    """A matrix state with the delta rule (Yang et al. 2024)."""


class DeltaProduct(Layer, model="deltaproduct"):
    """A matrix state written several times a step by the delta rule (Siems et al. 2025)."""


class GatedDeltaNet(Layer, model="gated_deltanet"):
    """A matrix state that decays, with the delta rule (Yang et al. 2025)."""


class KDA(Layer, model="kda"):
    """A matrix state of which every key decays by itself, with the delta rule (Kimi Team 2025)."""


class GLA(Layer, model="gla"):
    """A matrix state of which every key decays by itself (Yang et al. 2024)."""


class Mamba2(Layer, model="mamba2"):
    """A matrix state with keys that all heads share (Dao & Gu 2024)."""


class Mamba3(Layer, model="mamba3"):
    """A matrix state that turns, with keys that all heads share (Lahoti et al. 2026)."""


class M2RNN(Layer, model="m2rnn"):
    """A matrix state that goes through tanh (Mishra et al. 2026)."""


class PDSSM(Layer, model="pdssm"):
    """Complex units that the input moves, turns and damps (Terzic et al. 2025)."""


class Attention(Layer, model="attention"):
    """Causal softmax attention over the last steps: not recurrent, for comparison (Vaswani et al. 2017)."""


class RWKV7(Layer, model="rwkv7"):
    """A matrix state with a decay and a rate of learning of every key (Peng et al. 2025)."""


class SLSTM(Layer, model="slstm"):
    """xLSTM's scalar memory with exponential gates (Beck et al. 2024)."""


class MLSTM(Layer, model="mlstm"):
    """xLSTM's matrix memory (Beck et al. 2024)."""


class IRNN(Layer, model="irnn"):
    """Elman, ReLU, identity start (Le et al. 2015)."""


class FastRNN(Layer, model="fastrnn"):
    """Two free scalar gates around an Elman step (Kusupati et al. 2019)."""
