"""The processor's work of whole commands, in times of that of `import torch`, which takes turns with them.

What a user waits for is such a command. Every command is its own process, and the work of all its children counts.
The records are those of the working directory, in a copy, so that nothing is written here.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from orthobench.bench.timing import Bench, Row

TORCH = ("-c", "import torch")
TINY = (
    "model=rnn task=recall recipe=none T=5 task.val_size=1 task.test_size=1 logger=none trainer.max_steps=1 force=true"
)
LONGER = "model=scornn task=copying recipe=none T=50 task.val_size=100 task.test_size=100 logger=none"
QUICK = {
    "--help": "--help",
    "list": "list",
    "mistake: model=nonsuch": "model=nonsuch",
    "mistake: plan nonsuch": "plan nonsuch",
    "mistake: show model=nonsuch": "show model=nonsuch",
    "mistake: compare nonsuch": "compare nonsuch",
    "mistake: eval nonsuch": "eval nonsuch",
}
SLOW = {
    "a run of one step": f"{TINY} runs_root={{folder}}",
    "counts: list --counts": "list --counts",
    "compare fair": "compare fair {results}",
    "tables --check": "tables --check {results}",
    "plan fair/copying, nothing kept": "plan fair/copying runs_root={folder}/new-{round} {results}",
    "plan fair/copying, kept": "plan fair/copying runs_root={folder}/new-0 {results}",
    "plan of six runs": "plan model=scornn,lstm task=adding T=200 seed=1,2,3 runs_root={folder}/six-{round} {results}",
    "site": "site {results}",
}
SWEPT = 20
SWEEP = f"-m {TINY} runs_root={{folder}}/{{round}} seed=range(1,{SWEPT + 1})"
EIGHT = 8


def measure(bench: Bench) -> Iterator[Row]:
    """All rows of this file, each as soon as it is known."""
    with tempfile.TemporaryDirectory(prefix="orthobench-") as folder:
        _work_s(TORCH)  # which brings its files into memory
        for name, words in QUICK.items():
            yield _command(name, words, 3 if bench.quick else 5, folder)
        if not bench.quick:
            for name, words in SLOW.items():
                yield _command(name, words, 3, folder)
            yield _command(f"one of {SWEPT} runs of one step", SWEEP, 3, folder, SWEPT)
            yield _eight(3)


def _command(name: str, words: str, rounds: int, folder: str, runs: int = 1) -> Row:
    """A row for a command, after as many rounds in which it and `import torch` take turns."""
    results, pairs = Path(folder, "results"), list[tuple[float, float]]()
    if not results.is_dir() and Path("results").is_dir():  # the pages are written beside the records
        shutil.copytree("results", results, ignore=shutil.ignore_patterns("site"))
    for number in range(rounds):
        base, _, _ = _work_s(TORCH)
        given = words.format(folder=folder, round=number, results=f"results_root={results}")
        own, code, said = _work_s(("-m", "orthobench", *given.split()))
        if code and not name.startswith("mistake"):
            return Row("waits", name, "not measured", unit=said)
        pairs.append((own / runs, base))
    ratios = [own / base for own, base in pairs]
    quartiles = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
    seconds = statistics.median(own for own, _ in pairs)
    return Row(
        "waits",
        name,
        "in times of import torch",
        spread=quartiles[2] - quartiles[0],
        cpu_ms=1000 * seconds,
        rounds=rounds,
        value=statistics.median(ratios),
        unit=f"times import torch, {seconds:.2f} s",
    )


def _eight(rounds: int) -> Row:
    """The work of a sweep of eight runs, half of it for each of two cores, in that of one run alone."""
    ratios = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory(prefix="orthobench-") as folder:
            words = [*LONGER.split(), "trainer.max_steps=400", f"runs_root={folder}"]
            one, _, _ = _work_s(("-m", "orthobench", *words, "seed=100"))
            all_, _, _ = _work_s(("-m", "orthobench", "-m", *words, f"seed=range(1,{EIGHT + 1})"))
            ratios.append(all_ / 2 / one)
    return Row("waits", "eight runs", "on two cores", rounds=rounds, value=statistics.median(ratios),
               unit="times the work of one run")  # fmt: skip


def _work_s(words: tuple[str, ...]) -> tuple[float, int, str]:
    """The processor's seconds of a Python program and its children, its exit code, and its last words."""
    before = os.times()
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    after = os.times()
    seconds = after.children_user - before.children_user + after.children_system - before.children_system
    said = (done.stderr or done.stdout).strip().splitlines()
    return seconds, done.returncode, said[-1] if said else f"exit code {done.returncode}"
