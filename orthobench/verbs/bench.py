"""`orthobench bench [--quick] [--output DIR]`: how fast the parts are on this machine."""

import argparse
from itertools import chain
from pathlib import Path
from typing import NoReturn

from orthobench.errors import ConfigError
from orthobench.terminal import say


class Parser(argparse.ArgumentParser):
    """Its errors are ours."""

    def error(self, message: str) -> NoReturn:
        raise ConfigError(f"bench: {message}.")


def main(arguments: list[str]) -> int:
    """Measure, print a line per result as it comes, and write speed.csv and speed.md.

    Raises:
        ConfigError: an option that is not known.
    """
    parser = Parser(prog="orthobench bench", description="Measure engines, cells, parametrizations and training.")
    parser.add_argument("--quick", action="store_true", help="small sizes and few rounds: within two minutes")
    parser.add_argument("--output", type=Path, default=Path("results/bench"), help="folder of speed.csv and speed.md")
    options = parser.parse_args(arguments)
    import torch

    from orthobench.bench import cores, maps, models, scans, targets, training
    from orthobench.bench.tables import line, write
    from orthobench.bench.timing import Bench

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    bench = Bench(device, 0.7 if options.quick else 8.0, 3, 9 if options.quick else 15, options.quick)
    rows = []
    torch.set_num_threads(1)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    parts = (part.measure(bench) for part in (scans, maps, models, training, cores))
    judged = targets.GPU if device.type == "cuda" else targets.CPU
    for row in chain(*parts, targets.judge(rows, judged)):
        rows.append(row)
        say(line(row))
    for path in write(rows, options.output, device):
        say(f"wrote {path}")
    return 0
