"""BibTeX entries: every model and paper has one, a user's are found, and what cannot be found is refused."""

from pathlib import Path

import pytest

from orthobench.errors import ConfigError
from orthobench.study.catalogue import SHIPPED, Catalogue
from orthobench.study.tables.citations import entries
from tests.conftest import write

ENTRY = "@misc{%s,\n  title = {A {Title}},\n}\n"


@pytest.mark.parametrize("name", [*SHIPPED.options("model"), *SHIPPED.papers(), *SHIPPED.options("experiment")])
def test_every_model_paper_and_table_has_entries(name: str) -> None:
    found = SHIPPED.citations(name)
    assert found
    assert all(entry.startswith("@") and entry.count("{") == entry.count("}") for entry in found)


def test_an_entry_is_whole() -> None:
    assert SHIPPED.citations("scornn") == [entries(SHIPPED)["helfrich2018scornn"]]
    assert SHIPPED.citations("scornn")[0].startswith(
        "@inproceedings{helfrich2018scornn,\n  title     = {Orthogonal Recurrent"
    )
    assert SHIPPED.citations("scornn/table1") == SHIPPED.citations("scornn")


def test_a_fair_table_cites_its_models_once_each() -> None:
    found = SHIPPED.citations("fair/copying")
    assert len(found) == len(set(found)) > 10


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    cited = {"mine": ["new2026", "hochreiter1997lstm"], "nothing": [], "wrong": "hochreiter1997lstn"}
    files = {f"model/{name}.yaml": {"cell": "lstm", "cite": keys} for name, keys in cited.items()}
    return write(tmp_path, files | {"model/unsaid.yaml": {"cell": "lstm"}, "published/own.bib": ENTRY % "new2026"})


def test_a_users_model_cites_a_users_entry(folder: Path) -> None:
    own, lstm = Catalogue((folder,)).citations("mine")
    assert own == (ENTRY % "new2026").strip()
    assert [lstm] == SHIPPED.citations("lstm")
    assert Catalogue((folder,)).citations("nothing") == []


@pytest.mark.parametrize(
    ("name", "message"),
    [("unsaid", "add `cite: KEY`"), ("wrong", "did you mean 'hochreiter1997lstm'"), ("scorn", "did you mean 'scornn'")],
)
def test_what_cannot_be_cited_is_refused(name: str, message: str, folder: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        Catalogue((folder,)).citations(name)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ENTRY % "elman1990finding", "the key of another entry"),
        ("@misc{a,\n title = {b\n", "closing brace"),
        ("nothing", "no entry"),
        ((ENTRY % "a") * 2, "one key twice"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(text: str, message: str, tmp_path: Path) -> None:
    write(tmp_path, {"published/a.bib": text})
    with pytest.raises(ConfigError, match=message):
        entries(Catalogue((tmp_path,)))
