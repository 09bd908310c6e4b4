"""The pages of docs/reference follow from the code, and the schema of a record holds of real ones."""

import json
from pathlib import Path
from typing import Any

import pytest

import orthobench
from orthobench.errors import OrthobenchError
from orthobench.parametrizations import initializers
from scripts import reference

SCHEMA = json.loads(reference.SCHEMA.read_text(encoding="utf-8"))
TYPES = {"string": str, "integer": int, "number": (int, float), "object": dict, "array": list, "null": type(None)}
TYPES["boolean"] = bool
TINY = ("model=rnn", "task=adding", "T=3", "model.hidden_size=2", "task.val_size=2", "task.test_size=2")


def test_the_pages_are_up_to_date() -> None:
    for path, text in reference.texts().items():
        assert path.read_text(encoding="utf-8") == text, "run: python scripts/reference.py --write"


def test_every_setting_has_a_type_and_a_meaning() -> None:
    rows = [line for line in reference.settings().splitlines() if line.startswith("| `")]
    assert len(rows) > 300
    assert [row for row in rows if "|  |" in row] == []


def test_every_scheme_of_initial_values_is_explained() -> None:
    page = (reference.PAGES / "configuration.md").read_text(encoding="utf-8")
    assert [scheme for scheme in initializers.SCHEMES if f"`{scheme}`" not in page] == []


def problems(value: Any, schema: dict[str, Any], at: str = "") -> list[str]:
    """Violations of the part of JSON Schema that the file uses."""
    allowed = schema.get("type", [])
    names = [allowed] if isinstance(allowed, str) else allowed
    if names and not any(isinstance(value, TYPES[name]) and (value is not True or name == "boolean") for name in names):
        return [f"{at} is {value!r}, not {names}"]
    found = []
    if isinstance(value, dict):
        known, rest = schema.get("properties", {}), schema.get("additionalProperties", {})
        found += [f"{at}.{key} is missing" for key in schema.get("required", ()) if key not in value]
        found += [f"{at}.{key} is not known" for key in value if key not in known and rest is False]
        for key, one in value.items():
            found += problems(one, known.get(key, rest or {}), f"{at}.{key}")
    for i, one in enumerate(value if isinstance(value, list) else ()):
        found += problems(one, schema.get("items", {}), f"{at}[{i}]")
    return found


@pytest.mark.parametrize("words", [(), ("optimizer.lr=1e30", "optimizer=sgd", "task.train_size=4")], ids=" ".join)
def test_a_record_has_the_form_of_the_schema(words: tuple[str, ...], tmp_path: Path) -> None:
    run = orthobench.build(*TINY, "trainer.max_steps=3", f"runs_root={tmp_path}", *words)
    try:
        run.run()
    except OrthobenchError:
        assert words
    (path,) = tmp_path.glob("*/record.json")
    record = json.loads(path.read_text(encoding="utf-8"))
    assert problems(record, SCHEMA) == []
    assert (path.parent / "metrics.csv").read_text().splitlines()[0] == "step,epoch,name,value"
    wrong = {**record, "steps": "three", "new": 1}
    del wrong["seed"]
    found = problems(wrong, SCHEMA)
    assert found == [".seed is missing", ".new is not known", ".steps is 'three', not ['integer']"]


def test_a_part_of_a_record_that_is_not_known_is_found() -> None:
    code = {"type": "object", "properties": {"version": {"type": "string"}}, "additionalProperties": False}
    assert problems({"version": "1", "colour": "red"}, code) == [".colour is not known"]
