"""`description:` and `cite:` of a file: read by the verbs, seen by no constructor and no run id."""

from pathlib import Path

import pytest

from orthobench.errors import ConfigError
from orthobench.study.catalogue import SHIPPED, Catalogue

OWN = "network: recurrent\ncell: lstm\nrecurrent: free\nhidden_size: 7\n"


def folder(tmp_path: Path, text: str) -> tuple[Path]:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "mine.yaml").write_text(text)
    return (tmp_path,)


def test_they_are_no_part_of_the_settings() -> None:
    values = SHIPPED.compose(["model=lstm", "task=adding"]).values
    assert not {"description", "cite"} & (set(values["model"]) | set(values["task"]))


def test_they_do_not_change_the_run_id(tmp_path: Path) -> None:
    plain = Catalogue(folder(tmp_path, OWN)).settings(["model=mine"]).run_id
    (tmp_path / "model" / "mine.yaml").write_text(f"description: A model\ncite: [a, b]\n{OWN}")
    assert Catalogue((tmp_path,)).settings(["model=mine"]).run_id == plain
    assert Catalogue((tmp_path,)).composer().settings(["model=mine", "seed=1"]).run_id == plain


def test_they_are_read_from_the_file(tmp_path: Path) -> None:
    about, values = Catalogue(folder(tmp_path, f"description: A\n  model\ncite: key\n{OWN}")).about("model", "mine")
    assert (about.description, about.cite) == ("A model", ("key",))
    assert set(values) == {"network", "cell", "recurrent", "hidden_size"}
    (tmp_path / "model" / "mine.yaml").write_text(OWN)
    about, _ = Catalogue((tmp_path,)).about("model", "mine")
    assert (about.description, about.cite) == ("", None)


@pytest.mark.parametrize(
    ("text", "message"), [("cite: {a: b}\n", "cite"), ("description: [a]\n", "description"), ("a: [", "not valid YAML")]
)
def test_a_wrong_one_is_refused(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        Catalogue(folder(tmp_path, text)).about("model", "mine")
    with pytest.raises(ConfigError, match=message):
        Catalogue((tmp_path,)).settings(["model=mine"])


@pytest.mark.parametrize("word", ["model.cite=x", "model.description=x", "task.description=x"])
def test_nobody_sets_them_on_the_command_line(word: str) -> None:
    with pytest.raises(ConfigError, match=r"does not apply to (model|task)="):
        SHIPPED.settings([word])
    with pytest.raises(ConfigError, match=r"does not apply to (model|task)="):
        SHIPPED.composer().settings([word])
