"""Settings that are composed from what an earlier run left equal those that Hydra composes by itself."""

from pathlib import Path
from typing import Any

import pytest

from orthobench.config.check import check
from orthobench.config.compose import compose
from orthobench.config.files import options
from orthobench.config.many import settings
from orthobench.config.table import expand
from orthobench.errors import ConfigError

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
    expected = check(compose(text.split()))
    assert settings(text.split()) == expected == settings(text.split())


@pytest.mark.parametrize(
    "words",
    [["~optimizer.lr"], ["T=1,2"], ["model=rnn,gru"], ["model@task=rnn"], ["hydra.run.dir=x"], ["T=${oc.env:HOME}"],
     ["experiment=sgornn/table2"], ["model=scron"], ["T"]],
    ids=" ".join,
)  # fmt: skip
def test_what_one_refuses_the_other_refuses(words: list[str]) -> None:
    settings(["model=rnn"])
    with pytest.raises(ConfigError) as expected:
        check(compose(expand(words)))
    with pytest.raises(ConfigError) as found:
        settings(words)
    assert str(found.value) == str(expected.value)


def test_a_file_that_has_changed_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "model" / "mine.yaml"
    file.parent.mkdir()
    file.write_text("cell: elman\nhidden_size: 7\n")
    words = ["model=mine", "task=copying", "T=5"]
    assert settings(words, (tmp_path,)).model["hidden_size"] == 7
    file.write_text("cell: elman\nhidden_size: 18\n")
    assert settings(words, (tmp_path,)).model["hidden_size"] == 18


def test_a_link_to_nowhere_is_no_file_of_a_folder(tmp_path: Path) -> None:
    """Emacs locks a file that is open in it by one."""
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "mine.yaml").write_text("cell: elman\nhidden_size: 7\n")
    (tmp_path / "model" / ".#mine.yaml").symlink_to("somebody@somewhere.1:2")
    assert settings(["model=mine", "task=copying", "T=5"], (tmp_path,)).model["hidden_size"] == 7
    assert {"mine", ".#mine"} & set(options("model", (tmp_path,))) == {"mine"}


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
        settings(["model=mine", "task=copying", "T=5"], (tmp_path,))


def test_an_environment_that_has_changed_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    for root in ("here", "there"):
        monkeypatch.setenv("ORTHOBENCH_RUNS", root)
        assert settings(["T=5"]).run["runs_root"] == root
