"""Product of Householder reflectors: an orthogonal matrix with det W = (-1)^m.

    W = H_n(u_n) H_{n-1}(u_{n-1}) ... H_{n-m+1}(u_{n-m+1}),   H_k(u) = I - 2 u u^T / ||u||^2 on the last k coordinates

m = n reaches every orthogonal matrix of that determinant. Only the directions of the vectors matter; their norms would
only grow and slow the learning down, hence the normalisation. The product is built in compact WY form, in float64.
Mhammedi, Hellicar, Rahman & Bailey (2017), "Efficient Orthogonal Parametrisation of Recurrent Neural Networks using
Householder Reflections" (oRNN); Zhang, Lei & Dhillon (2018), section 3.
"""

from torch import Tensor

from orthobench.common.schema import Count, resolve_count
from orthobench.parametrizations.base import Parametrization
from orthobench.parametrizations.compact_wy import product
from orthobench.parametrizations.initializers import Rng
from orthobench.parametrizations.reflectors import ReflectorInit, Reflectors


class Householder(Parametrization):
    """Product of m Householder reflectors (Mhammedi et al. 2017; Zhang et al. 2018, section 3).

    There are nm - m(m-1)/2 free numbers.

    Args:
        n: size of the matrix.
        rng: generator for the initial vectors.
        m: number of reflectors: a count, a share of n, or `max`, which is n.
        reflector_init: `glorot` draws U(-b, b), b = sqrt(6 / (m + n)), and keeps the norms; `normal` draws N(0, 0.01^2)
            and normalises.
        renormalize: whether every vector is divided by its norm after a step.
    """

    in_onnx = False

    def __init__(
        self,
        n: int,
        rng: Rng,
        m: Count = "max",
        reflector_init: ReflectorInit = "glorot",
        renormalize: bool = True,
    ) -> None:
        super().__init__(n)
        self.m = resolve_count(m, n, "m")
        self.renormalize = renormalize
        self.reflectors = Reflectors(n, self.m, rng, reflector_init)

    def forward(self) -> Tensor:
        return product(self.reflectors()).to(self.reflectors.theta.dtype)

    def multiply_adds(self) -> int:
        """See `Parametrization`: a vector is multiplied by h, and its multiple subtracted from h."""
        return min(2 * self.reflectors.theta.numel(), self.n**2)

    def after_step(self) -> None:
        if self.renormalize:
            self.reflectors.renormalize()

    @staticmethod
    def limits(n: int) -> dict[str, int]:
        return {"m": n}
