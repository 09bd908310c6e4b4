"""A finished run's network as a folder to share: weights in safetensors, checked settings, and a model card."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
import yaml
from torch import Tensor

from orthobench.common.packages import install
from orthobench.common.version import __version__
from orthobench.config import recorded
from orthobench.errors import ConfigError, StorageError
from orthobench.recording.digest import read_sealed, write_sealed
from orthobench.recording.files import write_bytes
from orthobench.recording.shape import is_record
from orthobench.recording.sources import refuse_changed
from orthobench.run.learner import Learner
from orthobench.run.load import Finished, Which
from orthobench.run.recorded_data import own_files, root_of

WEIGHTS, CONFIG, CARD = "model.safetensors", "config.json", "README.md"
HEADER = 100_000_000  # bytes of names and shapes that safetensors reads, at most
FORM = 1
OF_RECORD = (
    "run_id", "identity", "status", "model", "task", "T", "seed", "steps", "best_step", "parameters", "baseline",
    "metrics", "division",
)  # fmt: skip
TEMPLATE = """\
---
{head}
---

# {name}

The network {what} was trained on `{data}` with seed {seed}. These are its {which} weights, of step {step:,}.
All settings are in config.json.

## Scores

| score | value | baseline |
|---|---|---|
{rows}

The baseline is the score of a network without memory.

## Load it

With orthobench {version} and its extra `share`, where FOLDER is the folder of this file:

```python
import orthobench

run = orthobench.load("FOLDER")
x, target, *mask = run.task.batch("test", 0, 0)
y, state = run.model(x)
```
"""


@dataclass
class Shared(Finished):
    """A run of which a folder holds the weights, the settings and the scores alone.

    Attributes:
        weights: the SHA-256 of its weights' file.
    """

    weights: str = ""

    @property
    def checkpoint(self) -> Path:  # type: ignore[override]  # pyright: ignore
        """The file that has the weights."""
        return self.folder / WEIGHTS

    def restored(self) -> Learner:
        """The learner made anew, with the weights of the file.

        Raises:
            StorageError: the file is damaged, or its tensors are not those of the model.
        """
        learner = self.built()
        learner.model.load_state_dict(_read(self.checkpoint, self.weights, learner.model.state_dict()))
        return learner


def share(run: Finished, folder: Path) -> Shared:
    """Write the folder, and open it again.

    Raises:
        ConfigError: the library safetensors is missing, the run is of a file of the user's own, or a weight is of a
            kind that safetensors does not hold.
        StorageError: the folder or the disk refuses.
    """
    _need_library()
    if run.where:
        raise ConfigError(
            f"{run.run_id} was trained on a file of your own, without which nobody could load the folder: share its "
            "weights alone (--format torch) or as a program (--format pt2 or onnx)."
        )
    from safetensors import SafetensorError
    from safetensors.torch import save

    tensors = {name: plain(value).clone().contiguous() for name, value in run.model.state_dict().items()}
    try:
        made = save(tensors, {"format": "pt"})
    except (KeyError, ValueError, SafetensorError) as error:
        raise ConfigError(
            f"the weights of {run.run_id} do not fit in safetensors ({error}): use --format torch."
        ) from error
    record = {key: run.record.get(key) for key in OF_RECORD if key in run.record}
    sources = run.record.get("sources") or {}
    record["sources"] = {key: sources[key] for key in ("plugins", "data") if key in sources}
    content = {
        "library": "orthobench",
        "version": __version__,
        "form": FORM,
        "which": run.which,
        "weights": hashlib.sha256(made).hexdigest(),
        "settings": recorded.content_of(run.settings) | recorded.PLACES,
        "record": record,
        "codes": run.codes,
    }
    write_bytes(folder / WEIGHTS, made)
    write_sealed(folder / CONFIG, content)
    write_bytes(folder / CARD, card(run).encode())
    return opened(folder, run.which, run.settings.run["data_root"])


def is_shared(folder: Path) -> bool:
    """Return True if a folder is one that `share` wrote, whole or not."""
    return not (folder / "config.yaml").exists() and any((folder / name).is_file() for name in (WEIGHTS, CONFIG))


def opened(folder: Path, which: Which = "best", data_root: str | None = None) -> Shared:
    """Open a folder that `share` wrote. It holds one set of weights, whose name is in `which`.

    Args:
        folder: where it is.
        which: `last` if the last weights are asked for.
        data_root: where real data are now; $ORTHOBENCH_DATA, or `data`, when None.

    Raises:
        ConfigError: it holds other weights, or this version cannot read its settings.
        StorageError: a file is missing, a link, damaged, or another run's.
    """
    _need_library()
    for path in (folder, *(folder / name for name in (WEIGHTS, CONFIG, CARD))):
        if path.is_symlink():
            raise StorageError(f"{path} is a link, which is not followed: put the file itself in its place.")
    path = folder / CONFIG
    content = read_sealed(path) or {}
    record = content.get("record")
    known = content.get("library") == "orthobench" and content.get("which") in ("best", "last")
    if not known or "sha256" not in content or not isinstance(record, dict) or not is_record(record):
        raise StorageError(f"{path} is missing, damaged or not of `orthobench export`: export the run again.")
    if content.get("form") != FORM:
        raise ConfigError(
            f"{path} has the form {content.get('form')!r}, and this version reads {FORM}: update orthobench."
        )
    if which == "last" and content["which"] != "last":
        raise ConfigError(f"{folder} holds the best weights: which='last' needs the run, or an export of it by --last.")
    kept: Any = content.get("settings")
    try:
        root = root_of(kept, record, data_root)
        if own_files(kept, record, root):
            raise ConfigError("it names a file of somebody's own, which is not read.")
        settings = recorded.settings(kept, root)
    except ConfigError as error:
        raise ConfigError(f"{path} cannot be used by this version, so export the run again: {error}") from error
    if settings.digest != record.get("identity") or settings.run_id != record["run_id"]:
        raise StorageError(f"{path} is not of one run: its record is of {record['run_id']}, and its settings are those "
                           f"of {settings.run_id}; export the run again.")  # fmt: skip
    refuse_changed({"plugins": (record.get("sources") or {}).get("plugins") or {}}, settings, "trained")
    return Shared(folder, settings, record, kept, content["which"], weights=str(content.get("weights")))


def _read(path: Path, digest: str, own: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of a file, which have the names, shapes and types of the model's own."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    if not path.is_file():
        raise StorageError(f"{path} is missing: export the run again.")
    size, most = path.stat().st_size, HEADER + sum(value.numel() * value.element_size() for value in own.values())
    if size > most:
        raise StorageError(
            f"{path} has {size:,} bytes, and the model of {CONFIG} has at most {most:,}: export the run again."
        )
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != digest:
        raise StorageError(
            f"{path} is damaged or another run's: its digest is not the one in {CONFIG}; export the run again."
        )
    try:
        found = load(content)
    except (SafetensorError, ValueError, KeyError) as error:
        raise StorageError(
            f"{path} is no file of safetensors: {' '.join(str(error).split())}; export the run again."
        ) from error
    for name in sorted(found.keys() ^ own.keys()):
        raise StorageError(
            f"{path} {'has no' if name in own else 'has an unknown'} tensor {name!r}; export the run again."
        )
    for name, value in own.items():
        kinds = [
            f"{tuple(one.shape)} in {str(one.dtype).removeprefix('torch.')}" for one in (found[name], plain(value))
        ]
        if kinds[0] != kinds[1]:
            raise StorageError(
                f"{name} in {path} is {kinds[0]}, and the model of {CONFIG} has {kinds[1]}: export the run again."
            )
        if not torch.isfinite(found[name]).all():
            raise StorageError(f"{name} in {path} has values that are not finite: export the run again.")
        if value.is_complex():
            found[name] = torch.view_as_complex(found[name])
    return found


def plain(tensor: Tensor) -> Tensor:
    """A tensor as it is in the file: complex numbers are pairs of real ones, in a last dimension of 2."""
    return torch.view_as_real(tensor.detach().resolve_conj()) if tensor.is_complex() else tensor.detach()


def _need_library() -> None:
    if find_spec("safetensors") is None:
        raise ConfigError("a folder with weights in safetensors needs it, not installed here: "
                          f"{install('share')}.")  # fmt: skip


def card(run: Finished) -> str:
    """A model card in Hugging Face's form: a head in YAML, and what the network is, its scores and how to load it."""
    record, model, task = run.record, run.settings.model["name"], run.settings.task["name"]
    chosen = (record.get("metrics") or {}).get("last" if run.which == "last" else "best_val") or {}
    scores = {name: value for name, value in chosen.items() if value is not None}
    T = run.settings.task.get("T")
    data = task if T is None else f"{task}, T={T}"
    result = {
        "task": {"type": "sequence-modeling", "name": data},
        "dataset": {"type": task, "name": data},
        "metrics": [{"type": name, "value": value} for name, value in scores.items()],
    }
    head = {
        "library_name": "orthobench",
        "tags": ["recurrent-neural-network", "long-term-memory", model, task],
        "model-index": [{"name": run.run_id, "results": [result]}],
    }
    baseline = record.get("baseline") or {}
    rows = (
        f"| {name} | {value:.6g} | {_number(baseline.get(name.partition('/')[2]))} |" for name, value in scores.items()
    )
    total = (record.get("parameters") or {}).get("total")
    return TEMPLATE.format(
        head=yaml.safe_dump(head, sort_keys=False).rstrip(),
        name=run.run_id,
        what=f"`{model}`" if total is None else f"`{model}`, with {total:,} parameters,",
        data=data,
        seed=record["seed"],
        which=run.which,
        step=run.step,
        rows="\n".join(rows),
        version=__version__,
    )


def _number(value: Any) -> str:
    return "" if value is None else f"{value:.6g}"
