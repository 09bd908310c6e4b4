"""Check for a finished run, without the imports that training needs."""

from pathlib import Path
from typing import Any

from orthobench.common.registry import find
from orthobench.common.terminal import say
from orthobench.config.settings import Settings
from orthobench.errors import ConfigError, StorageError
from orthobench.recording.digest import final
from orthobench.recording.record import other_code
from orthobench.recording.sources import changed_yaml, refuse_changed


def finished(settings: Settings) -> dict[str, Any] | None:
    """The final record of a run, of which a line tells; None where there is none.

    Raises:
        ConfigError: the folder is that of a run of the same short name, or the run's plug-ins or data have changed.
        StorageError: the record is another run's.
    """
    path = settings.folder / "record.json"
    found = final(path)
    if found is not None:
        check_identity(settings, path, found.get("identity"), found["run_id"])
        refuse_changed(found.get("sources"), settings)
        other, files = other_code(found), changed_yaml(found.get("sources"), settings)
        reasons = [f"made by other code, {other}"] if other else []
        reasons += [f"{name} has changed, but none of its settings" for name in files]
        stale = f" (stale: {'; '.join(reasons)})" if reasons else ""
        say(f"{settings.run_id} is {found['status']} already{stale}{_score(settings, found)}; {path}")
        measured = (found.get("config") or {}).get("diagnostics") or {}
        more = [name for name, asked in settings.diagnostics.items() if asked and asked != measured.get(name)]
        if more:
            say(f"diagnostics.{more[0]}= was not asked of it, and is not measured; another runs_root= trains anew")
    return found


def _score(settings: Settings, record: dict[str, Any]) -> str:
    """The headline metric of a record beside the trivial predictor's, as the end of a sentence."""
    metric = (settings.task_made or find("task", settings.task["name"], "task")).metric
    value = ((record.get("metrics") or {}).get("best_val") or {}).get(f"test/{metric}")
    baseline = (record.get("baseline") or {}).get(metric)
    beside = "" if baseline is None else f" (baseline {baseline:.4g})"
    return "" if value is None else f": test {metric} {value:.4g}{beside}"


def check_identity(settings: Settings, path: Path, digest: str | None, name: str | None = None) -> None:
    """Refuse a file of other settings by its whole digest, or, where it has none, by the run's name.

    Raises:
        ConfigError: it is of a run of the same short name.
        StorageError: it is another run's.
    """
    own = settings.digest
    if digest is None or len(digest) != 64:  # of an old record, or damaged
        digest = own if name in (None, settings.run_id) else ""
    if digest == own:
        return
    if digest[:10] == own[:10]:
        raise ConfigError(f"{path.parent} holds another run of the same short name; use another runs_root=.")
    whose = f"another run's, {name}" if name else "another run's"
    raise StorageError(
        f"{path} is {whose}: its settings have the digest {digest[:10] or 'none'}, those of this run have "
        f"{own[:10]}; put it back where it belongs, or delete it."
    )
