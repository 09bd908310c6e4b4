"""Growth of time and memory with the sizes of the work: T, n, B, the runs of a sweep and the records.

An exponent is the slope of the logarithm of a cost over that of its size, by least squares over the three largest
sizes: 1 is cost in proportion. A fixed part of the cost makes an exponent smaller, never larger.
"""

import json
import math
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from orthobench.bench.scans import WIDTH, make_cell, saved_bytes, work
from orthobench.bench.timing import Bench, Row

CELLS = ("elman modrelu", "gru after modrelu", "lstm", "urnn_restricted")
START = {"T": 200, "n": 64, "B": 16}
FACTORS = (1, 2, 4, 8, 16)
RUNS = (10, 100, 1000, 10_000)
RECORDS = (10, 100, 1000, 10_000, 100_000)
TINY = ("model=rnn", "task=recall", "recipe=none", "T=5", "task.val_size=1", "task.test_size=1", "logger=none")
TABLE = "fair/copying"


def measure(bench: Bench) -> Iterator[Row]:
    """All rows of this file."""
    for name in CELLS:
        for key in START:
            yield from _of_a_step(bench, name, key)
    yield from _costs("runs", "settings of a sweep", RUNS[: 3 if bench.quick else None], _settings)
    with tempfile.TemporaryDirectory(prefix="orthobench-") as folder:
        root = Path(folder)
        record = _one_record(root / "first")
        sizes = RECORDS[: 3 if bench.quick else None]
        yield from _costs("records", "records()", sizes, lambda count: _records(_folder(root, record, count)))
        yield from _costs("records", "records() again", sizes, lambda count: _again(_folder(root, record, count)))
        yield from _costs("records", "compare FOLDER", sizes[:4], lambda count: _compare(_folder(root, record, count)))
        yield from _costs("records", "the records of a table", sizes, lambda count: _lines(root, record, count))


def _of_a_step(bench: Bench, name: str, key: str) -> Iterator[Row]:
    """Exponents of the time and the memory of forward and backward in one size."""
    sizes, works, kept = [START[key] * factor for factor in FACTORS[: 3 if bench.quick else None]], {}, []
    for value in sizes:
        size = START | {key: value}
        cell = make_cell(name, size["n"], bench.device)
        x = torch.randn(size["B"], size["T"], WIDTH, device=bench.device)
        works[f"{key}={value}"] = work(cell, x, "auto")
        kept.append(float(saved_bytes(cell, x, "auto")))
    rows = bench.compare("growth", f"{name}, {key}", works)
    yield from rows
    seconds = [row.cpu_ms or math.nan for row in rows]
    fixed = " ".join(f"{other}={value}" for other, value in START.items() if other != key)
    yield _exponent(f"time in {key}", f"{name}, {fixed}", sizes, seconds)
    yield _exponent(f"memory in {key}", f"{name}, {fixed}", sizes, kept)


def _costs(what: str, case: str, sizes: tuple[int, ...], work: Callable[[int], Callable[[], object]]) -> Iterator[Row]:
    """The processor's seconds of some work at each size, the least of three, and the exponent of the growth."""
    seconds = []
    for size in sizes:
        run = work(size)
        seconds.append(min(_timed(run) for _ in range(3)))
        yield Row("growth", f"{case}", f"{size:,} {what}", cpu_ms=1000 * seconds[-1], rounds=3)
    yield _exponent(f"time in {what}", case, sizes, seconds)


def _timed(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def _exponent(what: str, case: str, sizes: Any, costs: list[float]) -> Row:
    last = [math.log(value) for value in sizes[-3:]], [math.log(cost) for cost in costs[-3:]]
    slope = statistics.linear_regression(*last).slope
    return Row("exponent", what, case, value=slope, unit=f"exponent, from {sizes[-3:][0]:,} to {sizes[-1]:,}")


def _settings(count: int) -> Callable[[], object]:
    """Checking all runs of a sweep over seeds."""
    from orthobench.study.catalogue import Catalogue
    from orthobench.study.sweep import plan

    catalogue = Catalogue()
    words = catalogue.parse(["model=scornn", "task=copying", "T=200", f"seed=range(1,{count + 1})"])
    return lambda: plan(words, catalogue)


def _one_record(root: Path) -> dict[str, Any]:
    """The record of a run of one step."""
    from orthobench.run.run import Run
    from orthobench.study.catalogue import Catalogue

    words = [*TINY, "trainer.max_steps=1", f"runs_root={root}", "fork=false"]
    return Run.fitted(Catalogue().settings(words)).run()


def _folder(root: Path, record: dict[str, Any], count: int) -> Path:
    """A folder of runs with so many records, which differ in their seeds and in all that comes of them."""
    from orthobench.recording.digest import seal

    folder, draw = root / f"{count}", random.Random(count)
    if folder.is_dir():
        return folder
    folder.mkdir()
    for seed in range(1, count + 1):
        came = {key: value if key == "config" else _another(value, draw) for key, value in record.items()}
        own = {**came, "run_id": f"run-{seed}", "seed": seed, "config": {**record["config"], "seed": seed}}
        del own["identity"]
        (folder / f"run-{seed}").mkdir()
        (folder / f"run-{seed}" / "record.json").write_text(json.dumps(seal(own), indent=2) + "\n")
    return folder


def _another(value: Any, draw: random.Random) -> Any:
    """A part of a record with other digests, and other numbers where they have decimals."""
    if isinstance(value, dict):
        return {key: _another(part, draw) for key, part in value.items()}
    if isinstance(value, list):
        return [_another(part, draw) for part in value]
    if isinstance(value, float):
        return value + draw.random()
    return f"{draw.getrandbits(256):064x}" if isinstance(value, str) and len(value) == 64 else value


def _records(folder: Path) -> Callable[[], object]:
    """Reading all records, nothing of which is kept."""
    from orthobench.recording import kept_rows, store

    def read() -> object:
        (folder / kept_rows.NAME).unlink(missing_ok=True)
        return store.frame(folder)

    return read


def _again(folder: Path) -> Callable[[], object]:
    """Looking whether any record has changed since all were read."""
    from orthobench.recording import kept_rows, store

    settled, kept_rows.SETTLED_S = kept_rows.SETTLED_S, -60.0  # nobody else writes there
    try:
        store.frame(folder)
    finally:
        kept_rows.SETTLED_S = settled
    return lambda: store.frame(folder)


def _compare(folder: Path) -> Callable[[], object]:
    from orthobench.report import own
    from orthobench.study.records import own_runs
    from orthobench.study.verdicts import own_tables

    return lambda: [own.section(table) for table in own_tables.tables(own_runs.read([folder]).finished)]


def _lines(root: Path, record: dict[str, Any], count: int) -> Callable[[], object]:
    """Reading the file of a table's records, and choosing those that fill it."""
    from orthobench.study.catalogue import Catalogue
    from orthobench.study.records import records
    from orthobench.study.records.recorded import recorded
    from orthobench.study.records.records import Line, line
    from orthobench.study.tables.composed import ComposedTable

    table = Catalogue().table(TABLE)
    first, row = line(record, "full", "", {}, 1).values, table.trained()[0]
    lines = [Line({**first, "run_id": f"run-{seed}", "seed": seed, "cell": row}) for seed in range(1, count + 1)]
    results = root / f"results-{count}"
    records.write(results, table.name, lines)

    def read() -> object:
        records._kept.cache_clear()  # a file that has not changed is not read again
        return recorded(ComposedTable(table), results)

    return read
