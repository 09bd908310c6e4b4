"""Files of a `--config-dir` that have no end are refused in one sentence before anything is composed."""

from pathlib import Path

import pytest

from orthobench.__main__ import main
from orthobench.errors import ConfigError
from orthobench.study.catalogue import Catalogue
from tests.conftest import write

CELL = "cell: elman\n"
DEFAULTS: dict[str, dict[str, str]] = {
    "itself": {"model/a": "defaults: [a]\n"},
    "itself from the top": {"model/a": "defaults: [/model/a]\n"},
    "itself in a package": {"model/a": "defaults: ['a@x']\n"},
    "itself as its group's choice": {"model/a": "defaults: ['/model': a]\n"},
    "two": {"model/a": "defaults: [b]\n", "model/b": "defaults: [a]\n"},
    "two of two groups": {"model/a": "defaults: ['/task@x': b]\n", "task/b": "defaults: ['optional /model@y': a]\n"},
    "a hundred": {f"model/{k or 'a'}": f"defaults: ['{(k + 1) % 100 or 'a'}']\n" for k in range(100)},
    "a chain of 2,000": {f"model/{k or 'a'}": f"defaults: ['{k + 1}']\n" for k in range(2000)},
    "twice 25 deep": {f"model/{k or 'a'}": f"defaults: ['{k + 1}@x', '{k + 1}@y']\n" for k in range(25)},
    "twice 25 deep in one list": {
        f"model/{k or 'a'}": f"defaults: [{{.: ['{k + 1}', '{k + 1}']}}]\n" for k in range(25)
    },
    "a hundred at once": {"model/a": f"defaults: [{', '.join(f'b@x{k}' for k in range(101))}]\n", "model/b": CELL},
    "a file elsewhere": {"model/a": "defaults: ['../../../../etc/x']\n"},
    "a group elsewhere": {"model/a": "defaults: ['/../..': x]\n"},
    "what is made": {"model/a": "defaults: ['${cell}']\n"},
    "no list": {"model/a": "defaults: {a: b}\n"},
    "lists in it": {"model/a": "defaults: [[a]]\n"},
    "numbers in it": {"model/a": "defaults: [1, {a: 2}]\n"},
}
TABLE = "track: published\nseeds: [1]\nmargin: {test/loss: 0.1}\npresets: {}\n"
WORDS = "[model=lstm, task=copying]"


def grid(axes: int, places: int) -> str:
    """A table with so many axes of so many places."""
    return f"cells: {{a: {WORDS}}}\ngrid: {{{', '.join(f'x{k}: {axis(places)}' for k in range(axes))}}}\n"


def axis(count: int) -> str:
    return "{" + ", ".join(f"{k}: [T={k + 5}]" for k in range(count)) + "}"


def written(files: dict[str, str], folder: Path) -> None:
    for name, text in files.items():
        write(folder, {f"{name}.yaml": text})


@pytest.mark.sampled(9)
@pytest.mark.parametrize("kind", DEFAULTS)
def test_defaults(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(DEFAULTS[kind], tmp_path / "conf")
    assert main(["--config-dir", str(tmp_path / "conf"), "model=a", "task=copying", "T=5", "trainer.max_steps=1"]) == 2
    (line,) = (line for line in capsys.readouterr().err.splitlines() if line)
    assert "defaults" in line


def test_defaults_that_end_are_followed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {"model/a": "defaults: [b, /model/lstm@x, _self_]\nhidden_size: 7\n", "model/b": CELL}
    written(files | {"model/c": "defaults: [a]\n"}, tmp_path)
    main(["show", "--config-dir", str(tmp_path), "model=c", "task=copying", "T=5"])
    assert "defaults" not in capsys.readouterr().err


@pytest.mark.parametrize(("axes", "places"), [(9, 10), (40, 10), (3, 1000)])
def test_tables(axes: int, places: int, tmp_path: Path) -> None:
    written({"experiment/x/t": TABLE + grid(axes, places)}, tmp_path)
    with pytest.raises(ConfigError, match=r"give .* runs; a table may have 100,000"):
        Catalogue((tmp_path,)).table("x/t")


@pytest.mark.parametrize(("count", "told"), [(40_000, "a table may have 100,000"), (200_000, "beyond 50,000 keys")])
def test_seeds_are_counted_in_a_moment(count: int, told: str, tmp_path: Path) -> None:
    text = TABLE.replace("[1]", str(list(range(count)))) + f"cells: {{a: {WORDS}, b: {WORDS}, c: {WORDS}}}\n"
    written({"experiment/x/t": text}, tmp_path)
    with pytest.raises(ConfigError, match=told):
        Catalogue((tmp_path,)).table("x/t")


REFERENCES = {
    "each twice the next": "".join(f"x{k}: '${{model.x{k + 1}}}${{model.x{k + 1}}}'\n" for k in range(30)) + "x30: a\n",
    "mappings": "".join(f"x{k}: {{a: '${{model.x{k + 1}}}', b: '${{.a}}'}}\n" for k in range(30)) + "x30: {a: 1}\n",
    "a chain": "".join(f"x{k}: '${{model.x{k + 1}}}'\n" for k in range(3000)) + "x3000: a\n",
}


@pytest.mark.parametrize("kind", REFERENCES)
def test_references(kind: str, tmp_path: Path) -> None:
    written({"model/a": CELL + REFERENCES[kind]}, tmp_path)
    with pytest.raises(ConfigError, match=r"references such as that of model\.x0\S* are too many: 24 are allowed"):
        Catalogue((tmp_path,)).settings(["model=a", "task=copying"])


def test_references_that_refer_to_themselves(tmp_path: Path) -> None:
    written({"model/a": CELL + "hidden_size: ${model.hidden_size}\n"}, tmp_path)
    with pytest.raises(ConfigError, match="Recursive interpolation"):
        Catalogue((tmp_path,)).settings(["model=a", "task=copying"])


@pytest.mark.parametrize("value", ["1", "[a]", "'x'"])
def test_a_key_that_is_a_path_of_thousands(value: str) -> None:
    with pytest.raises(ConfigError, match="its name has more than 20 dots"):
        Catalogue(()).settings(["model=rnn", "task=copying", f"+{'.'.join('a' * 3000)}={value}"])
