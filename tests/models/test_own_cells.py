"""Cells from outside the package: their draws follow the seed, and one that breaks the contract is told at once."""

from pathlib import Path

import pytest
import torch

import orthobench
from orthobench.errors import ConfigError

HEAD = """
import torch
from torch import nn
from orthobench.cells import Cell

class Own(Cell):
    gates = ("h",)

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self._make_parameters(orthogonal=("h",), biased=self.gates)
        self.u = nn.Parameter(torch.rand(self.hidden_size))

    def step(self, p_t, state, W):
        h = torch.tanh(p_t + self.u * state[0] @ W[0].T)
        return (h,)
"""
WORDS = ("task=copying", "T=10", "model.hidden_size=4", "recipe=none")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration folder with `model=mine`, whose cell is `Own` of the module `own_TEST`."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "mine.yaml").write_text("cell: own\nrecurrent: free\nhidden_size: 4\n")
    return tmp_path


def plugin(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    name = f"own_{folder.name.replace('-', '_')}"
    (folder / f"{name}.py").write_text(text)
    monkeypatch.setenv("ORTHOBENCH_PLUGINS", name)


def test_what_a_cell_draws_by_torch_follows_the_seed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plugin(folder, monkeypatch, HEAD)

    def drawn(seed: int) -> torch.Tensor:
        torch.rand(seed + 3)
        before = torch.get_rng_state()
        run = orthobench.build("model=mine", *WORDS, f"seed={seed}", config_dir=folder)
        assert run.model.cells[0].u.shape == (4,)
        assert torch.equal(torch.get_rng_state(), before), "what comes after it draws as before"
        return run.model.cells[0].u.detach().clone()

    assert torch.equal(drawn(1), drawn(1))
    assert not torch.equal(drawn(1), drawn(2))


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("return (h,)", "return h", r"`step` returns a Tensor and not a tuple of states, such as `\(h,\)`"),
        (
            "return (h,)",
            "return (h, h)",
            r"states of shapes \[\(2, 4\), \(2, 4\)\] for two sequences, not \[\(2, 4\)\]",
        ),
        ("return (h,)", "return (h[:, :3],)", r"states of shapes \[\(2, 3\)\]"),
        ("torch.rand(self.hidden_size)", "torch.rand(9)", r"one step of two sequences, ends in RuntimeError"),
        (
            "torch.rand(self.hidden_size)",
            "torch.rand(4).double()",
            r"parameter u is in torch.float64, the others are in",
        ),
        ("        self._make_parameters", "        0 and self._make_parameters", "ends in AttributeError"),
        ("__init__(self, **kwargs)", "__init__(self, rank, **kwargs)", "ends in TypeError: .*rank"),
        ("def step", "def stepp", "model.cell=own is not known.*Own in own_.* lacks step"),
        ("class Own(Cell)", "class Own(Cell", "which cannot be imported: SyntaxError"),
        ("class Own(Cell)", "1 / 0\nclass Own(Cell)", "which cannot be imported: ZeroDivisionError"),
    ],
)
def test_a_cell_that_breaks_the_contract_is_one_sentence(
    old: str, new: str, told: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert HEAD.count(old) == 1
    plugin(folder, monkeypatch, HEAD.replace(old, new))
    with pytest.raises(ConfigError, match=told) as caught:
        _ = orthobench.build("model=mine", *WORDS, config_dir=folder).model
    assert "\n" not in str(caught.value).strip()


def test_a_class_with_the_name_of_a_shipped_one_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plugin(folder, monkeypatch, HEAD.replace("class Own", "class GRU"))
    with pytest.raises(ConfigError, match=r"cell=gru: GRU in own_.* has the name of one that orthobench has"):
        orthobench.build("model=gru", *WORDS)


def test_without_plug_ins_it_is_said_where_they_are_looked_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ORTHOBENCH_PLUGINS", raising=False)
    with pytest.raises(ConfigError, match=r"model.cell=own is not known.*that \$ORTHOBENCH_PLUGINS names"):
        orthobench.build("model=mine", *WORDS, config_dir=folder)
    with pytest.raises(ConfigError, match=r"model=mine is not known.*--config-dir FOLDER"):
        orthobench.build("model=mine", *WORDS)
