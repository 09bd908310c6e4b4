"""What a time step costs in each form of the kernels, in microseconds forward and backward; `auto` compares these.

`rows` has one sequence per program and its matrices in registers, `blocks` sixteen sequences per program, products on
tensor cores and matrices in shared memory. Nothing here was measured: the numbers of `rows` and `blocks` are from
simulations of the kernels compiled for compute capability 9.0 at 1.9 GHz, those of `graph` from published figures of
loops of small kernels (docs/gpu.md). `orthobench bench` measures them on a device; see `measured.py`.
"""

from bisect import bisect_left

MULTIPROCESSORS = 132
SIZES = (50, 128, 190, 256)
SIMULATED: dict[tuple[str, str], tuple[float, ...]] = {
    ("elman", "rows"): (0.45, 0.66, 1.48, 2.7),
    ("elman", "blocks"): (1.6, 4.2, 8.7, 18.0),
    ("elman", "graph"): (13.0, 14.0, 15.0, 16.0),
    ("gru", "rows"): (1.3, 2.6, float("inf"), float("inf")),
    ("gru", "blocks"): (5.0, 15.0, 40.0, 80.0),
    ("gru", "graph"): (24.0, 25.0, 27.0, 30.0),
}
SEQUENCES = 50  # where a caller does not know how many there are


def step_us(family: str, form: str, n: int, sequences: int) -> float:
    """Microseconds of a time step forward and backward.

    Args:
        family: elman (with or without scalar gates) or gru.
        form: rows, blocks or graph.
        n: hidden units.
        sequences: members times the batch size. Each multiprocessor computes one program after another.
    """
    programs = {"rows": sequences, "blocks": -(-sequences // 16)}.get(form, 1)
    return _at(SIMULATED[family, form], n) * max(-(-programs // MULTIPROCESSORS), 1)


def cheaper(family: str, n: int, sequences: int) -> str:
    """The form of the kernels, rows or blocks, whose step costs less."""
    return min(("rows", "blocks"), key=lambda form: step_us(family, form, n, sequences))


def _at(costs: tuple[float, ...], n: int) -> float:
    """Between two sizes on the line that connects them; below the first as there, beyond the last in proportion."""
    place = bisect_left(SIZES, n)
    if place == 0:
        return costs[0]
    if place == len(SIZES):
        return costs[-1] * n / SIZES[-1]
    low, high = SIZES[place - 1], SIZES[place]
    if costs[place] == float("inf"):
        return costs[place]
    return costs[place - 1] + (costs[place] - costs[place - 1]) * (n - low) / (high - low)
