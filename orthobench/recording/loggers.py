"""The mirror that a run can choose beside metrics.csv: Weights & Biases or TensorBoard. Never needed by a record."""

import netrc
import os
from typing import Any

from orthobench.errors import ConfigError
from orthobench.settings import Settings
from orthobench.terminal import complain

WANDB_HOSTS = ("api.wandb.ai", "wandb.ai")


def make_logger(settings: Settings) -> Any:
    """A Lightning logger, or False for none.

    Raises:
        ConfigError: the package that it needs is not installed.
    """
    name = settings.logger["name"]
    try:
        if name == "wandb":
            return _wandb(settings)
        if name == "tensorboard":
            from lightning.pytorch.loggers import TensorBoardLogger

            return TensorBoardLogger(str(settings.folder), name="", version="tensorboard")
    except ModuleNotFoundError as error:
        raise ConfigError(f"logger={name} needs the package {error.name}: pip install orthobench[{name}].") from error
    return False


def close(logger: Any) -> None:
    """Let a logger write what it still holds."""
    if logger and type(logger).__name__ == "WandbLogger":
        import wandb

        wandb.finish()


def wandb_mode(asked: str | None) -> str:
    """What was asked for, else $WANDB_MODE, else online with an API key at hand and offline without."""
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
    from lightning.pytorch.loggers import WandbLogger

    given = settings.logger
    settings.folder.mkdir(parents=True, exist_ok=True)
    group = given.get("group") or settings.run.get("cell") or f"{settings.task['name']}-{settings.model['name']}"
    options = {"id": settings.run_id, "name": settings.run_id, "group": group, "entity": given.get("entity")}
    os.environ.setdefault("WANDB_SILENT", "true")
    quiet = wandb.Settings(disable_git=True, disable_code=True, console="off", init_timeout=5)
    common = {"project": given.get("project") or "orthobench", "save_dir": str(settings.folder), "resume": "allow"}
    logger = WandbLogger(**common, **options, mode=wandb_mode(given.get("mode")), settings=quiet)
    try:
        logger.experiment.config.update(settings.as_dict(), allow_val_change=True)
    except (wandb.Error, OSError) as error:
        complain(f"Weights & Biases cannot be reached ({error}); this run is logged offline.")
        logger = WandbLogger(**common, **options, mode="offline", settings=quiet)
        logger.experiment.config.update(settings.as_dict(), allow_val_change=True)
    return logger
