"""The mirrors beside metrics.csv: offline without an account, and never in the way."""

import sys
import time
from pathlib import Path
from typing import Any

import pytest

import orthobench
from orthobench.errors import ConfigError
from orthobench.recording import loggers
from orthobench.recording.curve import Curve
from orthobench.recording.mirrored import figures

TINY = (
    "T=4",
    "model.hidden_size=4",
    "trainer.max_steps=4",
    "trainer.val_check_interval=2",
    "trainer.log_every_n_steps=1",
    "task.train_size=null",
    "task.val_size=4",
    "task.test_size=4",
)


@pytest.fixture
def no_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    monkeypatch.delenv("WANDB_MODE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("NETRC", raising=False)


@pytest.mark.usefixtures("no_key")
def test_offline_without_a_key_and_what_is_asked_for_wins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert (loggers.wandb_mode(None), loggers.wandb_mode("disabled")) == ("offline", "disabled")
    with monkeypatch.context() as patch:
        patch.setenv("WANDB_MODE", "disabled")
        assert (loggers.wandb_mode(None), loggers.wandb_mode("offline")) == ("disabled", "offline")
    with monkeypatch.context() as patch:
        patch.setenv("WANDB_API_KEY", "x" * 40)
        assert loggers.wandb_mode(None) == "online"
    (tmp_path / ".netrc").write_text("machine api.wandb.ai login user password secret\n")
    (tmp_path / ".netrc").chmod(0o600)
    assert loggers.wandb_mode(None) == "online"


@pytest.mark.parametrize("logger", ["csv", "none", "tensorboard"])
def test_metrics_csv_is_written_whatever_the_logger(logger: str) -> None:
    exp = orthobench.build("task=adding", f"logger={logger}", *TINY)
    exp.run()
    assert (exp.settings.folder / "metrics.csv").read_text().count("train/loss") == 4
    assert (exp.settings.folder / "tensorboard").is_dir() == (logger == "tensorboard")


def test_tensorboard_shows_the_settings_beside_the_scores() -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugins.hparams import plugin_data_pb2

    exp = orthobench.build("task=adding", "logger=tensorboard", *TINY)
    record = exp.run()
    found: dict[str, Any] = {}
    for path in (exp.settings.folder / "tensorboard").rglob("events.*"):
        read = EventAccumulator(str(path))
        read.Reload()
        for name, content in read.summary_metadata.items():
            if name == "_hparams_/session_start_info":
                data = plugin_data_pb2.HParamsPluginData.FromString(content.plugin_data.content)
                found["settings"] = dict(data.session_start_info.hparams)
        for name in read.Tags()["scalars"]:
            found[name] = read.Scalars(name)[-1].value
    assert found["best_val/test/loss"] == pytest.approx(record["metrics"]["best_val"]["test/loss"])
    assert found["settings"]["model.hidden_size"].number_value == 4
    assert found["settings"]["optimizer"].string_value
    assert "hp_metric" not in found


def test_a_finished_run_stays_done_where_tensorboard_fails_at_its_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from lightning.pytorch.loggers import TensorBoardLogger

    run = orthobench.build("task=adding", "logger=tensorboard", *TINY)
    whole = TensorBoardLogger.log_hyperparams

    def full(self: Any, params: Any, metrics: Any = None, **more: Any) -> None:
        if metrics:
            raise OSError(28, "No space left on device")
        whole(self, params, metrics, **more)

    monkeypatch.setattr(TensorBoardLogger, "log_hyperparams", full)
    assert run.run()["status"] == "done"
    assert orthobench.load(run.settings.folder).record["status"] == "done"
    assert "TensorBoardLogger failed to take the scores (OSError); the run goes on." in capsys.readouterr().err


def test_figures_for_a_mirror_do_not_depend_on_the_users_style(tmp_path: Path) -> None:
    import matplotlib

    curve = Curve(tmp_path / "metrics.csv")
    curve.cut(0)
    for step in (1, 2):
        curve.append(step, 0, {"train/loss": 1 / step})
    with matplotlib.rc_context({"text.usetex": True, "figure.dpi": 10, "lines.linewidth": 9}):
        styled = figures(curve)["loss"].tobytes()
        assert matplotlib.rcParams["text.usetex"], "the user's own are as they were"
    assert styled == figures(curve)["loss"].tobytes()


@pytest.mark.slow
def test_wandb_offline_gets_configuration_curves_and_identity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A real offline run; what the logger was given is recorded on the way."""
    from lightning.pytorch.loggers import WandbLogger

    seen: dict[str, Any] = {"metrics": {}}
    log = WandbLogger.log_metrics

    def record(self: Any, metrics: Any, step: int | None = None) -> None:
        seen["metrics"] |= metrics
        seen["run"] = (self.experiment.id, self.experiment.group, self.experiment.project)
        seen["config"] = dict(self.experiment.config)
        log(self, metrics, step)

    monkeypatch.setattr(WandbLogger, "log_metrics", record)
    exp = orthobench.build("task=adding", "logger=wandb", *TINY)
    exp.run()
    assert seen["run"] == (exp.run_id, exp.run_id, "orthobench")
    assert set(seen["metrics"]) >= {"train/loss", "gradient_norm", "orthogonality", "val/loss"}
    assert seen["config"]["model"]["hidden_size"] == 4
    assert (exp.settings.folder / "metrics.csv").read_text().count("train/loss") == 4
    files = [path for path in (exp.settings.folder / "wandb").rglob("*.wandb") if path.is_file()]
    assert files
    end = time.monotonic() + 30  # its own process writes the file, and may be a moment behind on a busy machine
    while files[0].stat().st_size <= 1000 and time.monotonic() < end:
        time.sleep(0.1)
    assert files[0].stat().st_size > 1000
    monkeypatch.setattr(sys, "argv", ["orthobench"])


def test_a_logger_whose_package_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    exp = orthobench.build("task=adding", "logger=wandb", *TINY)
    with pytest.raises(ConfigError, match="logger=wandb needs the package"):
        exp.run()
