"""Write the pages of docs/reference that follow from the code: commands, settings, the Python API, the files of a run.

python scripts/reference.py             say which page is not up to date; exit code 1 if there is one
python scripts/reference.py --write     write them
"""

import argparse
import inspect
import json
import re
import sys
import types
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin
from unittest import mock

from orthobench.common import registry
from orthobench.common.schema import NAMES, CountOf, Field, OneOf, OptionalPositiveFloat, PositiveFloat, Range, fields
from orthobench.config.check import DATA, DIAGNOSTICS, LOGGERS, PROVIDED, ROOT, TASK_PROVIDED
from orthobench.config.stopping import STOPPING
from orthobench.config.trainer import TRAINER_REFUSED, TRAINER_TYPES
from orthobench.report.renewing import renew
from orthobench.verbs import VERBS
from orthobench.verbs.arguments import Parser

HOME = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(HOME))

from scripts.python_api import BLOCK, api, exit_codes, meanings, table  # noqa: E402

PAGES = HOME / "docs" / "reference"
CONFIG = HOME / "conf" / "config.yaml"
SCHEMA = PAGES / "record.schema.json"
START, END = "<!-- made by scripts/reference.py -->", "<!-- end -->"
COMMENT = re.compile(r"^(?P<indent> *)(?P<key>\w+):(?P<value>[^#\n]*)(?:#(?P<comment>.*))?$")
KINDS = {"network": "Networks", "cell": "Cells", "parametrization": "Recurrent matrices", "task": "Tasks"}
OF_RULES = {
    "optimizer.name": str,
    "optimizer.lr": PositiveFloat,
    "optimizer.lr_recurrent": OptionalPositiveFloat,
    "optimizer.recurrent": str | None,
    "schedule.name": str,
}
RULES = {"optimizer": "Optimizers", "schedule": "Schedules"}


def kind(annotation: Any) -> str:
    """Type of a setting in words, such as `a whole number >= 1, or null`."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        notes = [str(note) for note in arguments[1:] if isinstance(note, Range) and str(note)]
        if any(isinstance(note, CountOf) for note in arguments[1:]):
            return "a whole number, a share of n, or max"
        words = next((note.words() for note in arguments[1:] if isinstance(note, OneOf)), None)
        base, null, _ = kind(arguments[0]).partition(", or null")
        return "|".join(words) if words else " ".join([base, *notes]) + null
    if origin in (Union, types.UnionType):
        kinds = [kind(one) for one in arguments if one is not type(None)]
        return " or ".join(dict.fromkeys(kinds)) + (", or null" if type(None) in arguments else "")
    if origin is Literal:
        return "|".join(map(str, arguments))
    if origin in (list, tuple):
        return f"a list, each {kind(arguments[0])}"
    return NAMES.get(annotation, "any" if annotation is Any else getattr(annotation, "__name__", str(annotation)))


def default(field: Field) -> str:
    """Default of an argument as YAML writes it."""
    return "required" if field.required else json.dumps(field.default).strip('"')


def arguments(cls: type, left_out: Mapping[str, Field] | set[str]) -> str:
    """Table of the settings that a class has beside those left out; empty where there are none."""
    told = meanings(cls.__mro__)
    rows = [
        (f"`{name}`", kind(field.annotation), default(field), told.get(name, ""))
        for name, field in fields(cls).items()
        if name not in left_out
    ]
    return table(("key", "type", "default", "meaning"), rows) if rows else ""


def of_kind(what: str, hidden: set[str]) -> Iterator[str]:
    """Settings of every class of a kind: those that all have, then those of each."""
    home, base_name = registry.KINDS[what]
    base = getattr(import_module(home), base_name)
    shared = fields(base)
    if common := arguments(base, hidden):
        yield f"Every one has these:\n\n{common}"
    for name in registry.names(what):
        cls: Any = registry.find(what, name, what)
        changed = {key for key, field in fields(cls).items() if key in shared and field == shared[key]}
        first = inspect.cleandoc(cls.__doc__ or "").partition("\n")[0].strip()
        own = arguments(cls, hidden | changed)
        equations = "\n".join(BLOCK.findall(inspect.getdoc(sys.modules[cls.__module__]) or ""))
        shown = f"\n```text\n{inspect.cleandoc(equations)}\n```\n" if equations else ""
        yield f"**`{name}`**: {first}\n{shown}" + (f"\n{own}" if own else "")


def commented(file: str) -> Iterator[tuple[str, str, str]]:
    """Keys of a YAML file with their values and comments; a nested key has its parents before it."""
    above: list[str] = []
    for line in (HOME / "conf" / file).read_text(encoding="utf-8").splitlines():
        found = COMMENT.match(line)
        if found and not line.startswith(("defaults", "hydra")):
            above[len(found["indent"]) // 2 :] = [found["key"]]
            yield ".".join(above), found["value"].strip(), (found["comment"] or "").strip()
        elif line.startswith("hydra"):
            return


def settings() -> str:
    """Every key with type, default and meaning."""
    types_of = ROOT | OF_RULES
    for section, known in {"data": DATA, "stopping": STOPPING, "diagnostics": DIAGNOSTICS}.items():
        types_of |= {f"{section}.{key}": field.annotation for key, field in known.items()}
    told = dict(MEANINGS)
    defaults: dict[str, str] = {}
    for key, value, comment in commented("config.yaml"):
        told.setdefault(key, comment)
        defaults[key] = value
    for section, _, inside in re.findall(r"^(\w+): (\{)([^}]*)\}", CONFIG.read_text(encoding="utf-8"), flags=re.M):
        pairs = re.findall(r"(\w+): ([\w.-]+)", re.sub(r"#.*", "", inside))
        defaults |= {f"{section}.{key}": value for key, value in pairs}
    root = [
        (f"`{key}`", kind(of), defaults.get(key, "null"), told[key])
        for key, of in sorted(types_of.items(), key=lambda one: "." in one[0])
        if key != "deviations"
    ]
    parts = ["## Every run\n", table(("key", "type", "default", "meaning"), root)]
    trainer = {key: (value, comment) for key, value, comment in commented("trainer/default.yaml")}
    rows = [
        (f"`trainer.{key}`", kind(of), trainer.get(key, ("Lightning's",))[0], MEANINGS[f"trainer.{key}"])
        for key, of in TRAINER_TYPES.items()
    ]
    parts += ["## Training: `trainer.`\n", "Other arguments of Lightning's Trainer work too.\n"]
    parts += [table(("key", "type", "default", "meaning"), rows)]
    parts += ["These arguments are refused:\n"]
    parts += [table(("key", "instead"), [(f"`trainer.{key}`", why) for key, why in TRAINER_REFUSED.items()])]
    for what, title in RULES.items():
        parts += [f"## {title}: `{what}=`\n", *of_kind(what, set())]
    for what, title in KINDS.items():
        key = {"network": "model.network", "cell": "model.cell", "parametrization": "model.recurrent"}.get(what, what)
        parts += [f"## {title}: `{key}=`\n", *of_kind(what, TASK_PROVIDED if what == "task" else PROVIDED)]
    parts += ["## Loggers: `logger=`\n"]
    rows = [(f"`logger.{key}`", kind(of), name) for name, keys in LOGGERS.items() for key, of in keys.items()]
    parts += [table(("key", "type", "of logger="), rows)]
    for name in ("local", "slurm", "ray"):
        found = commented(f"hydra/launcher/{name}.yaml")
        rows = [(f"`hydra.launcher.{key}`", value, comment) for key, value, comment in found]
        parts += [f"## Launcher: `hydra/launcher={name}`\n", table(("key", "default", "meaning"), rows[1:])]
    return "\n".join(parts)


class _Captured(Exception):
    """Parser of a verb, caught before it reads anything."""


def parser(verb: str) -> argparse.ArgumentParser:
    """Parser that a verb reads its words with."""

    def capture(self: argparse.ArgumentParser, *_: Any) -> None:
        raise _Captured(self)

    with mock.patch.object(Parser, "parse_intermixed_args", capture):
        try:
            import_module(f"orthobench.verbs.{verb}").main([])
        except _Captured as caught:
            return caught.args[0]
    raise AssertionError(f"{verb} reads no words")


def commands() -> str:
    """Every verb with its usage and its options."""
    parts = []
    for name, verb in VERBS.items():
        found = parser(name)
        parts += [f"## `orthobench {name}`\n", f"{verb.does[:1].upper()}{verb.does[1:]}.\n"]
        parts += [f"```text\n{found.usage}\n```\n"]
        parts += [f"Example: `{verb.example}`\n"]
        rest = (found.description or "").strip()
        parts += [f"{rest}\n"] if rest and "\n" in rest else []
        rows = []
        for action in found._actions:
            if action.help != argparse.SUPPRESS and action.option_strings and action.dest != "help":
                value = f" {action.metavar or action.dest.upper()}" if action.nargs != 0 else ""
                rows.append((", ".join(f"`{word}{value}`" for word in action.option_strings), action.help or ""))
        parts += [table(("option", "meaning"), rows)] if rows else []
    return "\n".join(parts)


def schema_rows(schema: dict[str, Any], above: str = "") -> Iterator[tuple[str, str, str]]:
    """Fields of a JSON Schema, those of objects below their own."""
    for key, field in schema.get("properties", {}).items():
        of = field.get("type", "")
        yield f"`{above}{key}`", " or ".join(of) if isinstance(of, list) else of, field.get("description", "")
        yield from schema_rows(field, f"{above}{key}.")
        yield from schema_rows(field.get("items", {}), f"{above}{key}[].")


def texts() -> dict[Path, str]:
    """Text that each page should have."""
    record = table(("field", "type", "meaning"), schema_rows(json.loads(SCHEMA.read_text(encoding="utf-8"))))
    made = {"cli.md": commands(), "exit-codes.md": exit_codes(), "configuration.md": settings(), "python.md": api()}
    found = {}
    for name, block in {**made, "run-folder.md": record}.items():
        text = (PAGES / name).read_text(encoding="utf-8")
        before, _, rest = text.partition(START)
        found[PAGES / name] = f"{before}{START}\n\n{block.rstrip()}\n\n{END}{rest.partition(END)[2]}"
    return found


MEANINGS = {  # of keys that have no comment of their own in conf/
    "engine": "what computes the recurrence; see [engines](../explanation/engines.md)",
    "data.verify": "check published data files against their digests",
    "optimizer.name": "set by `optimizer=`",
    "optimizer.lr": "learning rate",
    "optimizer.lr_recurrent": "learning rate of the constrained parameters; null: `optimizer.lr`",
    "optimizer.recurrent": "optimizer of the constrained parameters, with its defaults; null: the same one",
    "schedule.name": "set by `schedule=`",
    "stopping.patience": "validations without gain that end the training",
    "stopping.threshold": "level of the metric that ends the training",
    "stopping.metric": "validation metric; null: the one that chooses the best weights",
    "stopping.hold": "validations in a row at the threshold; null: one",
    "stopping.extra_steps": "steps of training after the threshold; null: none",
    "stopping.flat_metric": "metric that patience watches; null: `stopping.metric`",
    "trainer.accelerator": "the device; `auto` takes a GPU if there is one",
    "trainer.max_steps": "optimizer steps at most; -1 for no limit",
    "trainer.max_epochs": "epochs at most",
    "trainer.min_steps": "steps before early stopping or `max_time` may end the training",
    "trainer.min_epochs": "epochs before early stopping or `max_time` may end the training",
    "trainer.val_check_interval": "time between validations: a share of an epoch, or a whole number of steps",
    "trainer.accumulate_grad_batches": "batches over which one step takes the mean of the gradients",
    "trainer.gradient_clip_val": "bound at which gradients are clipped",
    "trainer.gradient_clip_algorithm": "clip by the norm of all gradients, or each value",
    "trainer.log_every_n_steps": "steps between two logged training losses",
    "trainer.check_val_every_n_epoch": "epochs between validations",
    "trainer.limit_train_batches": "training batches of an epoch: a number or a share",
    "trainer.limit_val_batches": "validation batches: a number or a share",
    "trainer.limit_test_batches": "test batches: a number or a share",
    "trainer.precision": "type of the arithmetic; recurrent matrices stay in float32 or float64",
    "trainer.max_time": "time limit, days:hours:minutes:seconds",
    "trainer.profiler": "Lightning's profiler, which writes `fit-profile.txt` and others to the run's folder",
}


def main(words: list[str]) -> int:
    """Check or write the pages; return 1 if one is not up to date and is not written."""
    return renew(texts(), words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
