"""Wrong words on the command line: one sentence, the exit code of the contract, nothing started."""

import subprocess
import sys
from pathlib import Path

import pytest

import orthobench
from orthobench.__main__ import main
from orthobench.common import registry
from orthobench.common.packages import install
from orthobench.datasets.mnist import FILES
from orthobench.errors import ConfigError
from orthobench.run.__main__ import done
from orthobench.study.catalogue import Catalogue
from tests.conftest import Refused, write

TINY = ("trainer.max_steps=1",)

BAD = [
    # unknown names
    ("model=scornnn", "did you mean 'scornn'"),
    ("task=copyng", "did you mean 'copying'"),
    ("optimizer=adm", "did you mean 'adam'"),
    ("schedule=liner", "did you mean 'linear'"),
    ("logger=wand", "did you mean 'wandb'"),
    ("recipe=scornn/copyin", "did you mean 'scornn/copying'"),
    ("recipe=null", "recipe=none switches it off"),
    ("engine=fussed", "engine='fussed'"),
    ("variant=papr", "variant='papr'"),
    ("model.recurrent=scaled_caley", "did you mean 'scaled_cayley'"),
    ("model.cell=elmann", "did you mean 'elman'"),
    ("model.activation=modrelo", "did you mean 'modrelu'"),
    # unknown keys
    ("sede=1", "did you mean 'seed'"),
    ("model.rh=3", "model.rh does not apply to model="),
    ("model.hiden_size=3", "did you mean 'hidden_size'"),
    ("task.batchsize=3", "did you mean 'batch_size'"),
    ("optimizer.lrr=1", "did you mean 'lr'"),
    ("optimizer.momentun=0.5", "optimizer.momentun"),
    ("trainer.max_step=3", "did you mean 'max_steps'"),
    ("+model.rh=3", "model.rh does not apply to model="),
    ("++model.rh=3", "model.rh does not apply to model="),
    ("rho=8", "did you mean 'model.rho'"),
    ("lr=8", "did you mean 'optimizer.lr'"),
    ("model.recurent=free", "did you mean 'recurrent'"),
    ("diagnostics=3", "set each as diagnostics.KEY=VALUE"),
    ("task.T=3", "task.T does not apply to task="),
    ("logger.projct=x", "logger.projct"),
    ("diagnostics.hidden_gradient=[1]", "did you mean 'hidden_gradients'"),
    # wrong types
    ("T=abc", "T='abc'"),
    ("T=1.5", "T=1.5"),
    ("seed=true", "seed=True"),
    ("model.hidden_size=big", "model.hidden_size='big'"),
    ("model.rho=some", "model.rho='some'"),
    ("optimizer.lr=fast", "optimizer.lr='fast'"),
    ("optimizer.lr=[1]", "optimizer.lr=[1]"),
    ("model.dropout=null", "model.dropout=None"),
    ("trainer.max_time=soon", "such as 00:12:00:00"),
    ("trainer.max_time={hours:x}", "such as 00:12:00:00"),
    ("trainer.precision=31", "trainer.precision=31"),
    ("trainer.accelerator=tpu", "did you mean 'gpu'"),
    ("trainer.profiler=best", "simple"),
    ("trainer.gradient_clip_algorithm=x", "norm, value"),
    ("x=[1", "not an override of the form key=value"),
    ("trainer.max_steps=few", "trainer.max_steps='few'"),
    ("model=null", "model=null"),
    # out of range
    ("T=0", "it must be >= 1"),
    ("T=-5", "it must be >= 1"),
    ("seed=-1", "it must be >= 0"),
    ("model.hidden_size=0", "it must be >= 1"),
    ("model.rho=-1", "from 0 to 190"),
    ("model.rho=191", "from 0 to 190"),
    ("model.rho=1.5", "from 0 to 190"),
    ("model.dropout=1", "it must be >= 0 and < 1"),
    ("task.batch_size=0", "it must be >= 1"),
    ("task.batch_size=-3", "it must be >= 1"),
    ("optimizer.lr=0", "it must be > 0"),
    ("optimizer.lr=-1e-3", "it must be > 0"),
    ("optimizer.lr=inf", "finite"),
    ("optimizer.lr=nan", "finite"),
    ("optimizer.lr_recurrent=-1", "it must be > 0"),
    ("trainer.max_steps=0", "trainer.max_steps=0"),
    ("trainer.max_steps=-2", "trainer.max_steps=-2"),
    ("trainer.max_steps=-1", "would never end"),
    ("trainer.max_epochs=0", "it must be >= 1"),
    ("trainer.gradient_clip_val=-1", "it must be > 0"),
    ("trainer.val_check_interval=0", "trainer.val_check_interval=0"),
    ("trainer.limit_train_batches=2.5", "it must be > 0 and <= 1"),
    ("trainer.limit_val_batches=1.5", "it must be > 0 and <= 1"),
    ("trainer.limit_test_batches=0", "it must be >= 1"),
    ("trainer.max_time=00:00:00:00", "such as 00:12:00:00"),
    ("seed=99999999999999999999", "a whole number must be below 2**64"),
    ("params=-5", "it must be >= 1"),
    ("timeout=1", "timeout=1 has no effect on a single run: add -m"),
    ("ensemble=true", "has no effect on a single run: add -m and several seeds"),
    ("cell=lstm", "name the table of this row, with experiment="),
    # refused
    ("trainer.callbacks=[]", "trainer.callbacks"),
    ("trainer.enable_progress_bar=true", "trainer.enable_progress_bar=True is refused"),
    ("trainer.enable_model_summary=true", "`orthobench show` counts"),
    ("trainer.precision=bf16-true", "use bf16-mixed"),
    ("trainer.precision=transformer-engine", "use bf16-mixed"),
    ("trainer.devices=2", "one run uses one device"),
    ("hydra.run.dir=/tmp/x", "only the launcher"),
    ("hydra.job.env_set.A=b", "only the launcher"),
    ("hydra.searchpath=[file:///tmp]", "only the launcher"),
    ("hydra/callbacks=x", "only the launcher"),
    ("hydra.launcher._target_=os.system", "is for sweeps"),
    ("hydra/launcher=slurm", "hydra/launcher=slurm is for sweeps: add -m, which also takes one run."),
    ("hydra/launcher=joblib", "hydra/launcher=joblib is for sweeps: add -m"),
    ("hydra/launcher=ray", "hydra/launcher=ray is for sweeps: add -m"),
    ("hydra.launcher.n_jobs=2", "hydra.launcher.n_jobs=2 is for sweeps: add -m"),
    ("hydra/sweeper=basic", "only the launcher"),
    ("hydra.sweeper.max_batch_size=2", "only the launcher"),
    ("model._target_=os.system", "may not name code"),
    ("+x._target_=os.system", "may not name code"),
    ("~model", "nothing can be deleted"),
    ("data_root=${oc.env:HOME}", "only plain references"),
    ("logger.api_key=123", "looks like a secret"),
    ("seed=1,2", "add -m"),
    ("T=", "T="),
    ("=3", "write KEY=VALUE"),
    ("--config-path=/tmp", "is refused"),
    ("--config-name=x", "is refused"),
    ("--experimental-rerun=x", "is refused"),
    ("--no-such-option", "--no-such-option"),
    ("shwo", "did you mean 'show'"),
]


@pytest.mark.parametrize(("word", "message"), BAD)
@pytest.mark.sampled(50)
def test_refused_with_one_sentence(word: str, message: str, capsys: pytest.CaptureFixture[str], here: Path) -> None:
    name = word.lstrip("+~").partition("=")[0]
    assert main([*(one for one in TINY if one.partition("=")[0] != name), word]) == 2
    out, err = capsys.readouterr()
    assert message in err
    assert err.startswith("orthobench: ")
    assert len(err.strip().splitlines()) == 1
    assert "Traceback" not in err
    assert out in ("", f"orthobench {orthobench.__version__} reads the configuration\n")
    assert not list(here.iterdir()), "something was started"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["model=lstm", "model.rho=3"], "model.rho does not apply to model=lstm"),
        (["model=lstm", "+model.rho=3"], "model.rho does not apply to model=lstm"),
        (["model=urnn_full", "engine=fused"], "engine=fused cannot run ComplexElman"),
        (["task=mnist", "T=300"], "does not divide"),
        (["task=adding", "T=2"], "too short"),
        (["model=scornn", "engine=fused", "model.cell=elman", "T=1e400"], "T="),
        (
            ["schedule=linear", "trainer.max_time=00:00:01:00", "trainer.max_steps=-1"],
            "schedule=linear goes by the steps of the whole run, and trainer.max_time=00:00:01:00 alone ends this one",
        ),
        (["params=3"], "params=3 is too small"),
        (["schedule=step", "schedule.milestones=[-1,2]"], "it must be >= 0"),
        (["params=1e12"], "params=1000000000000 is too large with up to 16384 hidden units"),
        (["params=21764", "model.hidden_size=10"], "model.hidden_size=10 beside params=21764, which makes it 190"),
        (["params=21764", "model.layer_sizes=[9,9]"], "model.layer_sizes= says how large"),
        (["-m", "seed=1,99999999999999999999"], "a whole number must be below 2**64"),
        (["model=urnn_full", "model.rms_gradient=true", "trainer.precision=16-mixed"], "use bf16-mixed"),
        (["model=ugru", "model.recurrent_gradient_clip=1", "trainer.precision=16"], "which scales gradients"),
        (["-m", "hydra.launcher._target_=os.system"], "may not name code"),
        (["-m", "seed=1,2", "hydra/launcher=lsf"], "hydra/launcher=lsf is not known"),
        (["-m", "seed=1,2", "hydra/launcher=joblib", "hydra.launcher.n_jobs=x"], "n_jobs=x is not a whole number"),
        (["seed=1,2", "--cfg", "job"], "seed= has several values"),
        (["task=adding", "model.embedding_size=3"], "it has no tokens"),
        (["task=denoise", "model.embedding_size=3"], "it has no tokens"),
        (["task=har2", "T=3"], "T=3 does not apply to task=har2, so leave it out: a window"),
        (["task=timit", "+T=3"], "T=3 does not apply to task=timit, so leave it out: recordings"),
        (["T=1000000000", "task.batch_size=1000"], "GiB"),
    ],
)
@pytest.mark.sampled(12)
def test_what_does_not_go_together(words: list[str], message: str, refused: Refused, here: Path) -> None:
    refused([*TINY, *words], message)


def test_a_launcher_that_is_not_installed(refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orthobench.config.policy.find_spec", lambda name: None)
    refused(["-m", *TINY, "seed=1,2", "hydra/launcher=slurm"], install("slurm"))


@pytest.mark.parametrize("content", [None, b"<html>404</html>"], ids=["missing", "damaged"])
def test_missing_and_damaged_data_are_code_3(
    content: bytes | None, capsys: pytest.CaptureFixture[str], here: Path
) -> None:
    if content:
        write(here, {f"data/mnist/{file.name}": content for file in FILES})
    before = list(here.iterdir())
    assert main(["task=mnist", f"data_root={here / 'data'}", *TINY]) == 3
    err = capsys.readouterr().err
    assert str(here / "data") in err
    for told in ("damaged", FILES[0].name) if content else ("prepare mnist",):
        assert told in err
    assert list(here.iterdir()) == before


def test_a_gpu_that_is_not_there(refused: Refused) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    refused(["trainer.accelerator=gpu", "T=5", *TINY], "there is no GPU here")


def test_runs_root_that_cannot_be_written_is_code_6(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert main(["T=5", f"runs_root={blocked}", *TINY]) == 6
    assert str(blocked) in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("model/evil.yaml", "cell: elman\nextra: {_target_: os.system, _args_: [touch canary]}\n", "may not name code"),
        ("model/evil.yaml", "# @package _global_\nhydra: {run: {dir: canary}}\n", "Hydra's own configuration"),
        ("model/evil.yaml", "# @package hydra.job\nenv_set: {A: b}\n", "Hydra's own configuration"),
        ("model/evil.yaml", "cell: ${oc.env:HOME}\n", "only plain references"),
        ("model/evil.yaml", "cell: [unclosed\n", "not valid YAML"),
        ("model/evil.yaml", "cell: !!python/object/apply:os.system [touch canary]\n", "not valid YAML"),
        ("model/evil.yaml", "cell: elman\nrecurrent: scaled_cayley\nhidden_size: 8\nrhoo: 3\n", "did you mean 'rho'"),
        ("recipe/scornn/mine.yaml", "# @package _global_\nmodel: {hiden_size: 3}\n", "did you mean 'hidden_size'"),
        ("recipe/scornn/mine.yaml", "# @package _global_\nlrr: 0.5\n", "lrr= is not a setting"),
        ("recipe/scornn/mine.yaml", "# @package _global_\noptimizer: {lr: -1}\n", "it must be > 0"),
    ],
)
@pytest.mark.sampled(6)
def test_a_foreign_configuration(
    name: str, text: str, message: str, capsys: pytest.CaptureFixture[str], here: Path
) -> None:
    folder = write(here / "conf", {name: text})
    chosen = "model=evil" if name.startswith("model") else "recipe=scornn/mine"
    for mode in ([], ["-m"], ["--cfg", "job"]):
        words = [*mode, "--config-dir", str(folder), chosen, "T=5", *TINY]
        if mode == ["--cfg", "job"] and "did you mean" in message:
            continue  # only the constructors know; asked for in the other two modes
        if mode == ["--cfg", "job"] and ("lrr" in message or "> 0" in message):
            continue
        assert main(words) == 2, mode
        assert message in capsys.readouterr().err
    assert sorted(p.name for p in here.iterdir()) == ["conf"]


@pytest.mark.parametrize(
    ("searched", "fix"),
    [
        (False, "the working directory is not searched unless you say so: export PYTHONPATH=$PWD"),
        (True, "name a module of the working directory, or of a folder in PYTHONPATH"),  # as by `python -m orthobench`
    ],
)
def test_an_unknown_plugin(
    searched: bool, fix: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    here = str(Path.cwd())
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path not in ("", here)] + [here] * searched)
    monkeypatch.setenv("ORTHOBENCH_PLUGINS", "no_such_module_here")
    assert main(["T=5", "model.cell=mine", *TINY]) == 2
    err = capsys.readouterr().err
    assert "$ORTHOBENCH_PLUGINS names 'no_such_module_here', which cannot be imported: No module named" in err
    assert f"; {fix}.\n" in err


def test_a_class_that_a_plug_in_has_from_another_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of its own package is found; of one from elsewhere it is said where it is from."""
    body = "from orthobench.cells.elman import Elman\n\nclass {}(Elman):\n    pass\n"
    text = "from .cells import InnerCell\nfrom outside_of_plugged import OuterCell\n"
    inner, outer = (body.format(name) for name in ("InnerCell", "OuterCell"))
    write(tmp_path, {"plugged/__init__.py": text, "plugged/cells.py": inner, "outside_of_plugged.py": outer})
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("ORTHOBENCH_PLUGINS", "plugged")
    assert registry.find("cell", "inner_cell", "model.cell").__module__ == "plugged.cells"
    told = r"OuterCell in plugged is from outside_of_plugged, which \$ORTHOBENCH_PLUGINS must name itself"
    with pytest.raises(ConfigError, match=told):
        registry.find("cell", "outer_cell", "model.cell")
    monkeypatch.setenv("ORTHOBENCH_PLUGINS", "plugged, outside_of_plugged")
    assert registry.find("cell", "outer_cell", "model.cell").__name__ == "OuterCell"
    with pytest.raises(ConfigError, match=r"^model.cell=elmann is not known: did you mean 'elman'\?$"):
        registry.find("cell", "elmann", "model.cell")


def test_a_budget_tells_what_is_wrong_with_a_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cell that no size mends is refused for its own fault, and not searched for a size."""
    body = "from orthobench.cells.elman import Elman\n\n\nclass Narrowed(Elman):\n"
    body += "    def step(self, p_t, state, W):\n        return (super().step(p_t, state, W)[0][..., :-1],)\n"
    write(
        tmp_path,
        {
            "narrow.py": body,
            "my_conf/model/narrowed.yaml": "description: Narrowed\ncell: narrowed\nrecurrent: free\nhidden_size: 16\n",
        },
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("ORTHOBENCH_PLUGINS", "narrow")
    with pytest.raises(ConfigError, match=r"Narrowed in narrow: `step` returns states of shapes \[\(2, 63\)\]"):
        orthobench.build("model=narrowed", "task=adding", "T=10", "params=500", config_dir=tmp_path / "my_conf")


def test_a_cell_that_leaves_python_has_not_done_its_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = "from orthobench.cells.elman import Elman\n\n\nclass Leaving(Elman):\n"
    body += "    def step(self, p_t, state, W):\n        raise SystemExit(0)\n"
    about = "description: Leaving\ncell: leaving\nrecurrent: free\nhidden_size: 4\n"
    write(tmp_path, {"leave.py": body, "my_conf/model/leaving.yaml": about})
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("ORTHOBENCH_PLUGINS", "leave")
    words = ["model=leaving", "task=adding", "T=10", f"runs_root={tmp_path / 'runs'}"]
    with pytest.raises(RuntimeError, match=r"asked Python to exit \(0\)"):
        done(Catalogue((tmp_path / "my_conf",)).settings(words))


def test_a_module_of_somebody_s_own_is_no_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"foreign.py": "from torch import nn\n\n\nclass PlainModule(nn.Module):\n    pass\n"})
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("ORTHOBENCH_PLUGINS", "foreign")
    with pytest.raises(ConfigError, match="PlainModule in foreign is no Cell: derive it from that class"):
        registry.find("cell", "plain_module", "model.cell")


def test_a_hint_stands_before_a_long_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ORTHOBENCH_PLUGINS", raising=False)
    hint = r"classes of your own are looked for in the modules that \$ORTHOBENCH_PLUGINS names"
    with pytest.raises(ConfigError, match=rf"^model.cell=xyz is not known: {hint}; allowed: .*, gru, .*\w$"):
        registry.find("cell", "xyz", "model.cell")
    with pytest.raises(ConfigError, match=rf"^model.cell=elmann is not known: did you mean 'elman'\? \({hint}\)$"):
        registry.find("cell", "elmann", "model.cell")


@pytest.mark.parametrize(
    "words",
    [
        "",
        "--help",
        "show --help",
        "--help model=lstm task=copying",
        "--version",
        "--cfg job",
        "list",
        "list models",
        "cite scornn",
        *(f"{verb} nonsuch" for verb in ("plan", "reproduce", "compare", "plot", "tables", "site", "collect", "bench")),
        *(f"{verb} nonsuch" for verb in ("eval", "export", "generate", "inspect", "rerun nonsuch")),
        *(f"{verb} model=nonsuch" for verb in ("", "plan", "show", "tune")),
        *(f"{verb} cell=nonsuch" for verb in ("plan scornn", "reproduce scornn/table1")),
        "-m model=lstm,nonsuch",
        "model=lstm T=abc",
    ],
)
def test_what_is_asked_or_wrong_is_told_without_torch(words: str, here: Path) -> None:
    """A mistake, or a question about words, is answered before the imports that take a second; nothing is written."""
    program = (
        "import sys; from orthobench.__main__ import main\ntry: main(sys.argv[1:])\nexcept SystemExit: pass\n"
        "assert not {'torch', 'lightning', 'pandas'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program, *words.split()], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout or done.stderr
    assert not list(here.iterdir())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--T", "200"], "--T is no option: settings have no dashes, write T=VALUE."),
        (["--T=200"], "settings have no dashes, write T=200."),
        (["--model.rho=3"], "write model.rho=3."),
        (["T =200"], "'T =200' has a blank before =: write T=200."),
        (["T", "=200"], "'T' is followed by a blank: write T=200."),
        (["T", "=", "200"], "'T' is followed by a blank: write T=VALUE."),
        (["model=", "scornn"], "'model=' is followed by a blank: write model=scornn."),
        (["T=200,"], "'T=200,' ends with a comma: write T=200, or several values with -m."),
        (["t=200"], "t= is not a setting: did you mean T=?"),
        (["steps=10"], "did you mean trainer.max_steps=?"),
        (["device=cpu"], "did you mean trainer.accelerator=cpu or gpu?"),
        (["model=SCORNN"], "did you mean 'scornn'?"),
        (["run", "model=scornn"], "'run' is no verb: a run has no verb"),
        (["resume", "runs/x"], "'resume' is no verb: the command that started a run goes on with it"),
        (["model=glob(*rnn)"], "model=glob(*rnn) is not supported: name every model"),
        (["-m", "model=glob(*rnn)"], "model=glob(*rnn) is not supported: name every model"),
        (["-m", "seed=glob(*)"], "cannot be expanded"),
    ],
)
def test_what_to_write_instead(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1
