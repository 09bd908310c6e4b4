"""`orthobench bench [--quick] [--output DIR]`: how fast the parts are on this machine."""

from itertools import chain
from pathlib import Path

from orthobench.terminal import say
from orthobench.verbs.arguments import Parser


def main(arguments: list[str]) -> int:
    """Measure, print a line per result as it comes, and write speed.csv and speed.md.

    Raises:
        ConfigError: an option that is not known.
    """
    parser = Parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes and few rounds: within two minutes")
    parser.add_argument("--output", type=Path, default=Path("results/bench"), help="folder of speed.csv and speed.md")
    options = parser.read(arguments)
    if options.words:
        parser.error(f"{options.words[0]!r} is not an argument here")
    import torch

    from orthobench.bench import cores, maps, models, newer, scans, targets, training
    from orthobench.bench.tables import line, write
    from orthobench.bench.timing import Bench
    from orthobench.run.memory import keep_freed_memory

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    bench = Bench(device, 0.7 if options.quick else 8.0, 3, 9 if options.quick else 15, options.quick)
    rows = []
    torch.set_num_threads(1)
    keep_freed_memory()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    parts = (part.measure(bench) for part in (scans, newer, maps, models, training, cores))
    judged = targets.GPU if device.type == "cuda" else targets.CPU
    for row in chain(*parts, targets.judge(rows, judged)):
        rows.append(row)
        say(line(row))
    for path in write(rows, options.output, device):
        say(f"wrote {path}")
    return 0
