"""Measurements for a GPU that is there for minutes: `orthobench bench --gpu`, in three parts, each whole by itself.

The parts end within 100, 200 and 320 seconds. Everything in them is a process of its own with a time limit, so that
what fails, crashes or hangs leaves the next ones alone. Each line is written as it comes, on the screen and into
<output>/<device>.log; rows go into <device>.csv, and <device>.md lists what ran and the targets met and missed.
"""

import itertools
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from orthobench.bench.tables import Appended
from orthobench.bench.targets import GPU, judge
from orthobench.bench.timing import Row
from orthobench.common import system
from orthobench.scan.gpu.costs import slug
from orthobench.study.catalogue import SHIPPED

ROW = "ROW "
FLAGSHIP = "model=scornn task=copying T=2000 model.hidden_size=190 task.batch_size=50 logger=none"
PEERS = ("flash-linear-attention", "flashrnn", "mlstm-kernels")
QUIET = "trainer.val_check_interval=100000 task.val_size=50 task.test_size=50"


def device() -> None:
    """Print the device."""
    import torch

    say(f"torch {torch.__version__}, Python {sys.version.split()[0]}, {os.cpu_count()} cores")
    say(f"triton {version('triton')}, lightning {version('lightning')}")
    need_gpu()
    properties = torch.cuda.get_device_properties(0)
    say(f"{properties.name}, compute capability {properties.major}.{properties.minor}, ")
    say(f"{properties.multi_processor_count} multiprocessors, {properties.total_memory >> 30} GiB")


def solver() -> None:
    """Linear systems solved on a GPU: captured on the stream of the warm-up and on another, by each library, and timed.

    One system goes to cuSOLVER by default; five, as those of an ensemble's members, go to MAGMA.
    """
    import torch

    from orthobench.bench.gpu_steps import call_seconds
    from orthobench.bench.timing import Bench
    from orthobench.models.surroundings import prefer_solvers

    need_gpu()
    for library, systems in itertools.product(("default", "cusolver", "magma"), (1, 5)):
        A = torch.eye(190, device="cuda", dtype=torch.double) + 0.01 * torch.randn(systems, 190, 190, device="cuda")
        A = (A[0] if systems == 1 else A).requires_grad_()
        prefer_solvers(library)
        both = lambda A=A: torch.autograd.grad(torch.linalg.solve_ex(A, 2 * A)[0].sum(), [A])[0]  # noqa: E731
        ms = 1e3 * call_seconds(Bench(torch.device("cuda"), 1.0, 3, 5, True), both)
        give(Row("solver", f"{systems} of n=190 by {library}", "forward and backward", value=ms, unit="ms"))
        for elsewhere in (False, True):
            name = (
                f"{systems} by {library}, captured on {'another stream' if elsewhere else 'the stream of the warm-up'}"
            )
            warm = torch.cuda.Stream()
            with torch.cuda.stream(warm):
                both()
            graph = torch.cuda.CUDAGraph()
            try:
                with torch.cuda.graph(graph, stream=torch.cuda.Stream() if elsewhere else warm), torch.no_grad():
                    X, _ = torch.linalg.solve_ex(A, A)
                graph.replay()
                torch.cuda.synchronize()
                say(f"{name}: off by {float((X - torch.eye(190, device='cuda')).abs().max()):.1g}")
            except RuntimeError as error:
                say(f"{name}: failed, {str(error).splitlines()[0]}")
    prefer_solvers("default")


def nan() -> None:
    """NaN through every kernel."""
    import torch

    from orthobench.bench.gpu_steps import FAMILIES
    from orthobench.bench.scans import WIDTH, make_cell
    from orthobench.scan import ENGINES
    from orthobench.scan.gpu.choice import KERNELS

    need_gpu()
    for name in FAMILIES:
        for engine in KERNELS:
            cell = make_cell(name, 50, torch.device("cuda"))
            if ENGINES[engine].why_not(cell):
                continue
            start = tuple(torch.full_like(s, torch.nan) for s in cell.initial_state(3))
            h, _ = ENGINES[engine].run(cell, torch.randn(3, 4, WIDTH, device="cuda"), start)
            say(f"{name}, {engine}: {'NaN stays' if bool(h.isnan().all()) else 'NaN IS LOST'}")


def steps() -> None:
    """Microseconds of a time step of every engine and size."""
    import torch

    from orthobench.bench import gpu_steps
    from orthobench.bench.timing import Bench

    need_gpu()
    for row in gpu_steps.measure(Bench(torch.device("cuda"), 1.0, 3, 9, False)):
        give(row)


def linear() -> None:
    """Cells that are linear in their state: their own loop and what is done at once, beside other packages' layers."""
    import torch

    from orthobench.bench import cells, peers
    from orthobench.bench.timing import Bench

    need_gpu()
    for name in PEERS:
        say(f"{name}: {version(name)}")
    bench = Bench(torch.device("cuda"), 1.0, 3, 5, True)
    for row in cells.measure(bench):
        give(row)
    for peer in peers.PEERS:
        if peer.gpu:
            for row in peers.compare(bench, peer, *peers.SIZES[0]):
                give(row)


def flagship() -> None:
    """1,000 steps of scoRNN on copying, T=2000, n=190, B=50."""
    from orthobench.run.run import Run

    need_gpu()
    with tempfile.TemporaryDirectory() as root:
        words = [*FLAGSHIP.split(), *QUIET.split(), "trainer.max_steps=1000", f"runs_root={root}"]
        record = Run.fitted(SHIPPED.settings(words)).run()
    say(f"engine {record['engine'][0]}")
    seconds = 10_000 / record["time"]["steps_per_s"]
    give(Row("flagship", "scoRNN, copying T=2000, n=190, B=50", "10,000 steps", value=seconds, unit="s, from 1,000"))


def ensembles() -> None:
    """Train one, ten and thirty-two members for 300 steps, and ten whose steps are captured with their matrices."""
    from orthobench.ensemble.running import run_members
    from orthobench.ensemble.stacked import Stacked
    from orthobench.run.run import Run

    need_gpu()
    one = 0.0
    for members, captured in ((1, False), (10, False), (32, False), (10, True)):
        Stacked.captures_maps = captured
        with tempfile.TemporaryDirectory() as root:
            words = [*FLAGSHIP.replace("T=2000", "T=1000").split(), *QUIET.split(), "trainer.max_steps=300"]
            runs = [
                Run.fitted(SHIPPED.settings((*words, f"runs_root={root}", f"seed={seed}")))
                for seed in range(1, members + 1)
            ]
            run_members(runs)
            record = json.loads((runs[0].settings.folder / "record.json").read_text())
        seconds = record["time"]["train_s"]
        one = one or seconds
        variant = f"{members}{', captured' * captured}"
        give(Row("ensembles", "scoRNN, copying T=1000, 300 steps", variant, value=seconds, unit="s"))
        if members == 10:
            variant = f"ten{', captured' * captured}"
            give(Row("seeds", "scoRNN, copying T=1000", variant, value=seconds / one, unit="times as long as one"))


PIECES: dict[str, tuple[Callable[[], None], float]] = {  # with the most seconds of each
    "device": (device, 10),
    "nan": (nan, 25),
    "steps": (steps, 65),
    "solver": (solver, 10),
    "ensembles": (ensembles, 90),
    "flagship": (flagship, 60),
    "linear": (linear, 60),
}
PARTS = (("device", "nan", "steps"), ("solver", "ensembles"), ("flagship", "linear"))
ENDS = (100.0, 200.0, 320.0)  # seconds from the start, by which the parts end


@dataclass
class Ended:
    """The end of a piece."""

    piece: str
    said: str
    seconds: float


class Kept:
    """The kept lines, rows and outcomes."""

    def __init__(self, folder: Path, name: str) -> None:
        self.rows: list[Row] = []
        self.outcomes: list[Ended] = []
        self.table = Appended(folder / f"{name}.csv")
        self.page, self._log = folder / f"{name}.md", folder / f"{name}.log"
        self._log.write_text("")

    def line(self, text: str) -> None:
        """Show a line and keep it; a row goes into the table."""
        if text.startswith(ROW):
            row = Row(**json.loads(text.removeprefix(ROW)))
            self.rows.append(row)
            self.table.add(row)
            text = f"{row.case}, {row.variant}: {'' if row.value is None else f'{row.value:.4g} '}{row.unit}"
        say(text)
        with self._log.open("a") as file:
            file.write(text + "\n")

    def write(self) -> None:
        """The page, as far as things are."""
        lines = ["# Minutes with a GPU", "", "| piece | how it ended | s |", "|---|---|---|"]
        lines += [f"| {one.piece} | {one.said} | {one.seconds:.0f} |" for one in self.outcomes]
        lines += ["", "| target | case | found | wanted |", "|---|---|---|---|"]
        for row in judge(self.rows, GPU):
            found = "" if row.value is None else f"{row.value:.3g}"
            lines.append(f"| {row.case} | {row.variant} | {found} | {row.unit} |")
        self.page.write_text("\n".join(lines) + "\n")


def run_piece(name: str, words: list[str], limit: float, report: Kept) -> Ended:
    """Run a piece's process to its end or its limit; its lines are kept as they come."""
    report.line(f"--- {name}, at most {limit:.0f} s")
    start = time.monotonic()
    late, last, pipe = threading.Event(), "", subprocess.PIPE
    with subprocess.Popen(
        words, stdout=pipe, stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True
    ) as process:
        timer = threading.Timer(limit, lambda: (late.set(), kill(process)))
        timer.start()
        assert process.stdout is not None
        for text in process.stdout:
            last = text.rstrip() or last
            report.line(text.rstrip())
        code = process.wait()
        timer.cancel()
    said = "done" if code == 0 else f"failed with exit code {code}: {last}".replace("|", "/")
    outcome = Ended(name, f"stopped after {limit:.0f} s" if late.is_set() else said, time.monotonic() - start)
    report.outcomes.append(outcome)
    report.write()
    return outcome


def kill(process: Any) -> None:
    """End a piece and what it started."""
    system.kill_group(process)


def need_gpu() -> None:
    """End this piece where there is no GPU."""
    import torch

    if not torch.cuda.is_available():
        raise SystemExit("it needs a CUDA device, and there is none here")


def give(row: Row) -> None:
    """Hand a row to the process that keeps them."""
    say(ROW + json.dumps(asdict(row)))


def version(package: str) -> str:
    """The version of an installed package."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        return installed(package)
    except PackageNotFoundError:
        return "missing"


def say(text: str) -> None:
    """Write a line now."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def device_name() -> str:
    """The device's name, asked in a process of its own."""
    program = "import torch; print(torch.cuda.get_device_name() if torch.cuda.is_available() else 'no gpu')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    return slug(done.stdout.strip() or "unknown")


def run_parts(output: Path, parts: int = len(PARTS)) -> int:
    """Run the first parts in their order; returns 0 even where something fails, because the page says so."""
    begin, report = time.monotonic(), Kept(output, device_name())
    for names, end in list(zip(PARTS, ENDS, strict=True))[:parts]:
        for name in names:
            limit = min(PIECES[name][1], begin + end - time.monotonic())
            if limit < 1:
                report.outcomes.append(Ended(name, "not begun: the time was over", 0.0))
                continue
            run_piece(name, [sys.executable, "-m", __spec__.name, name], limit, report)
    report.write()
    report.line(f"wrote {report.table.path} and {report.page}")
    report.line(
        "next: pytest -m gpu -n 8, then `orthobench reproduce` of rows that a CPU cannot fill (`orthobench plan`)"
    )
    return 0


if __name__ == "__main__":
    PIECES[sys.argv[1]][0]()
