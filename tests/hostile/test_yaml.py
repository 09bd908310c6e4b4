"""YAML that is damaged, endless or enormous is refused in one sentence, within two seconds, by every way in."""

import os
import time
from datetime import date
from pathlib import Path

import pytest

from orthobench.__main__ import main
from orthobench.config.yaml_file import DEEPEST, read_yaml
from orthobench.errors import ConfigError
from tests.conftest import Refused, write

BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefghi", "bcdefghij", strict=True)
)
TEXTS = {
    "not UTF-8": b"cell: elman\nx: \xff\xfe\n",
    "UTF-16": "cell: elman\n".encode("utf-16"),
    "a recursive list": b"cell: elman\nx: &a [*a]\n",
    "a recursive mapping": b"cell: elman\nx: &a {b: *a}\n",
    "a bomb of aliases": BOMB.encode() + b"cell: elman\n",
    "a key twice": b"cell: elman\ncell: lstm\n",
    "a key twice, inside": b"cell: elman\nx: {a: 1, b: 2, a: 3}\n",
    "5,000 digits": b"cell: elman\nhidden_size: " + b"9" * 5000 + b"\n",
    "50,000 characters": b"cell: " + b"a" * 50_000 + b"\n",
    "deep lists": b"cell: " + b"[" * 5000 + b"]" * 5000 + b"\n",
    "deep mappings": b"cell: " + b"{a: " * 100 + b"1" + b"}" * 100 + b"\n",
    "20 MB": b"cell: elman\nx: '" + b"a" * 20_000_000 + b"'\n",
    "a null byte": b"cell: el\0man\n",
    "a day that is none": b"cell: elman\nx: 2024-02-31\n",
    "a list as a key": b"cell: elman\n? [a, b]\n: 1\n",
    "an open quote": b"cell: 'elman\n",
    "a tab": b"cell:\n\telman\n",
    "python": b"cell: !!python/object/apply:os.system [touch canary]\n",
    "a tag": b"cell: !mine elman\n",
    "several documents": b"cell: elman\n---\ncell: lstm\n",
}
NO_MAPPING = {"a word alone": b"elman\n", "a list alone": b"- elman\n"}
PLAIN = (
    b"# a model\ncell: elman\nhidden_size: 4\nsizes: [1, 2.5, 'x']\nmore: {a: &one 1, b: *one, c: |\n    text\n  }\n"
)
TAGS = ("!!python/name:os.system", "!!python/object/new:os.system", "!!python/module:os", "!!python/tuple", "!!binary",
        "!!timestamp", "!!int", "!!float", "!!bool", "!!null", "!!set", "!!omap", "!!pairs", "!!merge", "!!seq",
        "!!map", "!!str", "!", "!x", "!<tag:yaml.org,2002:python/none>", "!!",
        "!!python/object/apply:eval")  # fmt: skip
SCALARS = ("=", "<<", "~", "*a", "&a", "&a *a", "@x", "`x`", "%x", ">", "|9", "- -", "? x", ": :", "{a", "[", "]", "}",
           "1:99:99:99", "0x" + "f" * 5000, "0b" + "1" * 9000, "1_" * 3000, "1e" + "9" * 400, "-.inf", ".nan", "0o9",
           "2024-13-01", "2024-01-01T99:00:00", "'\\x'", '"\\x"', '"\\UFFFFFFFF"', '"\\ud800"', "\u2028", "\u202e",
           "\ufffe", "[" * 31 + "]" * 31, "{a: " * 31 + "}" * 31, "&a [*a]", "{<<: *a}", "--- x", "... x", "%YAML 9.9",
           "%TAG ! x", "!!int [1]", "{a: 1, a: 2}", "{[a]: 1}", "{{a: 1}: 2}")  # fmt: skip
WAYS = {
    "model": ("model/evil.yaml", ["model=evil", "task=copying", "T=5", "trainer.max_steps=1"]),
    "sweep": ("model/evil.yaml", ["-m", "model=evil", "task=copying", "T=5", "trainer.max_steps=1"]),
    "list": ("model/evil.yaml", ["list", "models"]),
    "table": ("experiment/evil/table1.yaml", ["compare", "evil/table1"]),
    "published": ("published/evil.yaml", ["tables", "--check"]),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("kind", "way"),
    [
        *((kind, way) for kind in TEXTS for way in WAYS),
        *((kind, way) for kind in NO_MAPPING for way in WAYS if way != "published"),  # without a table it is not asked
    ],
)
def test_a_file(kind: str, way: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name, words = WAYS[way]
    write(Path("conf"), {name: (TEXTS | NO_MAPPING)[kind]})
    verb = [] if words[0].startswith(("-", "model")) else words[:1]
    began = time.process_time()
    assert main([*verb, "--config-dir", "conf", *words[len(verb) :]]) == 2
    assert time.process_time() - began < 20, "no number of seconds is a test of speed; a bomb takes for ever"
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert len(said) < 1000
    assert [path.name for path in here.iterdir()] == ["conf"]


@pytest.mark.parametrize(
    ("place", "text", "told"),
    [
        ("mgu.yaml", "cell: lstm\n", "a model belongs into FOLDER/model/NAME.yaml"),
        ("mine/mgu.yaml", "cell: lstm\n", "none in a folder such as model or task"),
        ("model/mgu.yaml", "# @package _global_\ncell: lstm\n", "may say @package; delete that line"),
    ],
)
def test_a_file_in_the_wrong_place(place: str, text: str, told: str, tmp_path: Path, refused: Refused) -> None:
    write(tmp_path, {place: text})
    refused(["show", "--config-dir", str(tmp_path), "model=lstm", "task=copying"], told)


@pytest.mark.parametrize("kind", ["a pipe", "a device", "a folder"])
def test_what_is_no_file(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "evil.yaml"
    if kind == "a pipe":
        os.mkfifo(path)
    elif kind == "a device":
        path.symlink_to("/dev/zero")
    else:
        path.mkdir()
    with pytest.raises(ConfigError, match="is not a file"):
        read_yaml(path)


def test_what_is_allowed(tmp_path: Path) -> None:
    path = tmp_path / "fine.yaml"
    deep = "[" * DEEPEST + "]" * DEEPEST
    path.write_text("a: &one [1, 2.5, 'x']\nb: *one\nc: {d: {d: 1}}\n")
    assert read_yaml(path) == {"a": [1, 2.5, "x"], "b": [1, 2.5, "x"], "c": {"d": {"d": 1}}}
    path.write_text(deep)
    read_yaml(path)
    path.write_text(f"[{deep}]")
    with pytest.raises(ConfigError, match="nested more than"):
        read_yaml(path)


def plain(value: object, depth: int = 0) -> bool:
    """Whether a value is made of plain ones alone, and is no deeper than what is allowed."""
    inner = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else ()
    kinds = (dict, list, set, str, int, float, bytes, date, type(None))
    return depth <= DEEPEST + 1 and isinstance(value, kinds) and all(plain(one, depth + 1) for one in inner)


def refused_or_plain(content: bytes, path: Path) -> None:
    path.write_bytes(content)
    try:
        found, refusal = read_yaml(path), ""
    except ConfigError as error:
        found, refusal = None, str(error)
    assert plain(found)
    assert "\n" not in refusal
    assert len(refusal) < 1000
    assert refusal == "" or refusal.startswith(str(path))


@pytest.mark.parametrize("at", range(0, len(PLAIN), 4))
def test_a_file_that_is_cut(at: int, tmp_path: Path) -> None:
    refused_or_plain(PLAIN[:at], tmp_path / "evil.yaml")


@pytest.mark.parametrize("byte", [*range(0, 32), 0x7F, 0x80, 0xC3, 0xED, 0xF8, 0xFF])
def test_a_byte(byte: int, tmp_path: Path) -> None:
    for at in (0, 12, 40, len(PLAIN)):
        refused_or_plain(PLAIN[:at] + bytes([byte]) + PLAIN[at:], tmp_path / "evil.yaml")


@pytest.mark.parametrize("place", ["{} x: 1\n", "x: {} 1\n", "x: {} [a, b]\n", "x: {} {{a: 1}}\n"])
@pytest.mark.parametrize("tag", TAGS)
def test_a_tag(tag: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "system", None)
    refused_or_plain(place.format(tag).encode(), tmp_path / "evil.yaml")


@pytest.mark.parametrize("scalar", SCALARS, ids=lambda scalar: ascii(scalar)[:20])
def test_a_value(scalar: str, tmp_path: Path) -> None:
    refused_or_plain(f"a: &a 1\nx: {scalar}\n".encode(), tmp_path / "evil.yaml")
    refused_or_plain(f"{scalar}: 1\n".encode(), tmp_path / "evil.yaml")
