"""An optional copy of metrics.csv in Weights & Biases or TensorBoard; records never depend on it."""

import contextlib
import glob
import itertools
import json
import netrc
import os
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from orthobench.common.packages import install
from orthobench.common.terminal import complain
from orthobench.config.settings import Settings
from orthobench.errors import ConfigError
from orthobench.recording.curve import Curve
from orthobench.recording.mirrored import checkpoints, figures, group_of, plain_settings, score_rows, scores, tags_of

WANDB_HOSTS = ("api.wandb.ai", "wandb.ai")
START_S, END_S = 4.0, 20.0
STEP = "trainer/global_step"  # Lightning's name
Logged = dict[str, Any]


def make_logger(settings: Settings) -> Any:
    """A Lightning logger, or False when none was chosen.

    Raises:
        ConfigError: the logger's package is not installed.
    """
    name = settings.logger["name"]
    try:
        if name == "wandb":
            return _wandb(settings)
        if name == "tensorboard":
            from lightning.pytorch.loggers import TensorBoardLogger

            return TensorBoardLogger(str(settings.folder), name="", version="tensorboard", default_hp_metric=False)
    except ModuleNotFoundError as error:
        package = name if error.name is None else error.name.partition(".")[0]
        raise ConfigError(f"logger={name} needs the package {package}: {install(name)}.") from error
    return False


def close(logger: Any) -> None:
    """Close a logger, which writes what it still buffers."""
    if getattr(logger, "mirror", False):
        with _harmless("finish"):
            logger.experiment.finish()


def conclude(logger: Any, settings: Settings, record: dict[str, Any]) -> None:
    """Show the end of a finished run: scores beside the settings; in W&B a table, figures, and weights if asked for."""
    if not logger:
        return
    if not getattr(logger, "mirror", False):
        with _harmless("take the scores", type(logger).__name__):
            logger.log_hyperparams(plain_settings(settings), scores(record), step=record["steps"])
            logger.experiment.close()  # a thread of its own would write them some time later
        return
    import wandb

    run, folder = logger.experiment, settings.folder
    with _harmless("take the scores"):
        columns, rows = score_rows(record)
        run.summary.update({**scores(record), "status": record["status"]})
        run.log({"scores": wandb.Table(columns=list(columns), data=rows), STEP: record["steps"]})
    with _harmless("take the figures"):
        for metric, picture in figures(Curve(folder / "metrics.csv")).items():
            run.log({f"figures/{metric}": wandb.Image(picture), STEP: record["steps"]})
    if settings.logger.get("artifacts"):
        with _harmless("take the checkpoints"):
            about = {key: record[key] for key in ("model", "task", "T", "seed", "steps", "parameters", "metrics")}
            artifact = wandb.Artifact(settings.run_id, type="model", metadata=about)
            for name, path in checkpoints(folder).items():
                artifact.add_file(str(path), name)
            run.log_artifact(artifact)


def wandb_mode(asked: str | None) -> str:
    """The mode that was asked for, else $WANDB_MODE, else `online` with an API key and `offline` without one."""
    return asked or os.environ.get("WANDB_MODE") or ("online" if _has_key() else "offline")


def _has_key() -> bool:
    if os.environ.get("WANDB_API_KEY"):
        return True
    try:
        known = netrc.netrc()
    except (OSError, netrc.NetrcParseError):
        return False
    return any(known.authenticators(host) for host in WANDB_HOSTS)


def _wandb(settings: Settings) -> Any:
    import wandb

    given, mode = settings.logger, wandb_mode(settings.logger.get("mode"))
    settings.folder.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("WANDB_SILENT", "true")
    options: dict[str, Any] = {
        "id": settings.run_id,
        "name": settings.run_id,
        "group": group_of(settings),
        "tags": tags_of(settings),
        "entity": given.get("entity"),
        "project": given.get("project") or "orthobench",
        "dir": os.environ.get("WANDB_DIR") or str(settings.folder),
        "resume": "allow",
        "reinit": "create_new",  # members of an ensemble have a run each, and a user's own run stays as it is
        "config": settings.as_dict(),
        "settings": wandb.Settings(
            disable_git=True,
            disable_code=True,
            x_disable_meta=True,  # it would send the command line and the names of environment variables
            console="off",
            init_timeout=START_S,
            login_timeout=START_S,
            finish_timeout=END_S if mode == "online" else 0.0,
        ),
    }
    problem = _outage() if mode == "online" else None
    if problem is None:
        try:
            return _mirror(wandb.init(**{**options, "mode": mode}))
        except Exception as error:  # a mirror may not end a run, whatever happens to it
            problem = type(error).__name__
            with contextlib.suppress(Exception):
                wandb.teardown()  # else the run's name stays taken
    complain(f"Weights & Biases cannot be reached ({problem}); this run is logged offline.")
    with _harmless("start"):
        return _mirror(wandb.init(mode="offline", **options))
    return False


def _mirror(run: Any) -> Any:
    """Lightning's logger of a W&B run, whose failures do not affect the run here."""
    from lightning.pytorch.loggers import WandbLogger

    class Mirror(WandbLogger):
        mirror = True
        told: frozenset[tuple[int, str]] = frozenset()

        def log_metrics(self, metrics: Any, step: int | None = None) -> None:
            new = {name: value for name, value in metrics.items() if (step, name) not in self.told}
            if new.keys() - {"epoch"}:
                with _harmless("log"):
                    WandbLogger.log_metrics(self, new, step)

        def finalize(self, status: str) -> None:
            with _harmless("finalize"):
                WandbLogger.finalize(self, status)

    run.define_metric(STEP)
    run.define_metric("*", step_metric=STEP, step_sync=True)
    return Mirror(experiment=run)


def go_on(logger: Any, told: list[Logged], kept: list[Logged]) -> None:
    """Let the W&B run of a run that is resumed have one curve: no row twice, and none missing.

    Args:
        logger: the run's logger.
        told: rows of metrics.csv as an earlier attempt left it, which that attempt's W&B run has.
        kept: those of them that the run goes on from, for a W&B run that is new.
    """
    if not getattr(logger, "mirror", False):
        return
    if _has_begun(logger.experiment):
        logger.told = frozenset((row["step"], row["name"]) for row in told)
        return
    for (step, epoch), rows in itertools.groupby(kept, lambda row: (row["step"], row["epoch"])):
        logger.log_metrics({**{row["name"]: row["value"] for row in rows}, "epoch": epoch}, step=step)


def _has_begun(run: Any) -> bool:
    """Return True if an earlier attempt has written to a W&B run, by the server or a folder beside its own."""
    with _harmless("look for an earlier attempt"):
        own = Path(run.settings.sync_dir)
        return run.resumed or any(path != own for path in own.parent.glob(f"*run-*-{glob.escape(run.id)}*"))
    return False


@contextlib.contextmanager
def _harmless(what: str, whose: str = "Weights & Biases") -> Any:
    """A context that reports the first error and suppresses all."""
    try:
        yield
    except Exception as error:  # a mirror may not end a run, whatever happens to it
        if what not in _told:
            complain(f"{whose} failed to {what} ({type(error).__name__}); the run goes on.")
        _told.add(what)


_told: set[str] = set()


def _outage() -> str | None:
    """Why the server cannot be used, after a few seconds at most; None when it answers. The address is left out."""
    base = os.environ.get("WANDB_BASE_URL", "https://api.wandb.ai").rstrip("/")
    body = json.dumps({"query": "{ serverInfo { cliVersionInfo } }"}).encode()
    request = urllib.request.Request(f"{base}/graphql", body, {"Content-Type": "application/json"})
    try:
        urllib.request.urlopen(request, timeout=START_S).close()
    except urllib.error.HTTPError as error:
        error.close()
        return f"status {error.code}" if error.code == 429 or error.code >= 500 else None
    except (OSError, ValueError) as error:
        return type(getattr(error, "reason", error)).__name__
    return None
