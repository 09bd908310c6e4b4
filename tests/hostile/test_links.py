"""Folders of somebody else's runs and records are read without following links in them; no name in a file leads out."""

from pathlib import Path

import pytest

import orthobench
from orthobench.__main__ import main
from orthobench.errors import StorageError
from orthobench.recording.files import within
from orthobench.study.records import records
from tests import own_runs
from tests.conftest import write

WORDS = ("model=lstm", "task=copying", "T=20")


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two runs, the second of them elsewhere."""
    own_runs.run(tmp_path / "runs", *WORDS)
    own_runs.run(tmp_path / "elsewhere", *WORDS, "seed=2")
    return tmp_path / "runs"


def linked(runs: Path, part: str) -> None:
    """Put the second run, or its record, into the folder of the first one by a link."""
    (other,) = (runs.parent / "elsewhere").iterdir()
    place = runs / other.name
    if part:
        place.mkdir()
    (place / part).symlink_to(other / part)


@pytest.mark.parametrize("part", ["", "record.json"])
@pytest.mark.parametrize("verb", ["compare", "best"])
def test_runs(verb: str, part: str, runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    linked(runs, part)
    assert main([verb, str(runs)]) == 0
    told = capsys.readouterr()
    assert "1 finished run, 1 left out" in told.out
    assert "is a link" in told.err


@pytest.mark.parametrize("part", ["", "record.json"])
def test_records_in_python(part: str, runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    linked(runs, part)
    assert len(orthobench.records(runs)) == 1
    assert "is a link" in capsys.readouterr().err


@pytest.mark.parametrize("place", ["tables", "figures", "records", "records/sgornn"])
@pytest.mark.parametrize("verb", ["tables", "plot"])
def test_results(verb: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    precious, root = write(tmp_path / "precious", {"thesis.tex": "mine"}), tmp_path / "results"
    (root / place).parent.mkdir(parents=True)
    (root / place).symlink_to(precious / "thesis.tex" if "." in place else precious)
    main([verb, "sgornn", f"results_root={root}"])
    assert [(path.name, path.read_text()) for path in precious.iterdir()] == [("thesis.tex", "mine")]


@pytest.mark.parametrize("name", ["../x", "/x", "a/../../x", "", ".."])
def test_a_name_that_leads_out(name: str, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="no name of a file below"):
        within(tmp_path, name)


@pytest.mark.parametrize("name", ["../../x", "/x"])
def test_a_run_of_the_records_whose_name_leads_out(name: str, tmp_path: Path) -> None:
    text = f"run_id,preset,cell,seed,status\n{name},full,gru,1,done\n"
    write(tmp_path, {"records/sgornn/table2.csv": text})
    with pytest.raises(StorageError, match="no name of a run"):
        records.read(tmp_path, "sgornn/table2")
