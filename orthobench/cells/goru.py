"""Gated orthogonal recurrent unit.

    r_t = sigmoid(U_r x_t + W_r h_{t-1} + b_r),   u_t = sigmoid(U_u x_t + W_u h_{t-1} + b_u)
    c_t = act(U_c x_t + r_t * (Q h_{t-1})),   h_t = u_t * h_{t-1} + (1 - u_t) * c_t
    act(z) = sign(z) max(|z| + 0.001 + b_c, 0)

That is a GRU whose reset acts after the product, with modReLU, an orthogonal Q (Givens rotations) and free W_r, W_u;
u is the authors' g. The 0.001 is part of the stored bias, which is thus 0.001 larger than theirs at every step.
Jing, Gulcehre, Peurifoy, Shen, Tegmark, Soljacic & Bengio (2019), "Gated Orthogonal Recurrent Units: On Learning to
Forget", section 3.
"""

from typing import Any, Literal

import torch

from orthobench.cells.activations import Activation
from orthobench.cells.gru import GRU
from orthobench.parametrizations.initializers import uniform

OFFSET = 0.001


class GORU(GRU):
    """Gated orthogonal recurrent unit (Jing et al. 2019): a GRU with the authors' defaults and initial biases.

    The state is h (N,). Q is the matrix of `orthogonal=[c]`.

    Args:
        activation: the candidate's activation; only modReLU has the offset.
        reset_bias: initial value of b_r; `gate_bias`, if given, replaces it and `update_bias`.
        update_bias: initial value of b_u, or `glorot` for what TensorFlow draws for a bias created without an
            initialiser: U(-b, b), b = sqrt(3 / N).
        candidate_bias: initial value of b_c, without the offset.
        **kwargs: see `GRU`.
    """

    def __init__(
        self,
        reset: Literal["before", "after", "none"] = "after",
        activation: Activation = "modrelu",
        input_init: str | float = 0.01,
        reset_bias: float = 2.0,
        update_bias: Literal["glorot"] | float = "glorot",
        candidate_bias: float = 0.01,
        **kwargs: Any,
    ) -> None:
        super().__init__(reset=reset, activation=activation, input_init=input_init, **kwargs)
        N, offset = self.hidden_size, OFFSET if activation == "modrelu" else 0.0
        drawn = uniform(kwargs["rng"], (N,), (3 / N) ** 0.5) if update_bias == "glorot" else update_bias
        if kwargs.get("gate_bias") is None:
            self.b["u"].data.copy_(torch.as_tensor(drawn))
            if "r" in self.b:
                torch.nn.init.constant_(self.b["r"], reset_bias)
        self.b["c"].data.add_(candidate_bias + offset)
