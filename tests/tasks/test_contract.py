"""Tasks from outside the package that break the contract are told in one sentence; the package's own keep it."""

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

from orthobench.__main__ import main
from orthobench.common import registry
from orthobench.errors import ConfigError, DataError
from orthobench.study.catalogue import SHIPPED
from orthobench.tasks.arrays import ArrayTask
from orthobench.tasks.contract import tried_task
from orthobench.tasks.drawn.varied import Varied
from orthobench.tasks.metric import Metric
from orthobench.tasks.real.series import Series
from orthobench.tasks.real.text import Text
from orthobench.tasks.synthetic import Synthetic
from orthobench.testing import check_task
from tests.conftest import DATA, write

REAL = (
    "har2", "mnist", "mnist_flat", "noisy_mnist", "pmnist", "ptb_char", "ptb_word", "series", "text", "timit", "ucr",
)  # fmt: skip
ROWS = {"train": 60, "val": 20, "test": 30}


class Rows(ArrayTask):
    """Random series of two classes."""

    input_size, output_size, T = 2, 2, 4
    baseline: ClassVar[dict[str, float]] = {"accuracy": 0.5}

    def rows(self, split: Any) -> int:
        return ROWS[split]

    def load(self) -> Any:
        return {split: (torch.randn(n, 4, 2), torch.arange(n) % 2) for split, n in ROWS.items()}


class Values(Rows):
    objective = "regress"
    metric = "loss"
    baseline: ClassVar[dict[str, float]] = {"loss": 1.0, "loss_zero": 2.0}

    def load(self) -> Any:
        return {split: (x, torch.randn(len(x), 2)) for split, (x, _) in super().load().items()}


class Tokens(Synthetic):
    """The first token of three."""

    input_size = output_size = 3
    tokens_in = True
    baseline: ClassVar[dict[str, float]] = {}

    def generate(self, rng: Any, size: int) -> Any:
        x = rng.integers(0, 3, (size, self.T))
        return x, x[:, 0]


class Masked(Varied):
    """The last token; the labels of other steps are torch's ignore_index."""

    input_size = output_size = 3
    baseline: ClassVar[dict[str, float]] = {}
    chance = 1 / 3

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.span, self.length, self.width = (5, 5), 5, 5

    def sequences(self, u_BW: np.ndarray) -> Any:
        x = (3 * u_BW).astype(np.int64)
        due = np.arange(5) == np.full((len(x), 1), 4)
        return x, np.where(due, x, -100), due.astype(np.float32)


@pytest.mark.parametrize("name", [name for name in registry.names("task") if name not in REAL])
@pytest.mark.parametrize("variant", ["paper", "code"])
def test_the_packages_own_tasks_keep_the_contract(name: str, variant: str) -> None:
    try:
        made = SHIPPED.settings(["model=gru", f"task={name}", f"variant={variant}"])
    except ConfigError:
        made = SHIPPED.settings(["model=gru", f"task={name}"])
    tried_task(made.task_made)


@pytest.mark.parametrize("name", ["mnist", "mnist_flat", "har2", "ptb_char"])
@pytest.mark.data
def test_the_packages_own_data_keep_the_contract(name: str) -> None:
    model = "mlp" if name == "mnist_flat" else "gru"
    tried_task(SHIPPED.settings([f"model={model}", f"task={name}", f"data_root={DATA}"]).task_made)


def test_files_of_ones_own_keep_the_contract(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    path = tmp_path / "my.npz"
    for y in (rng.integers(0, 3, 40), rng.normal(size=40)):
        for lengths in (np.full(40, 6), rng.integers(2, 6, 40)):
            np.savez(path, x=rng.normal(size=(40, 6, 2)), y=y, lengths=lengths)
            tried_task(Series(path=str(path)))
    (tmp_path / "my.txt").write_text("the cat sat on the mat\n" * 40)
    tried_task(Text(path=str(tmp_path / "my.txt"), T=5, batch_size=2, eval_batch_size=2))


@pytest.mark.parametrize("cls", [Rows, Values, Tokens, Masked])
def test_a_task_that_keeps_the_contract_is_taken(cls: Any) -> None:
    tried_task(cls(batch_size=20))


def loading(change: Any) -> type[Rows]:
    """A class whose `load` changes the test split."""

    class Changed(Rows):
        def load(self) -> Any:
            found = super().load()
            return found | {"test": change(*found["test"])}

    return Changed


def drawing(generate: Any) -> type[Tokens]:
    class Changed(Tokens):
        pass

    Changed.generate = lambda self, rng, size: generate(self, rng, size)  # type: ignore[method-assign]
    return Changed


def having(base: type, **values: Any) -> type:
    return type("Changed", (base,), values)


def losing(loss: Any) -> type:
    return having(Values, loss=lambda self, y, target, mask=None: loss(y, target))


def last(y: Any, value: int) -> Any:
    """Labels of which the last one is another."""
    return torch.cat([y[:-1], torch.tensor([value])])


HIDDEN = np.random.default_rng(5)
REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "wide labels": (loading(lambda x, y: (x, last(y, 2))), DataError, "test: there is the label 2; output_size=2"),
    "ignored": (loading(lambda x, y: (x, last(y, -100))), DataError, "the label -100; .* needs a mask"),
    "narrow labels": (loading(lambda x, y: (x, y.int())), DataError, r"labels are in torch.int32; int64 is needed"),
    "shares": (loading(lambda x, y: (x, y.float())), DataError, "labels are in torch.float32"),
    "shape": (loading(lambda x, y: (x, y[:, None])), ConfigError, r"targets are \(30, 1\)"),
    "precision": (loading(lambda x, y: (x.double(), y)), DataError, "x is in torch.float64; float32 is needed"),
    "width": (loading(lambda x, y: (x[..., :1], y)), DataError, r"x is \(30, 4, 1\); \(B, T, 2\) is needed"),
    "vectors": (loading(lambda x, y: (x[:, 0], y)), DataError, r"x is \(30, 2\); \(B, T, 2\) is needed"),
    "infinite": (loading(lambda x, y: (x / 0, y)), DataError, "not finite"),
    "few rows": (loading(lambda x, y: (x[:2], y[:2])), DataError, "returns 2 rows of test, and `rows` says 30"),
    "no split": (having(Rows, load=lambda self: {"train": Rows.load(self)["train"]}), DataError, "no val split"),
    "complex": (loading(lambda x, y: (x + 1j, y)), DataError, "x is in torch.complex64"),
    "no tensors": (loading(lambda x, y: (x.numpy(), y)), DataError, r"\['ndarray', 'Tensor'\] for test; tensors"),
    "one tensor": (loading(lambda x, y: (x,)), DataError, "tensors .x, target. are needed"),
    "a mask": (loading(lambda x, y: (x, y, y)), ConfigError, "has a mask: redefine `loss`"),
    "error": (loading(lambda x, y: {}["x"]), ConfigError, "reading its data ends in KeyError: 'x'"),
    "no file": (loading(lambda x, y: np.load("nothing.npy")), DataError, "ends in FileNotFoundError: .*nothing.npy"),
    "truth": (having(Values, load=lambda self: {s: (x, y > 0) for s, (x, y) in Values.load(self).items()}),
              DataError, "targets are in torch.bool"),
    "unknown": (having(Rows, baseline={"f1": 0.5}), ConfigError, "baseline has 'f1', which is no metric of the task"),
    "beyond": (having(Rows, baseline={"accuracy": 50}), ConfigError, "accuracy=50, and must have a number within 0"),
    "nan": (having(Rows, baseline={"loss": float("nan")}), ConfigError, "loss=nan, and must have a number within 0 to"),
    "objective": (having(Rows, objective="classification"), ConfigError,
                  r"objective='classification' is not known: use classify or regress; did you mean 'classify'\?"),
    "no objective": (having(Values, objective="mse"), ConfigError, r"='mse' is not known: use classify or regress\.$"),
    "no scores": (having(Rows, baseline=None), ConfigError, "baseline is None, and must be the trivial predictor"),
    "its own loader": (having(Rows, train_dataloader=lambda self: []), ConfigError, "`train_dataloader`.* not call"),
    "its own download": (having(Rows, prepare_data=lambda self: None), ConfigError, "`prepare_data`, as a Light"),
    "no size": (having(Rows, output_size=0), ConfigError, "output_size is 0, and must be a whole number from 1"),
    "a size": (having(Rows, input_size=property(lambda self: {}["n"])), ConfigError, "sizes .* in KeyError: 'n'"),
    "tokens": (drawing(lambda task, rng, n: (rng.integers(0, 4, (n, 9)), rng.integers(0, 3, n))),
               ConfigError, "x has the token 3; input_size=3 allows those from 0 to 2"),
    "below": (drawing(lambda task, rng, n: (rng.integers(-1, 3, (n, 9)), rng.integers(0, 3, n))),
              ConfigError, "x has the token -1; input_size=3"),
    "no tokens": (drawing(lambda task, rng, n: (rng.random((n, 9, 3), np.float32), rng.integers(0, 3, n))),
                  ConfigError, "tokens_in is true and x is in torch.float32"),
    "lists": (drawing(lambda task, rng, n: ([[0]] * n, [0] * n)), ConfigError, r"\['list', 'list'\], and must return"),
    "few": (drawing(lambda task, rng, n: (rng.integers(0, 3, (7, 9)), rng.integers(0, 3, n))),
            ConfigError, "`generate` returns .* sequences where 20 are asked for"),
    "raises": (drawing(lambda task, rng, n: task.nothing), ConfigError, "ends in AttributeError: .*'nothing'"),
    "chance": (drawing(lambda task, rng, n: (HIDDEN.integers(0, 3, (n, 9)), rng.integers(0, 3, n))),
               ConfigError, "the same seed gives another batch the second time"),
    "constant": (drawing(lambda task, rng, n: (np.ones((n, 9), np.int64), np.arange(n) % 3)),
                 ConfigError, "another seed gives the same batch"),
    "seed": (drawing(lambda task, rng, n: Tokens.generate(task, np.random.default_rng(task.seed), n)),
             ConfigError, "train and val have the same sequences"),
    "float": (losing(lambda y, target: (y - target).mean().item()), ConfigError, "returns no function of y"),
    "detached": (losing(lambda y, target: (y - target).mean().detach()), ConfigError, "returns no function of y"),
    "losses": (losing(lambda y, target: (y - target).mean(1)), ConfigError, r"`loss` returns a tensor \(20,\)"),
    "halved": (losing(lambda y, target: (y - target.mul_(0.5)).mean()), ConfigError, "changes the targets"),
    "a float": (having(Values, measure=lambda *_: {"loss": 1.0}), ConfigError, "'loss' that is no tensor of one"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_task_that_breaks_the_contract_is_told_in_one_sentence(case: str) -> None:
    cls, kind, told = REFUSED[case]
    with pytest.raises(kind, match=told) as error:
        check_task(cls, batch_size=20)
    assert "\n" not in str(error.value)
    assert "Changed" in str(error.value)


def test_what_was_refused_is_refused_again() -> None:
    task = REFUSED["infinite"][0]()
    for _ in range(2):
        with pytest.raises(DataError, match="values of test that are not finite"):
            task.check()


def test_a_task_that_is_a_data_module_too_is_as_any() -> None:
    from lightning.pytorch import LightningDataModule

    tried_task(type("Both", (Rows, LightningDataModule), {})(batch_size=20))


def test_a_length_that_makes_no_difference_is_told() -> None:
    cls = drawing(lambda task, rng, n: (rng.integers(0, 3, (n, 9)), rng.integers(0, 3, n)))
    with pytest.raises(ConfigError, match=r"T=9 and T=18 give the same batch: `generate` must draw by self.T"):
        tried_task(cls(batch_size=20, T=9))


@pytest.mark.parametrize("name", ["input_size", "output_size", "T", "baseline"])
def test_an_attribute_that_is_not_there_is_told(name: str) -> None:
    class Lacking(ArrayTask):
        def rows(self, split: Any) -> int:
            return 1

        def load(self) -> Any:
            return {}

    for other in {"input_size", "output_size", "T", "baseline"} - {name}:
        setattr(Lacking, other, 1)
    with pytest.raises(ConfigError, match=f"Lacking in .* lacks {name}: set self.{name}, the "):
        check_task(Lacking)


def test_few_sequences_that_agree_by_chance_are_taken() -> None:
    class Coin(Tokens):
        def generate(self, rng: Any, size: int) -> Any:
            x = rng.integers(0, 2, (size, 1))
            return x, x[:, 0]

    for seed in range(20):
        tried_task(Coin(batch_size=1, val_size=1, test_size=1, seed=seed))


def test_own_losses_and_scores_know_their_labels() -> None:
    class Own(Rows):
        @classmethod
        def declared(cls) -> tuple[Metric, ...]:
            return (Metric("loss", "nats", "lower"), Metric("accuracy", "share", "higher"))

        def load(self) -> Any:
            return {split: (x, last(y, -100)) for split, (x, y) in super().load().items()}

        def loss(self, y: Any, target: Any, mask: Any = None) -> Any:
            return torch.nn.functional.cross_entropy(y, target)

        def measure(self, y: Any, target: Any, mask: Any = None) -> Any:
            return {"loss": self.loss(y, target)}

    tried_task(Own(batch_size=20))


def test_a_task_that_cannot_be_made_is_told() -> None:
    with pytest.raises(ConfigError, match=r"Rows in .*: making it ends in TypeError: .*'depth'"):
        check_task(Rows, depth=3)


def test_a_run_and_a_check_try_the_task(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = f"tried_{here.name}"
    (here / f"{name}.py").write_text(
        "from orthobench.tasks.drawn.adding import Adding\n\n\nclass Doubled(Adding):\n"
        "    def generate(self, rng, size):\n"
        "        x, y = super().generate(rng, size)\n        return x.astype(float), y\n"
    )
    write(here, {"conf/task/doubled.yaml": "batch_size: 4\n"})
    monkeypatch.syspath_prepend(str(here))
    monkeypatch.setenv("ORTHOBENCH_PLUGINS", name)
    words = ["--config-dir", "conf", "model=gru", "task=doubled", "T=5"]
    for verb, further in ((), ("trainer.max_steps=1", "logger=none")), (("check",), ()):
        assert main([*verb, *words, *further]) == 2
        error = capsys.readouterr().err
        assert f"Doubled in {name}, train: x is in torch.float64; float32 is needed" in error
        assert len(error.splitlines()) == 1
