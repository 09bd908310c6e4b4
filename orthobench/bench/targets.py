"""Targets for the measured speeds, and whether they are met."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from orthobench.bench.timing import Row

Measure = Callable[[dict[str, Row]], float | None]


@dataclass(frozen=True)
class Target:
    """A bound on a number that is computed for every case of `group` whose name begins with one of `cases`."""

    claim: str
    group: str
    cases: tuple[str, ...]
    measure: Measure
    least: float | None = None
    most: float | None = None

    def met(self, value: float) -> bool:
        """Return True if a measured value is within the bound."""
        return (self.least is None or value >= self.least) and (self.most is None or value <= self.most)


def faster(name: str, than: str) -> Measure:
    """A measure of how many times faster one variant is than another of the same case."""

    def measure(rows: dict[str, Row]) -> float | None:
        first, second = rows.get(name), rows.get(than)
        return first.ratio / second.ratio if first and second and first.ratio and second.ratio else None

    return measure


def milliseconds(name: str) -> Measure:
    """A measure of the processor's time of one call of a variant."""

    def measure(rows: dict[str, Row]) -> float | None:
        return rows[name].cpu_ms if name in rows else None

    return measure


def number(name: str) -> Measure:
    """A measure of a variant's own number."""

    def measure(rows: dict[str, Row]) -> float | None:
        return rows[name].value if name in rows else None

    return measure


def quotient(name: str, other: str) -> Measure:
    """A measure of one variant's own number in another's."""

    def measure(rows: dict[str, Row]) -> float | None:
        first, second = (rows[key].value if key in rows else None for key in (name, other))
        return first / second if first and second else None

    return measure


def growth(rows: dict[str, Row]) -> float | None:
    """Cost of a step at the length where it costs most, in that at the first length."""
    steps = {int(name.removeprefix("T=")): row.ratio for name, row in rows.items() if row.ratio}
    return max(min(steps) / (T * ratio) for T, ratio in steps.items()) if len(steps) > 1 else None


def _most(rows: dict[str, Row]) -> float | None:
    return max(row.value for row in rows.values() if row.value is not None)


def _value(rows: dict[str, Row]) -> float | None:
    return next(iter(rows.values())).value


E50, E128, E190, E512 = (f"elman modrelu n={n} " for n in (50, 128, 190, 512))
LARGE = (E128, E190, E512)
USUAL = tuple(f"n={n}" for n in (128, 190, 256, 512))
FEW = tuple(f"{n} m={m}" for n in USUAL for m in (16, 32))
FOURIER_128, *FOURIER = (f"urnn_restricted n={n}" for n in (128, 512, 2170))
USUAL_SCAN = "n=128 B=50 T=200"
GATED = ("scalar_gated", "gru")
BESIDE_SCORNN = {
    "deltanet": 3.2, "deltaproduct": 5, "mlstm": 3, "mingru": 0.5, "eunn": 1, "urnn_restricted": 1.3,
}  # fmt: skip
CPU = (
    Target("fused over reference, n=128 B=50", "scan", (f"{E128}B=50",), faster("fused", "reference"), least=1.7),
    Target("fused over reference, n=512 B=128", "scan", (f"{E512}B=128",), faster("fused", "reference"), least=1.0),
    Target("fused over reference, gated cells", "scan", GATED, faster("fused", "reference"), least=1.4),
    Target("native over reference, n=50 B=16", "scan", (E50,), faster("native", "reference"), least=8),
    Target("native over reference, n=128 B=50", "scan", (f"{E128}B=50",), faster("native", "reference"), least=2.2),
    Target("native over reference, n=190 B=50", "scan", (f"{E190}B=50",), faster("native", "reference"), least=1.6),
    Target("native's time in matrix products, n>=128", "scan", LARGE, faster("matrix products", "native"), most=1.3),
    Target("native over nn.RNN relu, n>=128", "scan", LARGE, faster("native", "nn.RNN relu"), least=1.15),
    Target("native over nn.LSTM, n>=128", "scan", LARGE, faster("native", "nn.LSTM"), least=4),
    Target("native over nn.LSTM, lstm", "scan", ("lstm",), faster("native", "nn.LSTM"), least=1.25),
    Target("native over reference, urnn_full", "scan", ("urnn_full",), faster("native", "reference"), least=1.85),
    Target("native over reference, eunn", "scan", ("eunn",), faster("native", "reference"), least=8),
    Target("native over reference, urnn_restricted", "scan", (FOURIER_128,), faster("native", "reference"), least=3.8),
    Target(
        "native over reference, urnn_restricted, large", "scan", tuple(FOURIER), faster("native", "reference"), least=4
    ),
    Target("rotations over a dense W, n=512", "scan", ("vprnn n=512",), faster("native", "native, dense"), least=1.7),
    Target("native's ms, urnn_full", "scan", (f"urnn_full {USUAL_SCAN}",), milliseconds("native"), most=50),
    Target("native's ms, eunn", "scan", (f"eunn capacity=2 {USUAL_SCAN}",), milliseconds("native"), most=12),
    Target("native's ms, urnn_restricted", "scan", (f"urnn_restricted {USUAL_SCAN}",), milliseconds("native"), most=25),
    Target(
        "native's ms, complex diagonal",
        "scan",
        ("complex diagonal n=128 B=50 T=1000",),
        milliseconds("native"),
        most=20,
    ),
    Target("a step's growth with T", "long", ("",), growth, most=1.25),
    Target("diagonal over Elman, native", "scan", ("diagonal",), faster("native", "elman modrelu, native"), least=3.3),
    Target("time in the reference's, later cells", "cells", ("",), faster("reference", "auto"), most=1.2),
    *(
        Target(f"{model}'s time in scoRNN's", "beside scornn", ("",), faster("scornn", model), most=most)
        for model, most in BESIDE_SCORNN.items()
    ),
    Target("kept by fused, of the reference's", "memory", ("",), faster("reference", "fused"), most=0.3),
    Target("two threads over one, n>=128", "threads", LARGE, faster("two threads", "one thread"), least=1.6),
    Target("ten seeds on two cores, in times of one seed", "seeds", ("",), _value, most=6),
    Target("exponential over torch.matrix_exp", "matrix_exp", USUAL, faster("ours", "torch.matrix_exp"), least=3),
    Target(
        "time of segments computed again", "segments", ("",), faster("the whole at once", "checkpoint=auto"), most=1.4
    ),
    Target("memory of states, in all hidden states", "segments", ("",), number("memory, checkpoint=states"), most=1.3),
    Target("compact WY over sequential", "householder", FEW, faster("compact WY", "one after another"), least=7),
    Target("VPRNN's matrix once", "vprnn", ("",), faster("matrix once", "sublayers at every step"), least=12),
    Target("ten members' loop in one member's", "ensemble", ("",), faster("one member", "10 members"), most=1.2),
    Target("orthobench's step in bare ones", "training", ("",), faster("bare loop", "orthobench run"), most=1.1),
)
CASES = {n: f"elman modrelu n={n} B=50" for n in (50, 128, 190, 256)}
GATED_LARGE = tuple(f"gru after modrelu n={n}" for n in (190, 256))
TIMES = tuple(CASES[n] for n in (128, 190))
GPU = (
    Target("us a step, n=50", "gpu", (CASES[50],), number("cuda"), most=1.0),
    Target("us a step, n=128", "gpu", (CASES[128],), number("cuda"), most=1.6),
    Target("us a step, n=190", "gpu", (CASES[190],), number("cuda"), most=1.8),
    Target("us a step, gated, n=190 and 256", "gpu", GATED_LARGE, number("cuda"), most=12),
    Target("the loop's time in cuda's", "gpu", TIMES, quotient("reference", "cuda"), least=40),
    Target("nn.RNN's time in cuda's", "gpu", TIMES, quotient("nn.RNN", "cuda"), least=1),
    Target("nn.GRU's time in cuda's", "gpu", ("gru",), quotient("nn.GRU", "cuda"), least=1),
    Target("nn.LSTM's time in cuda's", "gpu", ("lstm n=",), quotient("nn.LSTM", "cuda"), least=1),
    Target("ten members' time in one's, n=190", "gpu", ("elman modrelu n=190",), quotient("10", "1"), most=1.8),
    Target("ten members' time in one's, n=128", "gpu", ("elman modrelu n=128",), quotient("10", "1"), most=1.3),
    Target("ten members' loop in one member's", "ensemble", ("",), faster("one member", "10 members"), most=1.2),
    Target("seconds of scoRNN, copying T=2000, 10,000 steps", "flagship", ("",), _value, most=45),
    Target("ten seeds in times of one, whole program", "seeds", ("",), _value, most=1.3),
)
GROWTH = (
    Target("exponent of time and memory in T", "exponent", ("time in T", "memory in T"), _most, most=1.05),
    Target("exponent of time and memory in B", "exponent", ("time in B", "memory in B"), _most, most=1.05),
    Target("exponent of memory in n", "exponent", ("memory in n",), _most, most=1.05),
    Target("exponent of time in runs and records", "exponent", ("time in r",), _most, most=1.05),
    Target("ms of 100,000 records again", "growth", ("records() again",), milliseconds("100,000 records"), most=5000),
)

IN_TORCH = "in times of import torch"
WAITS = (
    Target("times import torch: help, lists, mistakes", "waits", ("--help", "list", "mistake"), _value, most=0.25),
    Target("times import torch: a run of one step", "waits", ("a run of one step",), _value, most=1.1),
    Target("times import torch: list --counts", "waits", ("counts",), _value, most=1.5),
    Target("times import torch: compare fair", "waits", ("compare fair",), _value, most=3),
    Target("times import torch: tables --check", "waits", ("tables --check",), _value, most=9),
    Target("times import torch: one of 20 runs of one step", "waits", ("one of 20",), _value, most=0.2),
    Target("ms of plan fair/copying", "waits", ("plan fair/copying",), milliseconds(IN_TORCH), most=10_000),
    Target("ms of plan of six runs", "waits", ("plan of six runs",), milliseconds(IN_TORCH), most=5_000),
    Target("ms of site", "waits", ("site",), milliseconds(IN_TORCH), most=30_000),
    Target("eight runs on two cores, in times of one", "waits", ("eight runs",), _value, most=4.3),
)
APART = {"growth": GROWTH, "waits": WAITS}


def judge(rows: Iterable[Row], targets: tuple[Target, ...]) -> Iterator[Row]:
    """Rows, one for each target and case; one row also for a target without measurements."""
    cases: dict[tuple[str, str], dict[str, Row]] = {}
    for row in rows:
        cases.setdefault((row.group, row.case), {})[row.variant] = row
    for target in targets:
        bound = f">= {target.least:g}" if target.most is None else f"<= {target.most:g}"
        found = False
        for (group, case), variants in cases.items():
            value = target.measure(variants) if group == target.group and case.startswith(target.cases) else None
            if value is not None:
                found = True
                verdict = "met" if target.met(value) else "not met"
                yield Row("targets", target.claim, case, value=value, unit=f"{bound}: {verdict}")
        if not found:
            yield Row("targets", target.claim, "not measured", unit=bound)
