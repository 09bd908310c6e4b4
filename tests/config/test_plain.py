"""Files of conf/ that are put together without Hydra give what Hydra composes of them."""

import shutil
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from orthobench.config import configuration, plain
from orthobench.config.files import conf_dir, yaml_files
from orthobench.config.words import parsed
from orthobench.config.yaml_file import AsOmegaConf, read_yaml
from orthobench.study.catalogue import SHIPPED

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
        "cell=lstm_T100_lr1e-3", "cell=true", "cell=a.b-c/d", "task.name=x", "++cell=no"]  # fmt: skip
BEYOND = ["+T=05", "cell=True", "T=Null", "cell=nan", "cell=Inf", "T=1_000", "T=1.", "T=.5", "cell=2a", "cell=-a",
          "trainer.max_time=00:01", "cell='a'", "~T=5", "a-b=1", "cell=é", "T=\u0661", "cell=a b", "T=5 ",
          "cell=a\n"]  # fmt: skip


@pytest.mark.parametrize("word", HERE)
def test_a_plain_word_is_read_as_hydra_reads_it(word: str) -> None:
    theirs = parsed(word)
    key = theirs.key_or_group
    assert repr(configuration._plain_word(word)) == repr((key in GROUPS, key, theirs.value()))


@pytest.mark.parametrize("word", BEYOND)
def test_a_word_with_more_than_a_number_or_a_name_is_left_to_hydra(word: str) -> None:
    assert configuration._plain_word(word) is None
