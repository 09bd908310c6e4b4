"""Settings that are composed from what an earlier run left equal those that Hydra composes by itself."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from orthobench.config.check import check
from orthobench.errors import ConfigError
from orthobench.study.catalogue import SHIPPED, Catalogue

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


def test_a_file_that_has_changed_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "model" / "mine.yaml"
    file.parent.mkdir()
    file.write_text("cell: elman\nhidden_size: 7\n")
    words = ["model=mine", "task=copying", "T=5"]
    assert Catalogue((tmp_path,)).settings(words).model["hidden_size"] == 7
    file.write_text("cell: elman\nhidden_size: 18\n")
    assert Catalogue((tmp_path,)).settings(words).model["hidden_size"] == 18


def test_a_link_to_nowhere_is_no_file_of_a_folder(tmp_path: Path) -> None:
    """Emacs locks a file that is open in it by one."""
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "mine.yaml").write_text("cell: elman\nhidden_size: 7\n")
    (tmp_path / "model" / ".#mine.yaml").symlink_to("somebody@somewhere.1:2")
    assert Catalogue((tmp_path,)).settings(["model=mine", "task=copying", "T=5"]).model["hidden_size"] == 7
    assert {"mine", ".#mine"} & set(Catalogue((tmp_path,)).options("model")) == {"mine"}


@pytest.mark.parametrize("fails", ["stat", "read_bytes"])
def test_a_file_that_cannot_be_read_is_refused(fails: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, real = tmp_path / "model" / "mine.yaml", getattr(Path, fails)
    path.parent.mkdir()
    path.write_text("cell: elman\n")

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
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "mine.yaml").write_text(f"cell: elman\n{line}\n")
    for value in (5, 6):
        words = ["model=mine", "task=copying", f"{key}={value}"]
        assert Catalogue((tmp_path,)).settings(words).model["hidden_size"] == value
        assert Catalogue((tmp_path,)).settings(words) == check(Catalogue((tmp_path,)).compose(words))


def test_a_value_of_the_environment_and_of_another_value_follows_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORTHOBENCH_DATA", "here")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "mine.yaml").write_text("cell: elman\nactivation: ${oc.env:ORTHOBENCH_DATA,data}-${seed}\n")
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
    file.parent.mkdir()
    for size in (7, 18):
        file.write_text(f"cell: elman\nhidden_size: {size}\n")
        os.utime(file, (0, 0))
        assert Catalogue((tmp_path,)).settings(words).model["hidden_size"] == size


def test_a_table_that_has_changed_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "experiment" / "mine" / "table.yaml"
    file.parent.mkdir(parents=True)
    for rate in (0.5, 0.25):
        file.write_text(
            "description: Mine\ntrack: published\nseeds: [1]\nmargin: {}\nunstated: []\npresets: {}\n"
            f"common: [task=copying, recipe=none, optimizer=sgd, optimizer.lr={rate}]\ncells:\n  rnn: [model=rnn]\n"
        )
        found = Catalogue((tmp_path,)).settings(["experiment=mine/table", "cell=rnn"])
        assert found.optimizer["lr"] == rate


def test_threads_may_compose_beside_each_other() -> None:
    words = [[f"model={model}", "task=adding", f"T={T}"] for T in (5, 6) for model in ("rnn", "gru", "lstm", "scornn")]
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(SHIPPED.compose, words))
    assert [one.choices["model"] for one in found] == [word[0].partition("=")[2] for word in words]
