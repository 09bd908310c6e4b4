"""`description:` and `cite:` of a file: read by the verbs, seen by no constructor and no run id."""

from pathlib import Path

import pytest

from orthobench.errors import ConfigError
from orthobench.study.catalogue import SHIPPED, Catalogue
from tests.conftest import write

OWN = "network: recurrent\ncell: lstm\nrecurrent: free\nhidden_size: 7\n"


def folder(tmp_path: Path, text: str) -> tuple[Path]:
    return (write(tmp_path, {"model/mine.yaml": text}),)


def test_they_are_no_part_of_the_settings_and_do_not_change_the_run_id(tmp_path: Path) -> None:
    values = SHIPPED.compose(["model=lstm", "task=adding"]).values
    assert not {"description", "cite"} & (set(values["model"]) | set(values["task"]))
    plain = Catalogue(folder(tmp_path, OWN)).settings(["model=mine"]).run_id
    told = folder(tmp_path, f"description: A model\ncite: [a, b]\n{OWN}")
    assert Catalogue(told).settings(["model=mine"]).run_id == plain
    assert Catalogue(told).composer().settings(["model=mine", "seed=1"]).run_id == plain


def test_they_are_read_from_the_file(tmp_path: Path) -> None:
    about, values = Catalogue(folder(tmp_path, f"description: A\n  model\ncite: key\n{OWN}")).about("model", "mine")
    assert (about.description, about.cite) == ("A model", ("key",))
    assert set(values) == {"network", "cell", "recurrent", "hidden_size"}
    about, _ = Catalogue(folder(tmp_path, OWN)).about("model", "mine")
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
