"""What a run is made of: names and digests of data, and which of them are no longer the same."""

from pathlib import Path

import pytest

from orthobench.config.settings import Settings
from orthobench.recording.sources import SEVERAL, changed, data_of, sources
from orthobench.study.catalogue import SHIPPED


@pytest.fixture
def made(tmp_path: Path) -> Settings:
    return SHIPPED.settings(("model=lstm", "task=copying", "T=5", f"data_root={tmp_path / 'data'}"))


def _files(folder: Path, count: int, suffix: str) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{number}{suffix}" for number in range(count)]
    for path in paths:
        path.write_text(path.name)
    return paths


def test_a_run_of_ours_on_drawn_data_is_made_of_nothing_else(made: Settings) -> None:
    assert sources(made, []) == {"plugins": {}, "yaml": {}, "data": {}}
    assert changed(sources(made, []), made) == []


@pytest.mark.parametrize("known", [None, {}, {"data": {}}, "text"])
def test_an_old_record_says_nothing(known: object, made: Settings) -> None:
    assert changed(known, made) == []  # type: ignore[arg-type]


def test_data_are_named_by_their_place(made: Settings, tmp_path: Path) -> None:
    inside, outside = _files(tmp_path / "data" / "set", 1, ".csv"), _files(tmp_path / "else", 1, ".csv")
    assert set(sources(made, [*inside, *outside])["data"]) == {"set/0.csv", str(outside[0])}


def test_the_packages_own_file_is_no_data_where_an_earlier_version_said_so(made: Settings, tmp_path: Path) -> None:
    _files(tmp_path / "data" / "set", 1, ".csv")
    of_package = _files(tmp_path / "orthobench" / "datasets", 1, ".json")[0].rename(
        tmp_path / "orthobench" / "datasets" / "digests.json"
    )
    known = sources(made, [tmp_path / "data" / "set" / "0.csv", of_package])
    assert str(of_package) in known["data"]
    of_package.write_text("another")
    assert changed(known, made) == []
    assert set(data_of(known)) == {"set/0.csv"}
    assert data_of(None) == data_of({}) == {}


def test_many_files_of_one_kind_are_one_entry(made: Settings, tmp_path: Path) -> None:
    sounds = _files(tmp_path / "data" / "timit" / "train", SEVERAL + 1, ".wav")
    labels = _files(tmp_path / "data" / "timit" / "train", SEVERAL, ".phn")
    known = sources(made, [*sounds, *labels])
    assert set(known["data"]) == {"timit/**/*.wav", *(f"timit/train/{path.name}" for path in labels)}
    assert changed(known, made) == []
    sounds[0].write_text("another")
    assert changed(known, made) == ["the data in timit/**/*.wav"]
    for path in sounds:
        path.unlink()
    assert changed(known, made) == [], "what is not there is no other"
    labels[3].write_text("another")
    assert changed(known, made) == ["the data in timit/train/3.phn"]
