"""Cells from outside the package: their draws follow the seed, and one that breaks the contract is told at once."""

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import orthobench
from orthobench.errors import ConfigError
from orthobench.models import contract, hidden_state_checks, make_cell
from orthobench.models.build import build_optimizer
from orthobench.parametrizations.matrix_exp import MatrixExp
from orthobench.parametrizations.neumann_cayley import NeumannCayley
from orthobench.parametrizations.stiefel import Stiefel
from tests.conftest import REPO, write

HEAD = """
import random

import numpy as np
import torch
from torch import nn
from orthobench.cells import Cell

KEPT = {}

class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.v = torch.ones(4)

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
INIT, RETURN, DRAWN, TANH = "        self.u = ", "return (h,)", "torch.rand(self.hidden_size)", "torch.tanh(p_t"
OWN, SKEW = "class Own(Cell)", "- self.theta.T)"
STEP, PROJECT = "    def step", "    def project(self, x):\n        p = super().project(x)\n        return "
WORDS = ("task=copying", "T=10", "model.hidden_size=4", "recipe=none")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration folder with `model=mine`, whose cell is `Own` of the module `own_TEST`."""
    monkeypatch.syspath_prepend(str(tmp_path))
    write(tmp_path, {"model/mine.yaml": "cell: own\nrecurrent: free\nhidden_size: 4\n"})
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
        (RETURN, "return h", r"`step` returns a Tensor and not a tuple of states, such as `\(h,\)`"),
        (
            RETURN,
            "return (h, h)",
            r"states of shapes \[\(2, 4\), \(2, 4\)\] for two sequences, and must return \[\(2, 4\)\]",
        ),
        (RETURN, "return (h[:, :3],)", r"states of shapes \[\(2, 3\)\]"),
        (DRAWN, "torch.rand(9)", r"one step of two sequences, ends in RuntimeError"),
        (DRAWN, "torch.rand(4).double()", r"parameter u is in torch.float64, the others are in"),
        ("h = torch.tanh(", "h = torch.relu(0 * ", "the input makes no difference to the answer"),
        ("h = torch.tanh(p_t", "h = torch.tanh(p_t.detach()", "no gradient reaches its parameter U"),
        (
            "self.u * state[0]",
            "state[0]",
            "no gradient reaches its parameter u: use it in `step`, or delete it, for it would be counted",
        ),
        ("state[0] @ W[0].T", "state[0]", "no gradient reaches its parameter recurrent.h"),
        (TANH, "torch.tanh(p_t - p_t.mean(0)", "depends on what other sequences are in its batch"),
        (TANH, "torch.tanh(torch.randn_like(p_t) + p_t", "another answer the second time"),
        (RETURN, "return (h.double(),)", r"returns states in \[torch.float64\], and must return them in"),
        (INIT, f"        self.v = [torch.ones(4)]\n{INIT}", "v holds a tensor that torch does"),
        (RETURN, f"self.last = h\n        {RETURN}", "last holds a tensor that torch does not know"),
        (INIT, f"        self.part = Part()\n{INIT}", r"part.v holds a tensor that torch does not know"),
        (INIT, f"        self.parts = [nn.Linear(2, 2)]\n{INIT}", r"parts holds a tensor that torch does not know"),
        (RETURN, "return (torch.from_numpy(h.detach().numpy()),)", "no gradient reaches its parameters"),
        (STEP, f"{PROJECT}p + p.flip(0)\n\n{STEP}", "its answer to the first 9 of 24 steps depends on the steps after"),
        (STEP, f"{PROJECT}p + p.roll(1, 0)\n\n{STEP}", "its answer to the first 9 of 24 steps depends on the steps"),
        (
            STEP,
            f"{PROJECT}p + torch.cat([0 * p[:1], p[:-1]])\n\n{STEP}",
            "a sequence of 24 steps has another answer when it is cut after 9 and goes on from the state there",
        ),
        (
            STEP,
            f"    def project(self, x):\n        return nn.functional.linear(x.transpose(0, 1), self.U)\n\n{STEP}",
            r"`project` of tokens \(B, T\), which stand for one-hot vectors \(B, T, I\), ends in RuntimeError",
        ),
        (
            STEP,
            f"    def learning_rate_scales(self):\n        return {{'w': 0.1}}\n\n{STEP}",
            "`learning_rate_scales` names 'w', which it may not scale; use .* alone: .*u",
        ),
        ("h = torch.tanh(p_t", "h = torch.sqrt(-1 - p_t.abs()", "numbers that are not finite"),
        ("* state[0]", "* state[0].mul_(0.5)", "`step` changes the state that it is given"),
        (RETURN, "return (h.mul_(0.5),)", r"24 steps of two sequences, ends in RuntimeError.*an inplace operation"),
        ("self.u * state[0]", "(1 + 0 * self.u) * state[0]", "the gradient of its parameter u is zero"),
        ("self.u * state[0]", "self.u.sign() * state[0]", "the gradient of its parameter u is zero"),
        (
            RETURN,
            "self.calls = getattr(self, 'calls', 0) + self.training\n        return (h / (1 + self.calls),)",
            "in training the same sequences have another answer with torch's generator in the same state",
        ),
        (
            RETURN,
            "self.asked = getattr(self, 'asked', False) or self.training\n        return (h / (1 + self.asked),)",
            "after it has been called in training the same sequences have another answer",
        ),
        (
            TANH,
            "torch.tanh(self.training * np.random.rand() + p_t",
            "in training the same sequences have another answer",
        ),
        (
            "state[0] @ W[0].T",
            "state[0] @ (W[0] if torch.is_grad_enabled() else KEPT.setdefault(0, W[0])).T",
            r"once its parameters have changed, it answers otherwise under torch.no_grad\(\)",
        ),
        (DRAWN, "torch.ones(4) * random.random()", "its u holds other numbers when it is made"),
        (DRAWN, "torch.ones(4) * np.random.rand()", "its u holds other numbers when it is made"),
        ("        self._make_parameters", "        0 and self._make_parameters", "ends in AttributeError"),
        ("__init__(self, **kwargs)", "__init__(self, rank, **kwargs)", "ends in TypeError: .*rank"),
        ("def step", "def stepp", "model.cell=own is not known.*Own in own_.* lacks step"),
        (OWN, "class Own(Cell", "which cannot be imported: SyntaxError"),
        (OWN, "raise SystemExit(2)\nclass Own(Cell)", "which cannot be imported: SystemExit: 2"),
        (OWN, "class OWN(Cell):\n    step = None\n\nclass Own(Cell)", "is the name of OWN in own_.* and of Own in"),
        (OWN, "1 / 0\nclass Own(Cell)", "which cannot be imported: ZeroDivisionError"),
    ],
)
@pytest.mark.sampled(9)
def test_a_cell_that_breaks_the_contract_is_one_sentence(
    old: str, new: str, told: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert HEAD.count(old) == 1
    plugin(folder, monkeypatch, HEAD.replace(old, new))
    with pytest.raises(ConfigError, match=told) as caught:
        _ = orthobench.build("model=mine", *WORDS, config_dir=folder).model
    assert "\n" not in str(caught.value).strip()
    assert not str(caught.value).endswith("..")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (TANH, "torch.tanh(p_t.square()"),  # even in x
        (DRAWN, "torch.zeros(self.hidden_size)"),  # W has no gradient at the start
        ("self.u * state[0]", "self.u * 9 * state[0]"),  # rounding grows
        ("state[0] @ W[0].T", "nn.functional.dropout(state[0], 0.5, self.training) @ W[0].T"),
        (INIT, f"        self.register_buffer('seen', torch.zeros(()))\n{INIT}"),
        (INIT, f"        self.same = [self.U]\n        self.part = nn.LSTM(1, 1)\n{INIT}"),
    ],
)
def test_a_cell_that_keeps_the_contract_is_accepted(
    old: str, new: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = HEAD.replace(old, new)
    if "nn.LSTM" in text:
        text = text.replace("h = torch.tanh(p_t", "h = torch.tanh(self.part(p_t[..., None])[0][..., 0] + p_t")
    if "seen" in text:  # a count that checkpoints hold
        text = text.replace(
            "return (h,)", "self.seen = self.seen + self.training\n        return (h / (1 + self.seen),)"
        )
    plugin(folder, monkeypatch, text)
    run = orthobench.build("model=mine", *WORDS, config_dir=folder)
    assert run.model.cells[0].training


@pytest.mark.parametrize("name", [path.stem for path in sorted((REPO / "conf" / "model").glob("*.yaml"))])
@pytest.mark.sampled(6)
def test_every_cell_and_map_of_the_package_keeps_the_contract(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make_cell, "is_ours", lambda cls: False)
    monkeypatch.setattr(hidden_state_checks, "_is_known", lambda cls: cls.__module__.startswith("torch"))
    declared = {"_M", "_believed"}  # by the maps that keep them
    monkeypatch.setattr(hidden_state_checks, "MODULE", hidden_state_checks.MODULE | declared)
    flat = "network: feed_forward" in (REPO / "conf" / "model" / f"{name}.yaml").read_text(encoding="utf-8")
    task = ["task=mnist_flat"] if flat else ["task=adding", "T=9"]
    assert orthobench.build(f"model={name}", *task, "recipe=none").parameters["total"]


@pytest.mark.parametrize("cls", [NeumannCayley, Stiefel, MatrixExp])
def test_a_map_may_be_derived_from_one_of_the_package(cls: type) -> None:
    own: Any = type("Own", (cls,), {"__module__": "own"})
    assert isinstance(contract.tried_map(own, {"n": 4, "rng": np.random.default_rng(1)}), cls)


MAP = """
import numpy as np
import torch
from torch import nn
from orthobench.parametrizations import Parametrization

class Turned(Parametrization):
    def __init__(self, n, rng):
        super().__init__(n)
        self.theta = nn.Parameter(torch.as_tensor(rng.normal(size=(n, n)), dtype=torch.float32))

    def forward(self):
        return torch.linalg.matrix_exp(self.theta - self.theta.T)
"""


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("", "", None),
        (SKEW, "- self.theta.T)[:1]", r"`forward` returns \(1, 4\) for n=4, and must return a matrix \(4, 4\)"),
        ("return torch", "torch", "`forward` returns NoneType for n=4"),
        (SKEW, "- self.theta.T).detach()", "no gradient reaches its parameters"),
        (SKEW, "+ self.theta.T)", "its first matrix is not of the kind that it is constrained to"),
        ("(n, n)), dtype", "(n, 3)), dtype", "making it, and its matrix, ends in RuntimeError"),
        (SKEW, "- self.theta.T) * float('nan')", "its first matrix holds numbers that are not finite"),
        (
            "    def forward(self):",
            "    def forward(self):\n        self.last = self.theta.exp()",
            "last holds a tensor that",
        ),
        (
            STEP.replace("step", "forward"),
            "    learning_rate_scales = lambda self: {'w': 2.0}\n\n    def forward",
            "names 'w'",
        ),
        ("rng.normal(size=(n, n))", "np.random.normal(size=(n, n))", "its theta holds other numbers when it is made"),
        ("    def forward", "    limits = staticmethod(lambda n: {'q': n})\n\n    def forward", "`limits` names q"),
    ],
)
@pytest.mark.sampled(3)
def test_a_map_that_breaks_the_contract_is_one_sentence(
    old: str, new: str, told: str | None, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin(folder, monkeypatch, MAP.replace(old, new) if old else MAP)
    words = ("model=rnn", "model.recurrent=turned", *WORDS)
    if told is None:
        assert orthobench.build(*words).parameters["recurrent"] == 16
        return
    with pytest.raises(ConfigError, match=told):
        _ = orthobench.build(*words).model


def test_a_free_map_keeps_its_factors_on_the_rate(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = "    constrained = False\n    learning_rate_scales = lambda self: {'theta': 0.1}\n\n    def forward"
    plugin(folder, monkeypatch, MAP.replace("    def forward", own))
    run = orthobench.build("model=rnn", "model.recurrent=turned", "optimizer.lr=0.5", *WORDS)
    free, slow = build_optimizer(run.settings, run.model).param_groups
    assert (free["name"], free["lr"], slow["name"], slow["lr"]) == ("free", 0.5, "free x 0.1", 0.05)
    assert [p.shape for p in slow["params"]] == [(4, 4)]


RULE = """
from dataclasses import dataclass
from orthobench.models.optim import Rule

@dataclass(frozen=True)
class Signs(Rule):
    def step(self, p, g, memory, lr):
        for a, b in zip(p, g):
            a.sub_(lr * b.sign())
"""


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("", "", None),
        ("a.sub_(lr * b.sign())", "a = a - lr * b.sign()", "`step` moves nothing: it must change the tensors of p"),
        ("a.sub_(lr * b.sign())", "a.sub_(b.sing())", "making it, and one step, ends in AttributeError"),
    ],
)
def test_a_rule_that_breaks_the_contract_is_one_sentence(
    old: str, new: str, told: str | None, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin(folder, monkeypatch, RULE.replace(old, new) if old else RULE)
    write(folder, {"optimizer/signs.yaml": "name: signs\nlr: 1e-3\n"})
    run = orthobench.build("model=rnn", "optimizer=signs", *WORDS, config_dir=folder)
    if told is None:
        assert build_optimizer(run.settings, run.model).param_groups
        return
    with pytest.raises(ConfigError, match=told):
        build_optimizer(run.settings, run.model)


def test_a_model_without_a_cell_is_refused(folder: Path) -> None:
    (folder / "model" / "mine.yaml").write_text("recurrent: free\nhidden_size: 4\n")
    with pytest.raises(ConfigError, match="model=mine: its file names no cell"):
        orthobench.build("model=mine", *WORDS, config_dir=folder)


def test_a_class_with_the_name_of_a_shipped_one_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plugin(folder, monkeypatch, HEAD.replace("class Own", "class GRU"))
    with pytest.raises(ConfigError, match=r"cell=gru: GRU in own_.* has the name of one that orthobench has"):
        orthobench.build("model=gru", *WORDS)


def test_two_classes_of_one_name_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plugin(folder, monkeypatch, HEAD)
    first = os.environ["ORTHOBENCH_PLUGINS"]
    (folder / f"{first}_2.py").write_text(HEAD)
    monkeypatch.setenv("ORTHOBENCH_PLUGINS", f"{first},{first}_2")
    told = rf"cell=own is the name of Own in {first} and of Own in {first}_2, .*: give one of them another"
    with pytest.raises(ConfigError, match=told):
        orthobench.build("model=mine", *WORDS, config_dir=folder)
    (folder / f"{first}_2.py").write_text(f"from {first} import Own\n")
    sys.modules.pop(f"{first}_2")
    assert orthobench.build("model=mine", *WORDS, config_dir=folder).model.cells


def test_without_plug_ins_it_is_said_where_they_are_looked_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ORTHOBENCH_PLUGINS", raising=False)
    with pytest.raises(ConfigError, match=r"model.cell=own is not known.*that \$ORTHOBENCH_PLUGINS names"):
        orthobench.build("model=mine", *WORDS, config_dir=folder)
    with pytest.raises(ConfigError, match=r"model=mine is not known.*--config-dir FOLDER"):
        orthobench.build("model=mine", *WORDS)
