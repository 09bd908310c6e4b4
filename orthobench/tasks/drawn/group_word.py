"""The word problem of a finite group: the running product of random elements, at every step.

By default every element is a generator, drawn uniformly, so that the product is uniform too, at every step. Z60 and A5
have 60 elements each, but Z60 commutes and A5 is not even solvable; S5 has 120, A4 x Z5 is solvable and does not
commute.
Merrill, Petty & Sabharwal (2024), section 5.

Elements are numbered: permutations in lexicographic order, so that 0 is the identity, and (a, z) of A4 x Z5 as 5 a + z.
The product a b is the permutation i -> a[b[i]]; the state is multiplied from the right, P_t = P_{t-1} x_t.

`generators=swaps` draws transpositions alone: one reflection moves the state then, where an element of S5 takes up to
four (Grazzi et al. 2025; Siems et al. 2025). `sequence_score` is the share of sequences that are right at every step.
"""

from functools import lru_cache
from itertools import permutations
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

import numpy as np
from torch import Tensor

from orthobench.errors import ConfigError
from orthobench.tasks.drawn.tracking import Tracking
from orthobench.tasks.metric import Metric
from orthobench.tasks.scaled import scaled

LONG = 20  # elements of S3, of which the share below is within 0.001 of its limit
FEW = 6  # elements of a group that has not too many multisets of LONG of them
Group = Literal["z60", "s3", "s4", "a5", "s5", "a4xz5"]
SEQUENCE_SCORE = Metric("sequence_score", "share of sequences", "higher", (0.0, 1.0), None)


class GroupWord(Tracking):
    """Group word: the running product of random elements of a finite group (Merrill et al. 2024).

    A batch is x (B, L), tokens, target (B, L), the products, and mask (B, L), L the steps of the longest sequence.

    Args:
        group: the group: cyclic (z60), symmetric (s3, s4, s5), alternating (a5), or the product of A4 and Z5 (a4xz5).
        generators: which elements are drawn: all, transpositions (`swaps`), or those of a list; all is left out of the
            settings.
        **kwargs: see `Tracking`.

    Raises:
        ConfigError: the generators are no elements of the group, or do not generate it.
    """

    def __init__(
        self, group: Group = "s3", generators: Literal["all", "swaps"] | list[int] = "all", **kwargs: Any
    ) -> None:
        self.group, self.all = group, generators == "all"
        self.output_size = len(product_table(group))
        self.generators = np.arange(self.output_size) if self.all else _generators(group, generators)
        self.input_size = len(self.generators)
        super().__init__(**kwargs)

    @staticmethod
    def resolve(given: dict[str, Any], data_root: Path) -> dict[str, Any]:
        given = Tracking.resolve(given, data_root)
        return {key: value for key, value in given.items() if key != "generators" or value != "all"}

    @classmethod
    def declared(cls) -> tuple[Metric, ...]:
        return (*super().declared(), SEQUENCE_SCORE)

    def measure(self, y: Tensor, target: Tensor, mask: Tensor | None = None) -> dict[str, Tensor]:
        """See `Tracking`, and `sequence_score`."""
        wrong = y.argmax(-1) != target
        wrong = wrong if mask is None else wrong & (mask > 0)
        return super().measure(y, target, mask) | {"sequence_score": 1 - wrong.any(1).double().mean()}

    @property
    def order_blind(self) -> dict[str, float]:
        """At the last label: of one who gives the product that most orders of the sequence's elements have.

        In long sequences all products are as common that agree up to commutators; of groups with more than a few
        elements this is told for long sequences alone.
        """
        if not self.all:
            return {}
        alike, low, high = len(commutators(self.group)), *self.test_span
        if self.labels == "last" or not 1 < alike < self.output_size or (low < LONG and self.output_size > FEW):
            return {}
        short = commonest_products(self.group) if low < LONG else ()
        shares = [short[n - 1] if n <= len(short) else 1 / alike for n in range(low, high + 1)]
        return {"last_score": scaled(fmean(shares), self.last_chance)}

    def track(self, u_BT: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if not self.all:
            x, state, product = (self.input_size * u_BT).astype(np.int64), [], product_table(self.group)
            now = np.zeros(len(x), dtype=np.int64)
            for moved in self.generators[x].T:
                now = product[now, moved]
                state.append(now)
            return x, np.stack(state, axis=1)
        # drawing the products instead of the tokens is the same law, and needs no loop over time
        product = (self.output_size * u_BT).astype(np.int64)
        before = np.zeros_like(product)
        before[:, 1:] = product[:, :-1]
        return quotient_table(self.group)[before, product], product

    def law(self, states: int) -> np.ndarray:
        if self.all:
            return np.full((states, self.output_size), 1 / self.output_size)
        step = np.zeros((self.output_size, self.output_size))
        for x in self.generators:
            step[np.arange(self.output_size), product_table(self.group)[:, x]] += 1 / self.input_size
        found = [step[0]]
        for _ in range(states - 1):
            found.append(found[-1] @ step)
        return np.stack(found)


def _generators(group: Group, asked: str | list[int]) -> np.ndarray:
    """The numbers of the elements that are drawn, in order."""
    size, given = len(product_table(group)), list[int]() if isinstance(asked, str) else asked
    if asked == "swaps":
        if group[0] != "s":
            raise ConfigError(
                "task.generators=swaps is for s3, s4 and s5: "
                f"task.group={group} has no transpositions, so use all, or numbers of elements."
            )
        n = int(group[1])
        elements = np.array(list(permutations(range(n))))
        given = np.nonzero((elements != np.arange(n)).sum(1) == 2)[0].tolist()
    found = sorted(set(given))
    if not found or len(found) != len(given) or not 0 <= found[0] <= found[-1] < size:
        raise ConfigError(f"task.generators={asked}: different numbers of elements from 0 to {size - 1} are needed.")
    elements = np.array(found)
    if (reached := len(generated(group, elements))) != size:
        raise ConfigError(
            f"task.generators={asked} generate {reached} of the {size} elements of {group}: "
            "add others, so that they generate all."
        )
    return elements


@lru_cache
def product_table(group: Group) -> np.ndarray:
    """Entry [a, b] is the number of the product a b."""
    if group == "z60":
        return _cyclic(60)
    if group == "a4xz5":
        return (5 * _permutations(4, even=True)[:, None, :, None] + _cyclic(5)[None, :, None, :]).reshape(60, 60)
    return _permutations(int(group[1]), even=group[0] == "a")


@lru_cache
def commutators(group: Group) -> frozenset[int]:
    """The subgroup that the commutators a^-1 b^-1 a b generate: what is left open by elements without their order."""
    product, quotient = product_table(group), quotient_table(group)
    return generated(group, np.unique(quotient[product, product.T]))  # (a b)^-1 b a


def generated(group: Group, elements: np.ndarray) -> frozenset[int]:
    """The subgroup that some elements generate: of a finite group all products of them."""
    product, found = product_table(group), frozenset({0})
    while (more := found.union(product[sorted(found)][:, elements].ravel().tolist())) != found:
        found = more
    return found


@lru_cache
def commonest_products(group: Group) -> tuple[float, ...]:
    """Accuracy of the commonest product of a sequence's elements in any order, for 1 to LONG - 1 elements.

    The orders of a multiset with product p are, over its elements x, those of the rest with product p x^-1.
    """
    product, size = product_table(group), len(product_table(group))
    before = np.argsort(product, axis=0)  # [p, x]: the q with q x = p
    place = LONG ** np.arange(size)  # a multiset is one number, that of x being its digit at place x
    known, orders = np.zeros(1, dtype=np.int64), np.eye(1, size)
    shares = []
    for n in range(1, LONG):
        grown = np.unique(known[:, None] + place)
        found = np.zeros((len(grown), size))
        for x in range(size):
            has = grown // place[x] % LONG > 0
            found[has] += orders[np.searchsorted(known, grown[has] - place[x])][:, before[:, x]]
        known, orders = grown, found
        shares.append(float(orders.max(1).sum() / size**n))
    return tuple(shares)


@lru_cache
def quotient_table(group: Group) -> np.ndarray:
    """Entry [a, b] is the x with a x = b."""
    return np.argsort(product_table(group), axis=1)


def _cyclic(n: int) -> np.ndarray:
    return np.add.outer(np.arange(n), np.arange(n)) % n


def _permutations(n: int, even: bool) -> np.ndarray:
    """The product table of the permutations of n things, or of the even ones."""
    elements = np.array(list(permutations(range(n))))
    if even:
        earlier, later = np.triu_indices(n, 1)
        elements = elements[(elements[:, earlier] > elements[:, later]).sum(1) % 2 == 0]
    digits = n ** np.arange(n)[::-1]
    products = elements[:, elements] @ digits  # [a, b]: a[b[i]], read as one number, which sorts as the permutation
    return np.searchsorted(elements @ digits, products)
