"""`orthobench inspect RUN`: the dynamics of a trained cell, as a table, and as JSON and a picture in its folder."""

import math
from typing import Any

from orthobench.common.terminal import columns, say
from orthobench.errors import ConfigError
from orthobench.report.saving import Look
from orthobench.verbs.arguments import RunParser, load_run


def main(arguments: list[str]) -> int:
    """Look at the weights that were best by validation, on test sequences, in float64.

    Raises:
        ConfigError: no run of that name, one that is not done, a feed-forward model, or a word that does not apply.
    """
    parser = RunParser(__doc__, "orthobench inspect runs/NAME")
    parser.add_argument("--sequences", type=int, default=8, metavar="N", help="test sequences to follow (8)")
    parser.add_look(logy=False)
    given = parser.read(arguments)
    look = Look(given.format, style=given.style)
    if given.sequences < 1:
        raise ConfigError(f"--sequences {given.sequences} is out of range: it must be >= 1.")
    run = load_run(given)
    from orthobench.recording.checkpoint import digest_of
    from orthobench.recording.digest import write_sealed
    from orthobench.recording.files import write_bytes
    from orthobench.report.dynamics import picture
    from orthobench.run.dynamics import dynamics

    found = dynamics(run, given.sequences)
    name = "inspect-last" if given.last else "inspect"
    path = run.folder / "evaluations" / f"{name}.json"
    about = {"run_id": run.run_id, "identity": run.settings.digest, "weights": run.which, "step": run.step}
    write_sealed(path, {"schema": 1, **about, "checkpoint": digest_of(run.checkpoint), **found})
    seen = f"{found['sequences']} sequences of {found['T']:,} steps"
    say(f"{run.run_id}: the {run.which} weights, of step {run.step:,}; {seen}")
    _print_dynamics(found)
    say(str(path))
    drawn = path.with_suffix(f".{look.form}")
    with look.applied():
        write_bytes(drawn, look.saved(picture(found), f"{run.run_id}: dynamics, the {run.which} weights"))
    say(str(drawn))
    return 0


def _print_dynamics(found: dict[str, Any]) -> None:
    rows, exponents = [], []
    for number, layer in enumerate(found["layers"], start=1):
        for name, matrix in layer["matrices"].items():
            moduli, values, phases = matrix["modulus"], matrix["singular_values"], matrix["phase"]
            spread = [_range(moduli), f"{max(map(abs, phases)):.4g}", _range(values)]
            rows.append([str(number), name, "yes" if matrix["constrained"] else "no", *spread])
        per_step = layer["lyapunov"]
        mean = sum(per_step) / len(per_step)
        spread = [f"{mean:.4g}", f"{min(per_step):.4g}", f"{max(per_step):.4g}"]
        exponents.append([str(number), layer["cell"], *spread, f"{layer['newton_sweeps']:,} for {found['T']:,} steps"])
    if rows:
        columns(["layer", "matrix", "constrained", "eigenvalue modulus", "largest phase", "singular values"], rows)
    titles = ["layer", "cell", "largest Lyapunov exponent per step", "smallest", "largest of the sequences"]
    columns([*titles, "Newton sweeps"], exponents)
    T, last = found["T"], found["layers"][-1]["state_norm"]
    chosen = sorted({T - 1, *(d for d in _distances(T))})
    times = [[f"{d:,}", f"{last[T - d - 1]:.4g}", f"{found['hidden_gradient'][T - d - 1]:.4g}"] for d in chosen]
    columns(["T - t", "norm of h_t", "norm of dL/dh_t"], times)


def _range(values: list[float]) -> str:
    return f"{min(values):.4g}..{max(values):.4g}"


def _distances(T: int) -> list[int]:
    """0, 1, 2, 5, 10, 20, 50, ... below T."""
    return [0, *(d * 10**k for k in range(math.ceil(math.log10(T)) + 1) for d in (1, 2, 5) if d * 10**k < T)]
