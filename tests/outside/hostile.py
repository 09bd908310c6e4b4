"""Files of somebody else's that have been damaged, or were written to do damage."""

import io
import json
import math
import shutil
import struct
import tarfile
import warnings
import zipfile
from copy import deepcopy
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import torch
import yaml
from hypothesis import strategies as st

from orthobench.common.terminal import visible
from orthobench.datasets import sequences
from orthobench.errors import StorageError
from orthobench.recording.checkpoint import SafeCheckpointIO, load_run
from orthobench.recording.digest import seal
from orthobench.study.catalogue import SHIPPED, Catalogue
from orthobench.study.records import curves, records
from tests.outside import Draw, Refused, call, kind

WORDS = ("model=rnn", "task=copying", "T=5", "recipe=none", "model.hidden_size=4", "trainer.max_steps=2",
         "task.val_size=2", "task.test_size=2")  # fmt: skip
ODD = (None, True, -1, 0, 1.5, 1e308, 10**30, "", "x", "../../x", "/etc/passwd", "a\nb", "${x}", "${seed}", [], [[]],
       {}, {"x": 1}, [1, 2], "\x1b[2J", "~", "null", math.inf, math.nan, "9" * 5000)  # fmt: skip
MODEL = {"cell": "elman", "recurrent": "free", "activation": "tanh", "hidden_size": 4}
RECIPE = {"optimizer": {"name": "adam", "lr": 0.1}, "trainer": {"max_steps": 3}, "T": 9, "deviations": ["a"]}
TABLE = {
    "track": "published", "seeds": [1, 2], "margin": {"test/loss": 0.1}, "common": ["task=copying", "T=9"],
    "cells": {"a": ["model=lstm"], "b": ["model=rnn", "optimizer.lr=0.1"]}, "grid": {"x": {"1": ["seq=1"], "2": []}},
    "rates": ["1e-3", "3e-3"], "unstated": ["rate"], "deviations": ["x"], "title": "A", "held_out": True,
    "figures": [{"title": "F", "curve": ["val/loss"], "cells": ["a"]}],
    "presets": {"smoke": {"seeds": 1, "overrides": ["trainer.max_steps=2"]}},
}  # fmt: skip
HEADER = "{{'descr': {}, 'fortran_order': {}, 'shape': {}, }}"


def changed(draw: Draw, value: Any) -> Any:
    """A tree of values with an odd one, a missing one or one twice at a place or two."""
    value = deepcopy(value)
    for _ in range(draw.one(0, 1, 1, 2)):
        value = _changed(draw, value)
    return value


def _changed(draw: Draw, value: Any) -> Any:
    deeper = isinstance(value, dict | list) and value and draw.one(True, True, True, False)
    if not deeper:
        return draw.one(*ODD)
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    place, how = draw.one(*keys), draw.one("in", "in", "in", "out", "name")
    copy = value.copy()
    if how == "in":
        copy[place] = _changed(draw, copy[place])
    elif how == "out":
        copy.pop(place)
    elif isinstance(copy, dict):
        copy[draw.one("x", "path", "_target_", "hydra", "")] = copy.pop(place)
    else:
        copy.append(copy[place])
    return copy


def damaged(draw: Draw, content: bytes) -> bytes:
    """Bytes of which some are others, missing, or more."""
    at = draw(st.integers(0, max(len(content) - 1, 0)))
    how = draw.one("same", "same", "flip", "cut", "insert", "zeros")
    more = draw(st.binary(max_size=8)) if how == "insert" else bytes(1000)
    middle = {"flip": bytes(b ^ 1 << draw(st.integers(0, 7)) for b in content[at : at + 1]), "insert": more}
    if how == "same":
        return content
    if how == "cut":
        return content[:at]
    return content[:at] + middle.get(how, more) + content[at + (how == "flip") :]


@cache
def finished() -> Path:
    """A finished run, which is made once."""
    root = Path(mkdtemp(prefix="outside-finished-"))
    call(*WORDS, f"runs_root={root}")
    (path,) = root.glob("*/record.json")
    return path.parent


def _yaml(draw: Draw, path: Path, content: Any, head: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(damaged(draw, (head + yaml.safe_dump(content)).encode()))


@kind
def hostile_yaml(draw: Draw, folder: Path) -> None:
    """Files of a configuration folder give settings, or are refused."""
    model, recipe = changed(draw, MODEL), changed(draw, RECIPE)
    if isinstance(model, dict) and draw.sometimes(False, True):
        model["defaults"] = draw.one(
            [], ["own"], ["/model/lstm"], "own", [{"a": "b"}], ["../x"], [None], ["/model/lstm@x"]
        )
    _yaml(draw, folder / "conf/model/own.yaml", model)
    _yaml(draw, folder / "conf/recipe/own.yaml", recipe, "# @package _global_\n")
    Catalogue((folder / "conf",)).settings(["model=own", "task=copying", f"recipe={draw.one('none', 'own')}"])


@kind
def hostile_tables(draw: Draw, folder: Path) -> None:
    """A table has runs, or is refused."""
    _yaml(draw, folder / "conf/experiment/x/t.yaml", changed(draw, TABLE))
    table = Catalogue((folder / "conf",)).table("x/t")
    assert all(job.overrides for job in table.runs())
    assert table.title is not None
    assert isinstance(table.notes, tuple)


@kind
def hostile_journals(draw: Draw, folder: Path) -> None:
    """A journal of a tuning is gone on with, or is refused."""
    from orthobench.study.tune import search, tuned
    from tests.hostile.test_journal import ENDED, START, TRIED, named

    own = search.Search((*WORDS, f"runs_root={folder}"), (_range(),), SHIPPED)
    own.folder.mkdir()
    first = {"op_code": 0, "worker_id": "w", "study_name": own.folder.name, "directions": [1]}
    lines = [first, START, TRIED | {"param_value_internal": 0.01}, named("copying-rnn-0"), ENDED | {"values": [1.0]}]
    chosen = draw.one(*range(len(lines)))
    lines[chosen] = changed(draw, lines[chosen])
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (own.folder / "journal.log").write_bytes(damaged(draw, text.encode()))
    study = search.open_study(own)
    tuned.refuse_changed(own, study)
    assert sum(tuned.counts(study).values()) == len(study.trials)
    best = tuned.best(study)
    assert best is None or isinstance(best.user_attrs["run_id"], str)


def _range() -> Any:
    from orthobench.config.ranges import parse

    return parse("optimizer.lr=float(0.001,0.1)")


def _tensor(draw: Draw, value: torch.Tensor) -> torch.Tensor:
    how = draw.one(
        "sparse", "meta", "quantized", "expanded", "nan", "shape", "double", "int", "bits", "empty", "scalar"
    )
    plain = value.detach().float()
    made = {
        "sparse": lambda: plain.to_sparse(), "meta": lambda: plain.to("meta"), "nan": lambda: plain * math.nan,
        "quantized": lambda: torch.quantize_per_tensor(plain, 0.1, 0, torch.qint8), "double": plain.double,
        "expanded": lambda: torch.zeros(()).expand(10**12), "shape": lambda: torch.zeros(3, 5), "int": plain.long,
        "bits": lambda: plain.to(torch.float8_e4m3fn), "empty": lambda: torch.zeros(0),
        "scalar": lambda: torch.ones(()),
    }  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of kinds of tensors
        return made[how]()


@kind
def hostile_checkpoints(draw: Draw, folder: Path) -> None:
    """A run goes on from a checkpoint, or begins anew, or the checkpoint is refused."""
    shutil.copytree(finished(), folder / "runs" / finished().name)
    home = folder / "runs" / finished().name
    (home / "record.json").unlink()
    path = home / "checkpoints" / "last.ckpt"
    state = SafeCheckpointIO().load_checkpoint(path)
    if draw.one(True, False):
        places = [state["state_dict"], *state["optimizer_states"][0]["state"].values()]
        own = draw.one(*(n for n, place in enumerate(places) if place))
        name = draw.one(*places[own])
        if isinstance(places[own][name], torch.Tensor):
            places[own][name] = _tensor(draw, places[own][name])
    else:
        part = draw.one(*state)
        state[part] = changed(draw, state[part])
    file = io.BytesIO()
    torch.save(state, file)
    path.unlink()
    SafeCheckpointIO().save_checkpoint(state, path)
    path.write_bytes(damaged(draw, path.read_bytes())) if draw.sometimes(False, True) else None
    if draw.one(True, False):
        load_run(path)
    else:
        call(*WORDS, f"runs_root={folder / 'runs'}")


@kind
def hostile_npy(draw: Draw, folder: Path) -> None:
    """An array of an archive is read, or refused by its header."""
    with zipfile.ZipFile(folder / "my.npz", "w") as archive:
        for name, kinds in {"x": "<f4", "y": "<i8"}.items():
            dtype = draw.sometimes(
                repr(kinds), *map(repr, ("f1", "<f16", "O", "V8", "<U0", "U9", "b1", ">f8", "x")), "1", "[]"
            )
            shape = draw.sometimes(
                (4, 3, 2) if name == "x" else (4,), (1,) * 65, (10**12, 0), (-1,), (4.0,), (0,), (2**70, 0)
            )
            text = HEADER.format(
                dtype, draw.sometimes("False", "True", "1", "None"), draw.sometimes(repr(shape), "x", "((" * 90)
            )
            head = damaged(draw, text.encode() + b"\n")
            size = draw.sometimes(96 if name == "x" else 32, 0, 7)
            magic = draw.sometimes(b"\x93NUMPY\1\0", b"\x93NUMPY\2\0", b"")
            archive.writestr(f"{name}.npy", magic + struct.pack("<H", len(head)) + head + bytes(size))
    sequences.load(folder / "my.npz")


@kind
def hostile_archives(draw: Draw, folder: Path) -> None:
    """Finished runs in an archive are brought, or the archive is refused; nothing is written outside."""
    source, name = finished(), finished().name
    files = {f"{name}/{path.relative_to(source)}": path.read_bytes() for path in source.rglob("*") if path.is_file()}
    odd = draw.sometimes("", "../x", "/tmp/x", "C:\\x", f"{name}/../../x", "./" + name, "x\0x", "x" * 300, "a\nb")
    files |= {f"{odd}/record.json" if draw.one(True, False) else odd: b"x"} if odd else {}
    victim = draw.one(*files)
    files[victim] = damaged(draw, files[victim])
    path = folder / draw.one("a.zip", "a.tar", "a.tar.gz")
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            for one, content in files.items():
                archive.writestr(one, content)
    else:
        with tarfile.open(path, "w:gz" if path.suffix == ".gz" else "w") as archive:
            for one, content in files.items():
                info = tarfile.TarInfo(one)
                info.size, info.type = len(content), draw.sometimes(tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.FIFOTYPE)
                info.linkname = "/etc/passwd"
                archive.addfile(info, io.BytesIO(content) if info.isreg() else None)
    path.write_bytes(damaged(draw, path.read_bytes()))
    try:
        call("collect", str(path), f"runs_root={folder / 'here'}")
    except Refused as error:
        raise _last_line(error) from error
    finally:
        assert {one.name for one in folder.iterdir()} <= {path.name, "here"}
        assert {one.name for one in (folder / "here").iterdir()} <= {name}


def _last_line(error: Refused) -> Refused:
    """The last sentence of a refusal that may have one for each run that is left out, each in a line of its own."""
    *others, last = str(error).splitlines()
    assert all(": " in line and line.isprintable() for line in others), str(error)
    assert len(set(others)) == len(others) < 3, str(error)
    return Refused(last)


@kind
def hostile_records(draw: Draw, folder: Path) -> None:
    """A record, whole by its digest, is shown by every verb or refused, and its words command no shell."""
    home = folder / "runs" / finished().name
    shutil.copytree(finished(), home)
    record = changed(draw, json.loads((home / "record.json").read_text()))
    if isinstance(record, dict):
        text = json.dumps(seal(record) if draw.sometimes(True, False) else record)
    else:
        text = json.dumps(record)
    (home / "record.json").write_bytes(damaged(draw, text.encode()))
    if draw.sometimes(False, True):
        content = yaml.safe_load((home / "config.yaml").read_text())
        (home / "config.yaml").write_text(yaml.safe_dump(changed(draw, content)))
    verb = draw.one("compare", "best", "eval", "export", "collect", "run")
    if verb == "run":
        call(*WORDS, f"runs_root={folder / 'runs'}")
        return
    place = {"compare": folder / "runs", "best": folder / "runs", "collect": folder / "runs"}.get(verb, home)
    try:
        told = call(verb, str(place), *([f"runs_root={folder / 'here'}"] if verb == "collect" else []))
    except Refused as error:
        raise _last_line(error) from error
    assert verb != "best" or all(line.startswith(("# ", "orthobench ")) for line in told.splitlines())


LINE = {"run_id": "copying-rnn-0", "preset": "full", "cell": "a", "seed": "1", "status": "done", "steps": "2",
        "best_val:test/loss": "0.5", "crossed/loss": "1"}  # fmt: skip
POINT = dict(zip(curves.HEADERS, ("copying-rnn-0", "full", "a", "1", "val/loss", "2", "0.5"), strict=True))


@kind
def hostile_results(draw: Draw, folder: Path) -> None:
    """Records and curves of a table are read, or refused."""
    for read, path_of, line in ((records.read, records.path_of, LINE), (curves.read, curves.path_of, POINT)):
        cells = {name: draw.sometimes(value, *(str(odd) for odd in ODD)) for name, value in line.items()}
        text = ",".join(line) + "\n" + ",".join(cells.values()) + "\n"
        path = path_of(folder, "x/t")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(damaged(draw, text.encode()))
        try:
            assert len(read(folder, "x/t")) <= 2
        except StorageError as error:
            raise Refused(visible(str(error))) from error
