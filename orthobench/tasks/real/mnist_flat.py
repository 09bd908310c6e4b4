"""MNIST with every image as one vector: what the feed-forward models read (Zhang et al. 2018, section 7.2).

Pixels and splits are those of `mnist`.
"""

from typing import Any, ClassVar

from orthobench.tasks.real.mnist import Digits


class MNISTFlat(Digits):
    """MNIST with an image as one vector, without time (Zhang et al. 2018, section 7.2).

    A batch is x (B, 784), from 0 to 1, and target (B,).

    Args:
        **kwargs: see `Task`.
    """

    sequential: ClassVar[bool] = False
    fixed_length: ClassVar[str | None] = "an image is read at once"
    unit: ClassVar[str] = "images"
    image: ClassVar[bool] = True

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.T = None
