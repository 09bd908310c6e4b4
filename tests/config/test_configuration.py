"""Settings composed without Hydra, or from what an earlier run left, are Hydra's own, and are checked once."""

import os
import shutil
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

import orthobench
from orthobench.common import registry
from orthobench.config import configuration, plain
from orthobench.config.check import check
from orthobench.config.files import conf_dir, yaml_files
from orthobench.config.words import parsed
from orthobench.config.yaml_file import AsOmegaConf, read_yaml
from orthobench.errors import ConfigError
from orthobench.study.catalogue import SHIPPED, Catalogue
from orthobench.tasks.base import Task
from tests.conftest import write

SAME = [
    "model=scornn task=copying T=20",
    "model=scornn task=copying T=20 seed=3",
    "+T=20 ++seed=4 optimizer.lr=1e-2",
    "T=10 T=20",
    "model=gru model.recurrent=householder task=adding model.m=3",
    "model=ncgru model.orthogonal=[c,r] task=adding",
    "task=ptb_char model=lstm recipe=none trainer.max_epochs=null trainer.max_steps=5",
    "experiment=sgornn/table2 cell=vprnn seed=2 logger=none",
    "optimizer=sgd optimizer.lr=0.5",
    "model.rho='max' variant=code",
]


@pytest.mark.parametrize("text", SAME)
@pytest.mark.sampled(5)
def test_they_are_the_same(text: str) -> None:
    expected = check(SHIPPED.compose(text.split()))
    assert SHIPPED.settings(text.split()) == expected == SHIPPED.settings(text.split())


RATES = [["optimizer.lr=1e-2"], ["optimizer.lr=5"], ["optimizer.lr=1e-2", "optimizer.lr_recurrent=1e-5"],
         ["optimizer.lr_recurrent=1e-5"], []]  # fmt: skip


@pytest.mark.parametrize("text", ["model=scornn task=copying", "model=gru task=adding", "model=scornn recipe=none T=9"])
def test_another_seed_and_other_rates_are_what_hydra_composes(text: str) -> None:
    for own in RATES:  # each follows one of the same words with other values
        SHIPPED.settings([*text.split(), *(f"{word.partition('=')[0]}=0.3" for word in own), "seed=5"])
        words = [*text.split(), *own, "seed=6"]
        found, expected = SHIPPED.settings(words), check(SHIPPED.compose(words))
        assert found == expected
        assert repr(found.identity) == repr(expected.identity)


@pytest.mark.parametrize("word", ["optimizer.lr=0", "optimizer.lr=-1", "optimizer.lr_recurrent=0", "optimizer.lr=1e39"])
def test_a_rate_that_is_none_is_refused_after_one_that_is(word: str) -> None:
    words = ["model=scornn", "task=copying", "seed=1"]
    SHIPPED.settings([*words, f"{word.partition('=')[0]}=0.1"])
    with pytest.raises(ConfigError) as expected:
        check(SHIPPED.compose([*words, word]))
    with pytest.raises(ConfigError) as found:
        SHIPPED.settings([*words, word])
    assert str(found.value) == str(expected.value)


@pytest.mark.parametrize(
    "words",
    [["~optimizer.lr"], ["T=1,2"], ["model=rnn,gru"], ["model@task=rnn"], ["hydra.run.dir=x"], ["T=${oc.env:HOME}"],
     ["experiment=sgornn/table2"], ["model=scron"], ["T"]],
    ids=" ".join,
)  # fmt: skip
def test_what_one_refuses_the_other_refuses(words: list[str]) -> None:
    SHIPPED.settings(["model=rnn"])
    with pytest.raises(ConfigError) as expected:
        check(SHIPPED.compose(SHIPPED.expand(words)))
    with pytest.raises(ConfigError) as found:
        SHIPPED.settings(words)
    assert str(found.value) == str(expected.value)


def test_a_link_to_nowhere_is_no_file_of_a_folder(tmp_path: Path) -> None:
    """Emacs locks a file that is open in it by one."""
    write(tmp_path, {"model/mine.yaml": "cell: elman\nhidden_size: 7\n"})
    (tmp_path / "model" / ".#mine.yaml").symlink_to("somebody@somewhere.1:2")
    assert Catalogue((tmp_path,)).settings(["model=mine", "task=copying", "T=5"]).model["hidden_size"] == 7
    assert {"mine", ".#mine"} & set(Catalogue((tmp_path,)).options("model")) == {"mine"}


@pytest.mark.parametrize("fails", ["stat", "read_bytes"])
def test_a_file_that_cannot_be_read_is_refused(fails: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, real = write(tmp_path, {"model/mine.yaml": "cell: elman\n"}) / "model" / "mine.yaml", getattr(Path, fails)

    def refuse(self: Path, *words: Any, **named: Any) -> Any:
        if self == path:
            raise PermissionError(13, "Permission denied", str(path))
        return real(self, *words, **named)

    monkeypatch.setattr(Path, fails, refuse)
    with pytest.raises(ConfigError, match=r"mine.yaml cannot be read \(Permission denied\): make it readable, or move"):
        Catalogue((tmp_path,)).settings(["model=mine", "task=copying", "T=5"])


def test_an_environment_that_has_changed_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    for root in ("here", "there"):
        monkeypatch.setenv("ORTHOBENCH_RUNS", root)
        assert SHIPPED.settings(["T=5"]).run["runs_root"] == root


@pytest.mark.parametrize(("line", "key"), [("hidden_size: ${seed}", "seed"), ("hidden_size: ${T}", "T")])
def test_a_value_that_refers_to_another_follows_it(line: str, key: str, tmp_path: Path) -> None:
    write(tmp_path, {"model/mine.yaml": f"cell: elman\n{line}\n"})
    for value in (5, 6):
        words = ["model=mine", "task=copying", f"{key}={value}"]
        assert Catalogue((tmp_path,)).settings(words).model["hidden_size"] == value
        assert Catalogue((tmp_path,)).settings(words) == check(Catalogue((tmp_path,)).compose(words))


def test_a_value_of_the_environment_and_of_another_value_follows_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORTHOBENCH_DATA", "here")
    write(tmp_path, {"model/mine.yaml": "cell: elman\nactivation: ${oc.env:ORTHOBENCH_DATA,data}-${seed}\n"})
    for seed in (3, 4):
        with pytest.raises(ConfigError, match=f"model.activation='here-{seed}' is not known"):
            Catalogue((tmp_path,)).settings(["model=mine", "task=copying", "T=9", f"seed={seed}"])


def test_a_file_behind_a_link_is_a_file_of_the_folder(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    elsewhere = mine / "shared"
    elsewhere.mkdir(parents=True)
    (mine / "model").symlink_to(elsewhere)
    (elsewhere / "back").symlink_to(mine)
    file, words = elsewhere / "own.yaml", ["model=own", "task=copying", "T=5"]
    for size in (7, 18):
        file.write_text(f"cell: elman\nhidden_size: {size}\n")
        assert Catalogue((mine,)).settings(words).model["hidden_size"] == size
    (elsewhere / "scornn.yaml").write_text("cell: elman\nhidden_size: 7\n")
    with pytest.raises(ConfigError, match="orthobench has a file of this name"):
        Catalogue((mine,)).settings(words)


def test_a_file_that_keeps_its_time_is_read_again_all_the_same(tmp_path: Path) -> None:
    file, words = tmp_path / "model" / "own.yaml", ["model=own", "task=copying", "T=5"]
    for size in (7, 18):
        write(tmp_path, {"model/own.yaml": f"cell: elman\nhidden_size: {size}\n"})
        os.utime(file, (0, 0))
        assert Catalogue((tmp_path,)).settings(words).model["hidden_size"] == size


def test_a_table_that_has_changed_is_read_again(tmp_path: Path) -> None:
    table: dict[str, Any] = {"description": "Mine", "track": "published", "seeds": [1], "margin": {}, "unstated": []}
    for rate in (0.5, 0.25):
        common = ["task=copying", "recipe=none", "optimizer=sgd", f"optimizer.lr={rate}"]
        content = table | {"presets": {}, "common": common, "cells": {"rnn": ["model=rnn"]}}
        write(tmp_path, {"experiment/mine/table.yaml": content})
        found = Catalogue((tmp_path,)).settings(["experiment=mine/table", "cell=rnn"])
        assert found.optimizer["lr"] == rate


def test_threads_may_compose_beside_each_other() -> None:
    words = [[f"model={model}", "task=adding", f"T={T}"] for T in (5, 6) for model in ("rnn", "gru", "lstm", "scornn")]
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(SHIPPED.compose, words))
    assert [one.choices["model"] for one in found] == [word[0].partition("=")[2] for word in words]


GROUPS = ("model", "task", "trainer", "recipe", "optimizer", "schedule", "logger")


def choice(number: int) -> list[str]:
    """A file of every group: of the recipes the one of this number, and of the others in turn."""
    return [f"{group}={(known := SHIPPED.options(group))[number % len(known)]}" for group in GROUPS]


@pytest.mark.parametrize(
    "number", [0, 17, 41, pytest.param(range(len(SHIPPED.options("recipe"))), marks=pytest.mark.slow)]
)
def test_files_laid_over_each_other_are_what_hydra_composes(number: int | range) -> None:
    for one in [number] if isinstance(number, int) else number:
        for words in (choice(one), choice(one)[:2], choice(one)[1:2]):  # the last two with the recipe of the pair
            ours, hydras = configuration._plain(tuple(words)), SHIPPED.compose(words)
            assert ours is not None
            assert ours == hydras
            assert repr(ours.values) == repr(hydras.values)  # types and order as well


@pytest.mark.parametrize("root", ["/data", "~/data", "$SCRATCH/data", "${SCRATCH}/a$$b", ""])
def test_a_folder_that_the_environment_names_is_what_hydra_composes(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCRATCH", "/scratch")
    monkeypatch.setenv("ORTHOBENCH_DATA", root)
    words = choice(0)[:2]
    found = configuration._plain(tuple(words))
    assert found is not None
    assert found == SHIPPED.compose(words)
    assert not {"~", "S"} & set(found.values["data_root"])


def test_every_file_of_conf_is_among_the_choices_that_are_compared() -> None:
    count = len(SHIPPED.options("recipe"))
    assert all(len(SHIPPED.options(group)) <= count for group in GROUPS)
    groups = {
        path.parent.relative_to(conf_dir()).parts[0] for path in yaml_files(conf_dir()) if path.parent != conf_dir()
    }
    assert groups == {*GROUPS, "experiment", "hydra"}  # tables are no files of Hydra's, launchers no settings of runs


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("model/odd.yaml", "defaults: [lstm]\ncell: lstm\n"),
        ("model/odd.yaml", "# @package _global_\nT: 3\n"),
        ("model/odd.yaml", "cell: lstm\nhidden_size: ${T}\n"),
        ("model/odd.yaml", "cell: lstm\nhidden_size: ???\n"),
        ("model/odd.yaml", "cell: [lstm\n"),
        ("config.yaml", "defaults: [model: scornn, _self_]\n"),
        ("config.yaml", "defaults: [_self_, model: scornn]\nseed: ${oc.env:HOME,1}\n"),
    ],
)
def test_a_file_with_more_than_values_is_left_to_hydra(
    name: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(conf_dir(), tmp_path, dirs_exist_ok=True)
    (tmp_path / name).write_text(text)
    monkeypatch.setattr(plain, "conf_dir", lambda: tmp_path)
    assert plain.composed({"model": "odd"} if name.startswith("model") else {}) is None


@pytest.mark.parametrize("word", ["model=../task/copying", "model=nothing", "model=[lstm]", "nothing=lstm"])
def test_a_choice_that_is_none_is_left_to_hydra(word: str) -> None:
    assert configuration._plain((word,)) is None


@pytest.mark.parametrize("written", ["1e-3", "0.5", "-1e3", ".5", "1_000", "0x10", "010", "1:30", "2020-01-01", "yes",
                                     "~", "null", "1.", "inf", ".inf", "1e3", "on", "''"])  # fmt: skip
def test_a_value_of_a_file_is_read_as_omegaconf_reads_it(written: str, tmp_path: Path) -> None:
    (path := tmp_path / "one.yaml").write_text(f"a: {written}\n")
    assert repr(read_yaml(path, AsOmegaConf)) == repr(OmegaConf.to_container(OmegaConf.load(path)))


HERE = ["T=5", "model=lru", "recipe=scornn/copying", "optimizer.lr=1e-3", "T=1e3", "T=-0", "T=-1.5e+3", "T=null",
        "cell=lstm_T100_lr1e-3", "cell=true", "cell=a.b-c/d", "task.name=x", "++cell=no", "task.length=[16,-3,0]",
        "model=[7]"]  # fmt: skip
BEYOND = ["+T=05", "cell=True", "T=Null", "cell=nan", "cell=Inf", "T=1_000", "T=1.", "T=.5", "cell=2a", "cell=-a",
          "trainer.max_time=00:01", "cell='a'", "~T=5", "a-b=1", "cell=é", "T=\u0661", "cell=a b", "T=5 ",
          "cell=a\n", "T=[]", "T=[1,]", "T=[1, 2]", "T=[01]", "T=[1.0]", "T=[a]", "T=[[1]]", "T=[1],[2]",
          f"T=[{'1,' * 5000}1]"]  # fmt: skip


@pytest.mark.parametrize("word", HERE)
def test_a_plain_word_is_read_as_hydra_reads_it(word: str) -> None:
    theirs = parsed(word)
    key = theirs.key_or_group
    assert repr(configuration._plain_word(word)) == repr((key in GROUPS, key, theirs.value()))


@pytest.mark.parametrize("word", BEYOND)
def test_a_word_with_more_than_a_number_or_a_name_is_left_to_hydra(word: str) -> None:
    assert configuration._plain_word(word) is None


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[Any]:
    """How often each class was looked up, by kind and name, and how many tasks were made, as `tasks`."""
    found: Counter[Any] = Counter()
    find, made = registry.find, Task.__init__

    def count_find(kind: str, name: str, key: str) -> type:
        found[kind, name] += 1
        return find(kind, name, key)

    @wraps(made)
    def count_task(self: Task, *args: Any, **kwargs: Any) -> None:
        found["tasks"] += 1
        made(self, *args, **kwargs)

    monkeypatch.setattr(registry, "find", count_find)
    monkeypatch.setattr(Task, "__init__", count_task)
    return found


@pytest.mark.parametrize(
    ("words", "cell"),
    [
        (("model=scornn", "task=copying", "T=20"), "elman"),
        (("model=ncgru", "task=adding", "T=20", "model.orthogonal=[c,r]"), "gru"),
        (("model=lstm", "task=adding", "T=20", "model.layers=3"), "lstm"),
        (("model=spectral_mlp", "task=mnist_flat"), None),
    ],
    ids=lambda words: words if isinstance(words, str) else None,
)
@pytest.mark.parametrize("budget", [(), ("params=30000",)], ids=["plain", "params"])
def test_a_build_finds_each_class_once_and_makes_one_task(
    words: tuple[str, ...], cell: str | None, budget: tuple[str, ...], counted: Counter[Any]
) -> None:
    exp = orthobench.build(*words, *budget)
    assert exp.model is not None
    assert exp.duration.steps
    assert counted.pop("tasks") == 1
    assert set(counted.values()) == {1}
    assert {kind for kind, _ in counted} == {"task", "network", "parametrization", "optimizer", "schedule"} | (
        {"cell"} if cell else set()
    )


def test_a_second_rule_is_found_too(counted: Counter[Any]) -> None:
    orthobench.build("model=scornn", "task=copying", "T=20", "optimizer=adam", "optimizer.recurrent=rmsprop_tf")
    assert counted["optimizer", "adam"] == counted["optimizer", "rmsprop_tf"] == 1


def test_another_seed_has_a_task_of_its_own() -> None:
    first = orthobench.build("model=rnn", "task=adding", "T=20", "seed=1")
    second = type(first)(first.settings.with_seed(2))
    assert (first.task.seed, second.task.seed) == (1, 2)
    assert first.task.sample(2, 0)[0].equal(second.task.sample(2, 0)[0])
    assert not first.task.batch("train", 0, 0)[0].equal(second.task.batch("train", 0, 0)[0])


def test_a_variant_where_there_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match="variant=code does not apply to task=parity with model=gru: neither has"):
        SHIPPED.settings(["model=gru", "task=parity", "variant=code"])
    assert SHIPPED.settings(["model=gru", "task=adding", "recipe=none", "variant=code"]).task["variant"] == "code"
