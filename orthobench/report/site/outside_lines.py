"""Results of others as lines of results.json, apart from all else: they fill no table, and count in no mean or rank."""

from pathlib import Path
from typing import Any

from orthobench.common.terminal import complain
from orthobench.config.recorded import by_key
from orthobench.report.site.run_lines import of_line
from orthobench.study.outside.checked import Submission, packs
from orthobench.study.records.curves import thinned


def of(results: Path) -> list[dict[str, Any]]:
    """Lines of the runs in the packs of a folder of results; a pack that breaks a rule is left out and named."""
    found, refused = packs(results)
    for sentence in refused:
        complain(f"left out: {sentence}")
    return [one for pack in found for one in _lines(pack)]


def _lines(pack: Submission) -> list[dict[str, Any]]:
    made = []
    for line in pack.lines:
        record = pack.records[line.run_id]
        settings = by_key(record["config"])
        drawn = {name: thinned(points) for name, points in (record.get("curve") or {}).items() if points}
        made.append(of_line(line, settings) | {"pack": pack.name, "curves": drawn})
    return made
