"""The scaled Cayley transform with another start: every entry of A small and uniform, in place of angles in blocks.

Helfrich, Willmott & Ye (2018), section 4.2, found the start of A to have a significant effect and compare theirs with
others that they do not name; this is the plain one.
"""

from orthobench.common.schema import Count, NonNegativeFloat
from orthobench.parametrizations.initializers import Rng, uniform
from orthobench.parametrizations.scaled_cayley import ScaledCayley


class UniformCayley(ScaledCayley):
    """Scaled Cayley transform (Helfrich et al. 2018, section 3) with another start, U(-init_bound, init_bound).

    There are n(n-1)/2 free numbers above the diagonal of A.

    Args:
        n: size of the matrix.
        rho: how many diagonal entries of D are -1, the last ones: a count, a share of n, or `max`.
        rng: generator for the initial values.
        init_bound: the bound that the entries of A start within.
    """

    def __init__(self, n: int, rng: Rng, rho: Count = 0.5, init_bound: NonNegativeFloat = 0.05) -> None:
        super().__init__(n, rng, rho)
        self.theta.data = uniform(rng, (n * (n - 1) // 2,), init_bound)
