"""The papers' numbers and comparative claims, as results/published/<paper>.yaml holds them; each is typed there once.

A paper is such a file, here or as `published/<paper>.yaml` in a folder of `--config-dir`, with its tables in
`experiment/<paper>/` and its BibTeX entry in `<paper>.bib` beside it.

A row of the file is one number (`value`) or one claim in prose (`claim` with a `test`). `kind` says how it is compared:

    result   a score of a trained network: judged by `status.judge`
    exact    a number that nothing random touches: equal up to its `rounding`; a parameter count needs no run
    bound    a limit on what is measured: `side: lower` or `upper`
    claim    a sentence: a test over the seeds, of one of the kinds in `claim_rule`
"""

from collections.abc import Iterable
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from orthobench.common.schema import refuse_unknown
from orthobench.config.files import Files, yaml_files
from orthobench.config.yaml_file import LOADER, read_yaml
from orthobench.errors import ConfigError
from orthobench.study.tables import claim_rule, metrics
from orthobench.study.tables.claim_rule import VERBS
from orthobench.study.tables.table import Table
from orthobench.tasks.metric import Direction, Metric

KINDS = ("result", "exact", "bound", "claim")
SELECTS = ("best_val", "last", "best_test", "none")
MARGINED = ("not_worse", "not_better")  # claims whose margin is the table's where they give none
DERIVED = ("max_T", "first_diverged_T", "first_failed_depth")  # numbers that several rows decide


@dataclass(frozen=True)
class Published:
    """Published number or claim.

    Attributes:
        table: `table1`, `figure2`, ...
        label: what the row is called that it is printed in; `row:` in the file.
        column: what its column is called.
        metric: the name in our records; `name@step`, `name@first|last|min|max` is read off a run's curve.
        section: where it stands in the paper.
        seeds: runs behind the number.
        select: weights that were scored: `best_val`, `last`, `best_test`, or `none` where that has no meaning.
        rows: rows of the table's experiment that it is compared with; `cells:` or `cell:` in the file.
        value: the number; None when it is lost, with a `reason`.
        sd: standard deviation over the seeds, where printed.
        unit: `percent` where our records hold a share.
        decimals: with how many the value was printed: those of its text in the file.
        scale: `log10` where only the order of magnitude counts.
        rounding: how far an exact number may be off, for what was printed as approximate.
        printed: the value as it was printed, where that is no plain number, such as `~64k`.
        excludes: what a count leaves out.
        side: of a bound, `lower` or `upper`.
        level: score that counts as success, for numbers such as the greatest length that is learnt.
        claim: the sentence.
        test: how the claim is tested, see `claim_rule`.
        reason: why there is no value.
        note: a misprint, a contradiction, or how a vague word was read.
        measured: what the metric is, by the tasks of the rows; None until `load_table` has looked it up.
    """

    paper: str
    table: str
    label: str
    column: str
    metric: str
    section: str
    seeds: int
    select: str
    kind: str
    rows: tuple[str, ...] = ()
    value: float | None = None
    sd: float | None = None
    unit: str | None = None
    scale: str | None = None
    rounding: float = 0
    printed: str | None = None
    excludes: float = 0
    side: str | None = None
    level: float | None = None
    claim: str | None = None
    test: dict[str, Any] = field(default_factory=dict)
    reason: str | None = None
    note: str | None = None
    decimals: int | None = None
    measured: Metric | None = None

    @property
    def counts(self) -> str | None:
        """Parameters that it counts, `total` or `recurrent`; None where it is no count of parameters."""
        head, _, name = self.metric.partition("/")
        return name if self.kind == "exact" and head == "parameters" else None

    @property
    def lost(self) -> bool:
        """Return True if it is a number that the paper's text has lost, see `reason`, so that nothing can
        be compared.
        """
        return self.claim is None and self.value is None

    def rows_of(self, names: Iterable[str]) -> list[str]:
        """The rows that it is about; of a claim over data sets those of each of its models, by their names."""
        if self.claim is None or self.verb != "wilcoxon":
            return list(self.rows)
        return [name for name in names if name.startswith(tuple(f"{model}_" for model in self.rows))]

    @property
    def verb(self) -> str:
        """Verb of a claim, see `claim_rule`."""
        return claim_rule.verb_of(self.test)

    @property
    def claim_kind(self) -> str:
        """Kind of a claim: `order`, `ratio`, `level`, `time`, `equality` or `spread`; or `untested`."""
        return VERBS[self.verb].kind

    @property
    def direction(self) -> Direction:
        """Direction in which a value of the metric is better."""
        assert self.measured is not None, "load_table looks it up"
        return self.measured.direction


def published_dir() -> Path:
    """The published numbers: the checkout's results/published when there is one, else the copy inside the package."""
    package = Path(__file__).resolve().parents[2]
    checkout = package.parent / "results" / "published"
    return checkout if checkout.is_dir() else package / "published"


def published_dirs(files: Files) -> list[Path]:
    """Ours, then `published/` in each folder of `--config-dir`."""
    return [published_dir(), *(Path(folder) / "published" for folder in files.folders)]


def papers(files: Files) -> tuple[str, ...]:
    """Names of all papers, ours and those in the folders of `--config-dir`, in alphabetical order."""
    return tuple(sorted(_files(files)))


def _files(files: Files) -> dict[str, Path]:
    """The file of every paper.

    Raises:
        ConfigError: two folders have a paper of one name.
    """
    found: dict[str, Path] = {}
    places = dict.fromkeys(published_dirs(files))
    for path in (path for place in places for path in yaml_files(place) if path.parent == place):
        if path.stem in found:
            raise ConfigError(f"{path} and {found[path.stem]} are two papers of one name; rename one of them.")
        found[path.stem] = path
    return found


def load(paper: str, files: Files) -> list[Published]:
    """Every row of a paper, in its order.

    Raises:
        ConfigError: there is no such paper, or its file breaks the schema.
    """
    known = _files(files)
    refuse_unknown([paper], known, "", " is not one of the papers")
    return list(_read(known[paper]))


class Printed(float):
    """A number of the file with the text that it was written as; 100.0 and 100.00 are printed differently."""

    text: str

    @property
    def decimals(self) -> int:
        """Digits behind the point, fewer by the power of ten: 2 of 0.25, 5 of 2.5e-4, -2 of 12e2."""
        digits, _, power = self.text.lower().replace("_", "").partition("e")
        return len(digits.partition(".")[2]) - int(power or 0)


class _Loader(LOADER):
    """YAML whose numbers with a point keep their text."""


def _number(loader: Any, node: yaml.ScalarNode) -> Printed:
    number = Printed(loader.construct_yaml_float(node))
    number.text = node.value
    return number


_Loader.add_constructor("tag:yaml.org,2002:float", _number)


@cache
def _read(path: Path) -> tuple[Published, ...]:
    content = read_yaml(path, _Loader)
    rows = content.get("rows") if isinstance(content, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ConfigError(f"{path} needs `rows:`, a list of mappings, one for each published number or claim.")
    return tuple(_row(path.stem, row, f"{path.name}, row {number}") for number, row in enumerate(rows, start=1))


def load_table(table: Table) -> list[Published]:
    """The numbers and claims of a table; none where its name does not begin with that of a paper.

    Raises:
        ConfigError: a metric that the tasks of its rows do not declare, or a claim that a metric cannot decide.
    """
    metrics.check(table)
    if table.paper not in papers(table.files):
        return []
    word = table.name.split("/")[1]
    return [_measured(row, table) for row in load(table.paper, table.files) if row.table == word]


def _measured(row: Published, table: Table) -> Published:
    """The row with what its metric is."""
    rows = row.rows_of(table.rows)
    over_sets = _over_data_sets(row)
    known = [name for name in row.rows if any(one.startswith(f"{name}_") for one in rows)] if over_sets else table.rows
    unknown = [name for name in row.rows if name not in known]
    if unknown:
        raise ConfigError(
            f"{table.name} ({row.label}, {row.column}): it has no cell {', '.join(unknown)}; name a cell of the table."
        )
    if over_sets:
        _refuse_two_of_one(row, table, rows)
    measured = metrics.metric_of(row.metric, table, rows)
    if row.kind == "claim":
        name = claim_rule.column(row.metric, row.test, measured.direction)
        row, measured = replace(row, metric=name), metrics.metric_of(name, table, rows)
    problem = _missing(row, table, measured)
    if problem:
        raise ConfigError(f"{table.name} ({row.label}, {row.column}): {problem}; correct that row of the file.")
    if row.kind == "claim" and row.verb in MARGINED:
        row = replace(row, test={**row.test, "margin": row.test.get("margin", margin_of(row, table))})
    return replace(row, measured=measured)


def _refuse_two_of_one(row: Published, table: Table, names: list[str]) -> None:
    """Refuse a model of which two rows have one data set, as where another model's name begins with its own."""
    for model in row.rows:
        seen: dict[str, str] = {}
        for name in (name for name in names if name.startswith(f"{model}_")):
            task = repr(sorted(word for word in table.chosen(name).items() if word[0].split(".")[0] == "task"))
            if (other := seen.setdefault(task, name)) != name:
                raise ConfigError(
                    f"{table.name} ({row.label}, {row.column}): {other} and {name} are both of {model}_ and of one "
                    "data set; rename one of the models."
                )


def margin_of(row: Published, table: Table) -> float | None:
    """The margin of a number: that of its metric, or of the first part of its name; None where there is none."""
    return table.margin.get(row.metric.partition("@")[0], table.margin.get(row.metric.partition("/")[0]))


def _missing(row: Published, table: Table, measured: Metric) -> str | None:
    """Facts that a row needs to be judged and the files do not say, or None."""
    if row.kind != "claim" and row.metric.startswith("bench/"):
        return (
            f"{row.metric} is of steps that are measured for claims; a number is compared with the runs' own, time/..."
        )
    if row.metric in DERIVED:
        unsized = [name for name in row.rows if not name.rpartition("_")[2].isdigit()]
        if unsized:
            return f"{row.metric} is read off rows whose names end in a size, as in lstm_500; {unsized[0]} does not"
        if row.level is None and row.metric != "first_diverged_T":
            return f"{row.metric} needs `level:`, the score that counts as success"
        return None
    if row.kind == "claim" and row.verb in claim_rule.DIRECTED and measured.direction == "neither":
        return f"test {row.verb} does not apply to {row.metric}, of which neither side is better; use greater or less"
    if row.scale and not (measured.bounds[0] is not None and measured.bounds[0] >= 0):
        return f"scale=log10 does not apply to {row.metric}, which may be below zero"
    margin, (low, high) = margin_of(row, table), measured.bounds
    if margin is not None and low is not None and high is not None and margin >= high - low:
        return f"margin {margin:g} of {row.metric} is not below its range, {low:g} to {high:g}: write it in that unit"
    needed = row.value is not None if row.kind == "result" else row.kind == "claim" and row.verb in MARGINED
    if needed and row.test.get("margin", margin) is None:
        return f"the table has no margin for {row.metric.partition('@')[0]}"
    return None


def _over_data_sets(row: Published) -> bool:
    return row.kind == "claim" and row.verb == "wilcoxon"


def _row(paper: str, given: dict[str, Any], place: str) -> Published:
    names = {"row": "label", "cells": "rows"}  # keys of the file that are called otherwise here
    known = {f.name for f in fields(Published)} - {"paper", "measured", "decimals", *names.values()} | {"cell", *names}
    refuse_unknown(given, known, f"{place}: ", " is not a key of a published row")
    values = dict(given)
    if "cell" in values:
        values["cells"] = [values.pop("cell")]
    if values.get("kind") == "claim":
        values["cells"] = claim_rule.claimed_rows(values.get("test") or {})
    values["cells"] = tuple(values.get("cells", ()))
    value = values.get("value")
    values["decimals"] = value.decimals if isinstance(value, Printed) else None if value is None else 0
    values = {names.get(key, key): value for key, value in values.items()}
    optional = {f.name for f in fields(Published) if f.default is not MISSING or f.default_factory is not MISSING}
    required = [f.name for f in fields(Published) if f.name not in optional | {"paper"}]
    missing = ["row" if key == "label" else key for key in required if values.get(key) is None]
    if missing:
        raise ConfigError(f"{place}: {', '.join(missing)} is missing: add it.")
    row = Published(paper=paper, **values)
    problem = _problem(row, "value" in given)
    if problem:
        raise ConfigError(f"{place} ({row.table}, {row.label}, {row.column}): {problem}; correct that row of the file.")
    return row


def _problem(row: Published, has_value: bool) -> str | None:
    """Violation of the schema, or None."""
    if row.kind not in KINDS:
        return f"kind={row.kind} is not one of {', '.join(KINDS)}"
    if row.unit not in (None, "percent") or row.scale not in (None, "log10"):
        return f"unit={row.unit}, scale={row.scale}: a unit is percent and a scale log10, or left out"
    if row.select not in SELECTS:
        return f"select={row.select} is not one of {', '.join(SELECTS)}"
    if not row.rows:
        return "it names no cell"
    if row.kind == "claim":
        if has_value or not row.claim or not row.test:
            return "a claim has a claim and a test, and no value"
        return claim_rule.problem(row.test)
    if not has_value or row.claim or row.test:
        return "a number has a value and neither claim nor test"
    if row.value is None and not row.reason:
        return "a value of null needs a reason"
    if (row.side in ("lower", "upper")) != (row.kind == "bound"):
        return "a bound, and nothing else, has a side, lower or upper"
    return None
