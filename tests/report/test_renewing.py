"""Files that are made from something else are told, written and removed."""

from pathlib import Path

import pytest

from orthobench.report.renewing import renew


def test_files_are_written_and_removed_only_when_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new, same, gone, never = (tmp_path / name for name in ("new", "same", "gone", "never"))
    same.write_text("as it was")
    gone.write_text("of something that is no more")
    wanted: dict[Path, str | None] = {new: "text", same: "as it was", gone: None, never: None}
    assert renew(wanted, []) == 1
    assert not new.exists()
    assert gone.exists()
    assert capsys.readouterr().out.split("\n")[:2] == [f"not up to date: {new}", f"not up to date: {gone}"]
    assert renew(wanted, ["--write"]) == 0
    assert new.read_text() == "text"
    assert not gone.exists()
    assert capsys.readouterr().out.split("\n")[:2] == [f"wrote {new}", f"removed {gone}"]
    assert renew(wanted, []) == 0
