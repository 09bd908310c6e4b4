"""Paths in settings: what stands for another text in them, and the one place that a file has from any folder."""

from pathlib import Path

import numpy as np
import pytest

import orthobench
from orthobench.__main__ import main
from orthobench.common import paths
from orthobench.config import places
from orthobench.config.check import ROOT
from orthobench.config.places import REFERENCES, word
from orthobench.config.settings import SECTIONS, Settings
from orthobench.config.words import choices, parsed, quoted
from orthobench.errors import ConfigError
from orthobench.study.catalogue import SHIPPED, Catalogue
from tests.conftest import Refused

SERIES = ("model=gru", "model.hidden_size=4", "task=series", "logger=none", "trainer.max_steps=2")


def write(path: Path, seed: int = 1, gap: float = 0.0) -> Path:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, 60)
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, x=rng.normal(size=(60, 5, 2)) + gap * y[:, None, None], y=y)
    return path


def of(*words: str) -> Settings:
    return SHIPPED.settings((*SERIES, *words))


@pytest.mark.parametrize("name", ["jürgen", "データ", "e\u0301", "ä b", "größe=1", "É'", "ß,ü"])
def test_letters_beyond_ascii_are_letters(name: str, tmp_path: Path) -> None:
    path = write(tmp_path / name / "maß.npz")
    made = of(*(f"{key}='{one}'" if "," in name else f"{key}={one}" for key, one in
                (("task.path", path), ("runs_root", f"{path}/../läufe"))), "task.group=Größe")  # fmt: skip
    assert (made.task["path"], made.run["runs_root"]) == (str(path), f"{path}/../läufe")
    assert made.task["group"] == "Größe"
    again = of(*places.given([word("task.path", str(path)), word("task.group", "Größe")]))
    assert again.run_id == made.run_id


@pytest.mark.parametrize("text", ["a\\b", "a\\", "\\\\'", "'\\", "a\\'b", "\\n", "a\\\n", "'", '\\"'])
def test_a_quoted_value_is_the_value(text: str) -> None:
    assert str(parsed(f"task.path={quoted(text)}").value()) == text


def test_several_values_beyond_ascii_stay_several() -> None:
    assert choices(*places.given(["task.path=ä.npz,b ö.npz"])) == ["ä.npz", "b ö.npz"]
    assert choices("task.group=Größe,Alter") == ["Größe", "Alter"]
    assert places.given(["task.names=[ä,'b,ü']", "+x={ö:1}"]) == ["task.names=[ä,'b,ü']", "+x={'ö':1}"]


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write(tmp_path / "A" / "my.npz", 1)
    write(tmp_path / "B" / "my.npz", 2)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("STORE", str(tmp_path / "A"))
    monkeypatch.delenv("NOT_SET", raising=False)
    monkeypatch.chdir(tmp_path / "A")
    return tmp_path


@pytest.mark.parametrize(
    "text",
    [
        "my.npz",
        "./my.npz",
        "../A/my.npz",
        "~/A/my.npz",
        "$STORE/my.npz",
        "${STORE}/my.npz",
        "'${STORE}/my.npz'",
        "ln.npz",
    ],
)
def test_one_file_is_one_run_whatever_it_is_called(text: str, two: Path) -> None:
    Path("ln.npz").symlink_to("my.npz")
    made = of(f"task.path={text}")
    assert made.task["path"] == str(two / "A" / "my.npz")
    assert made.run_id == of(f"task.path={two / 'A' / 'my.npz'}").run_id


def test_one_name_in_two_folders_is_two_runs_in_one_process_too(two: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = of("task.path=my.npz", "seed=1")
    monkeypatch.chdir(two / "B")
    second = of("task.path=my.npz", "seed=1")
    assert first.run_id != second.run_id
    assert second.task_made.path == str(two / "B" / "my.npz")


@pytest.mark.parametrize("name", ["a=b.npz", "my (1).npz", "a[1].npz", "it's.npz", "cost$.npz", "a b.npz", "a:b.npz"])
def test_any_name_of_a_file_is_taken(name: str, two: Path) -> None:
    path = write(two / "A" / name)
    assert of(f"task.path={name}").task["path"] == str(path)
    assert of(word("task.path", str(path))).task["path"] == str(path)


@pytest.mark.slow
def test_a_dollar_of_a_name_is_written_twice_and_survives_another_process(two: Path) -> None:
    write(two / "A" / "a$STORE.npz")
    words = ["-m", *SERIES, "task.path=a$$STORE.npz", "seed=1,2", "runs_root=runs"]
    assert main(words) == 0
    assert len(list(Path("runs").glob("series-*/record.json"))) == 2


@pytest.mark.parametrize("text", ["$NOT_SET/my.npz", "${NOT_SET}/my.npz", "$STORE/${NOT_SET}"])
@pytest.mark.parametrize("key", ["task.path", "data_root", "runs_root", "init_from"])
def test_a_variable_that_is_not_set_is_refused_by_name(
    text: str, key: str, two: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match=rf"{key}=.*: the environment variable NOT_SET is not set"):
        of(f"{key}={text}")
    monkeypatch.setenv("NOT_SET", "")
    with pytest.raises(ConfigError, match="NOT_SET is not set, or empty"):
        of(f"{key}={text}")


@pytest.mark.parametrize("text", ["a$${x}.npz", "$ODD/b.npz"])
def test_a_dollar_in_front_of_a_brace_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODD", "a${x}")
    with pytest.raises(ConfigError, match="in front of a brace cannot be given here"):
        SHIPPED.settings(["model=gru", "task=series", f"task.path='{text}'"])


def test_a_user_that_is_not_there_is_refused(two: Path) -> None:
    with pytest.raises(ConfigError, match=r"there is no user nobody_at_all here; write \./~nobody_at_all/x"):
        of("runs_root=~nobody_at_all/x")


@pytest.mark.parametrize("root", ["~/runs", "$STORE/../runs", "${STORE}/../runs"])
def test_paths_of_the_environment_are_expanded(root: str, two: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORTHOBENCH_RUNS", root)
    assert main([*SERIES, "task.path=my.npz"]) == 0
    (folder,) = (two / "runs").glob("series-*")
    assert orthobench.load(folder.name).folder.resolve() == folder
    assert orthobench.load(f"~/runs/{folder.name}").folder == folder
    assert len(orthobench.records("~/runs")) == 1
    assert not list(two.rglob("~*"))


def test_an_unset_variable_in_the_environments_path_is_refused(two: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORTHOBENCH_DATA", "$NOT_SET/data")
    with pytest.raises(ConfigError, match=r"ORTHOBENCH_DATA=\$NOT_SET/data: .*NOT_SET is not set"):
        of("task.path=my.npz")


def test_yaml_knows_the_tilde_alone(two: Path) -> None:
    recipes = two / "conf" / "recipe"
    recipes.mkdir(parents=True)
    for name, text in (("home", "~/A/my.npz"), ("variable", "$STORE/my.npz")):
        (recipes / f"{name}.yaml").write_text(f"# @package _global_\ntask: {{path: {text}}}\n")
        found = places.of_task({"path"}, {"path": text}, ())["path"]
        assert found == str(two / "A" / ("my.npz" if name == "home" else text))
        with pytest.raises(ConfigError, match="names what is outside of its folder"):
            Catalogue((two / "conf",)).settings((*SERIES, f"recipe={name}"))


def test_a_reference_to_a_setting_stays_one(two: Path) -> None:
    write(two / "A" / "my_3.npz")
    assert of("task.path=my_${seed}.npz", "seed=3").task["path"] == str(two / "A" / "my_3.npz")
    assert set(REFERENCES) == {*ROOT, *SECTIONS}


def test_a_link_whose_name_says_how_to_read_is_kept(two: Path) -> None:
    (two / "blob").write_bytes((two / "A" / "my.npz").read_bytes())
    for name in ("named.npz", "X_TRAIN.ts"):
        (two / "A" / name).symlink_to(two / ("blob" if name == "named.npz" else "A/my.npz"))
        assert paths.canonical(name, "task.path") == str(two / "A" / name)


def test_a_path_with_a_null_byte_is_none() -> None:
    with pytest.raises(ConfigError, match="is no path: it has a null byte"):
        paths.canonical("a\0b", "task.path")


def test_a_run_in_a_folder_with_an_equals_sign_is_a_name(
    two: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main([*SERIES, "task.path=my.npz", "runs_root=lr=0.1"]) == 0
    (folder,) = Path("lr=0.1").glob("series-*")
    monkeypatch.chdir("/")
    assert main(["eval", f"{two}/A/{folder}"]) == 0
    assert "test/accuracy" in capsys.readouterr().out


def test_a_key_of_a_sweep_is_given_once(two: Path, refused: Refused) -> None:
    for again in ("seed=3", "++seed=3"):
        refused(["-m", *SERIES, "task.path=my.npz", "seed=1,2", again], "seed= is given twice: give it once.")


@pytest.mark.parametrize("key", ["data_root", "runs_root", "results_root"])
def test_a_folder_without_a_name_is_refused(key: str) -> None:
    """As from a variable of the shell that is not set, in place of the current folder."""
    with pytest.raises(ConfigError, match=f"{key}= names no folder"):
        of(f"{key}=")


@pytest.mark.parametrize("task", ["series", "text"])
@pytest.mark.parametrize("value", ["", "' '"])
def test_a_file_without_a_name_is_refused(task: str, value: str) -> None:
    with pytest.raises(ConfigError, match=r"task\.path= names no file: give one, such as task\.path=data/mine\.csv"):
        orthobench.build("model=gru", f"task={task}", f"task.path={value}")
