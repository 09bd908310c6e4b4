"""How much slower Lightning's loop is than a bare one: steps per second of both, alternated in one process.

python scripts/loop_overhead.py [--rounds 5] [--steps 200] [OVERRIDES]
"""

import argparse
import statistics
import sys
import tempfile
import time

import torch

import orthobench
from orthobench import builder
from orthobench.app import Experiment


def bare(exp: Experiment, steps: int) -> float:
    """Seconds of `steps` training steps in a plain Python loop."""
    optimizer = builder.build_optimizer(exp.settings, exp.model)
    start = time.thread_time()
    for k in range(steps):
        x, target = exp.task.batch("train", *divmod(k, exp.task.batches("train")))
        loss = exp.task.loss(exp.model(x)[0], target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return time.thread_time() - start


def main() -> int:
    """Print both speeds and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument(
        "overrides", nargs="*", default=["model=scornn", "task=copying", "T=100", "model.hidden_size=64"]
    )
    given = parser.parse_args()
    torch.set_num_threads(1)
    ratios, speeds = [], []
    for seed in range(given.rounds):
        with tempfile.TemporaryDirectory() as root:
            words = [*given.overrides, f"trainer.max_steps={given.steps}", f"seed={seed}", f"runs_root={root}"]
            exp = orthobench.build(
                *words, f"trainer.val_check_interval={given.steps}", "task.val_size=1", "task.test_size=1"
            )
            plain = bare(orthobench.build(*words), given.steps)
            start = time.thread_time()
            exp.run()
            whole = time.thread_time() - start
            ratios.append(whole / plain)
            speeds.append((given.steps / plain, given.steps / whole))
    middle = [statistics.median(column) for column in zip(*speeds, strict=True)]
    line = f"bare {middle[0]:.1f} steps/s, Lightning {middle[1]:.1f} steps/s, ratio {statistics.median(ratios):.3f}\n"
    sys.stdout.write(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
