"""Make odd files and settings of each kind: python -m tests.outside --fuzz 500."""

import argparse
import sys

from tests.outside import all_kinds, fuzz

SHOWN = 5


def main() -> int:
    """Print a line for each kind, and the first faults; the exit code is 1 with any fault."""
    parser = argparse.ArgumentParser(prog="python -m tests.outside", description=__doc__)
    parser.add_argument("--fuzz", type=int, default=500, metavar="N", help="inputs of each kind")
    parser.add_argument("--kind", action="append", choices=list(all_kinds()), help="this kind alone; may be repeated")
    parser.add_argument("--seed", type=int, default=1, help="another seed makes other inputs")
    parser.add_argument("--sentences", action="store_true", help="show the refusals too")
    asked = parser.parse_args()
    failed = False
    print(f"{'kind':<16}{'right':>8}{'refused':>9}{'faults':>8}{'slowest':>10}")
    for name in asked.kind or all_kinds():
        found = fuzz(name, asked.fuzz, asked.seed)
        failed = failed or bool(found.faults)
        print(f"{name:<16}{found.right:>8}{found.refused:>9}{len(found.faults):>8}{found.slowest:>8.2f} s", flush=True)
        for fault in found.faults[:SHOWN]:
            print(f"  fault of {name}: " + fault.replace("\n", "\n    "))
        if asked.sentences:
            print("".join(f"  {sentence}\n" for sentence in sorted(found.sentences)), end="")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
