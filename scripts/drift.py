"""How far every constrained matrix strays from its manifold in float32: writes docs/explanation/drift.md.

Each matrix takes 1,000 Adam steps with learning rate 1e-3 on a random linear loss with noise. The table shows the
largest ||W^H W - I||_F over the steps, computed in float64, or for a band of singular values the largest distance
outside it.
Run as: python scripts/drift.py [--sizes 64 128]
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import torch

from orthobench.common.registry import find, names
from orthobench.models.optim import Adam, Optimizer
from orthobench.parametrizations.base import Parametrization, deviation

STEPS, RATE = 1000, 1e-3
VARIANTS: dict[str, list[dict[str, object]]] = {
    "neumann_cayley": [{"order": 1}, {"order": 2}, {"order": 3}, {"order": "exact"}, {"order": 2, "variant": "code"}],
    "matrix_exp": [{"gradient": "exact"}, {"gradient": "lie_algebra"}, {"gradient": "geodesic"}],
    "householder": [{"m": 16}, {"m": "max"}],
    "svd": [{"m1": 16, "m2": 16}],
}


def outside(p: Parametrization, W: torch.Tensor) -> float:
    """Distance from the manifold, without the rounding of the measurement itself."""
    W = W.to(torch.complex128 if W.is_complex() else torch.float64)
    if hasattr(p, "sigma_star"):
        sigma = torch.linalg.svdvals(W)
        return float(((sigma - p.sigma_star).abs() - p.r).clamp(min=0).max())  # type: ignore[operator]
    return float(deviation(W))


def drift(p: Parametrization, rng: np.random.Generator) -> float:
    """The largest distance over the steps."""
    rule = Adam()
    groups = [{"name": "recurrent", "params": list(p.parameters()), "lr": RATE, "rule": rule, "constrained": True}]
    optimizer = Optimizer(groups)
    shape = (p.n, p.n)
    steady = torch.tensor(rng.normal(size=shape), dtype=torch.float32)
    worst = 0.0
    for _ in range(STEPS):
        W = p()
        noise = torch.tensor(rng.normal(size=shape), dtype=torch.float32)
        optimizer.zero_grad()
        ((W.real if W.is_complex() else W) * (steady + noise)).sum().backward()
        optimizer.step()
        p.learning_rate = RATE
        p.after_step()
        with torch.no_grad():
            worst = max(worst, outside(p, p()))
    return worst


def main() -> int:
    """Measure and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[64, 128])
    sizes = parser.parse_args().sizes
    torch.set_num_threads(1)
    lines = ["# Drift in float32", "", *(__doc__ or "").strip().splitlines()[2:], ""]
    lines += ["| parametrization | " + " | ".join(f"n = {n}" for n in sizes) + " |", "|---|" + "---|" * len(sizes)]
    for name in names("parametrization"):
        cls = find("parametrization", name, "name")
        if not getattr(cls, "constrained", False):
            continue
        for options in VARIANTS.get(name, [{}]):
            words = ", ".join(f"{key}={value}" for key, value in options.items())
            cells = []
            for n in sizes:
                figure = drift(cls(n=n, rng=np.random.default_rng(1), **options), np.random.default_rng(2))
                cells.append(f"{figure:.1e}")
            lines.append(f"| {name}{': ' if words else ''}{words} | " + " | ".join(cells) + " |")
            sys.stdout.write(lines[-1] + "\n")
            sys.stdout.flush()
    path = Path(__file__).resolve().parents[1] / "docs" / "explanation" / "drift.md"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
