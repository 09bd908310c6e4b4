"""Permuted pixel MNIST: the 784 pixels in one fixed random order.

The order is NumPy's legacy RandomState(92916).permutation(784), the one of the scoRNN, uRNN and expRNN scripts.
"""

from typing import Any, ClassVar

import numpy as np

from orthobench.tasks.real.mnist import MNIST, PIXELS


def permutation() -> np.ndarray:
    """The published order, (784,): entry t is the pixel that step t reads."""
    return np.random.RandomState(92916).permutation(PIXELS)


class PMNIST(MNIST):
    """Permuted pixel MNIST (Le et al. 2015; Helfrich et al. 2018, section 5.3).

    A batch is x (B, T, 784 / T), from 0 to 1, and target (B,), as that of `MNIST`.
    """

    image: ClassVar[bool] = False

    def arrange(self, pixels: Any) -> Any:
        return pixels[:, permutation()]
