"""`orthobench collect FOLDER|ARCHIVE... [runs_root=FOLDER]`: finished runs made elsewhere, checked and brought here."""

from collections import Counter
from pathlib import Path

from orthobench.common.terminal import complain, say
from orthobench.errors import ConfigError, StorageError
from orthobench.verbs.arguments import Parser

NAMES = {"brought": "brought here", "here": "here already", "unfinished": "unfinished", "refused": "refused"}


def main(arguments: list[str]) -> int:
    """Bring the finished runs of other runs folders and of archives (.zip, .tar, .tar.gz) into the runs folder here.

    Each record's digest, identity and form are checked, and what lies beside it. What is damaged is refused, what other
    code or other data made is said to be stale; `unsealed` is a record of an earlier version, without the digest of its
    curves. `reproduce` then records those that belong to tables.

    Raises:
        ConfigError: no place is named.
        StorageError: a place cannot be read, or something in it was refused.
    """
    parser = Parser(__doc__)
    given = parser.read(arguments)
    if not given.names:
        raise ConfigError("collect needs a runs folder or an archive, for example `orthobench collect other/runs.tar`.")
    missing = next((name for name in given.names if not Path(name).exists()), None)
    if missing is not None:
        raise StorageError(
            f"{missing} is neither a folder nor an archive: name a folder of runs, or an archive of one."
        )
    own = given.catalogue.settings(given.overrides).run
    from orthobench.recording.collect import collect

    counts: Counter[str] = Counter()
    for place in map(Path, given.names):
        for one in collect(place, Path(own["runs_root"]), own["data_root"]):
            counts[one.status] += 1
            stale = one.status == "brought" and bool(one.reason)
            counts["stale"] += stale
            counts["unsealed"] += one.unsealed
            notes = f"{', stale' * stale}{', unsealed' * one.unsealed}{f': {one.reason}' if one.reason else ''}"
            tell = complain if one.status == "refused" else say
            if one.status != "here" or one.reason:
                tell(f"{' '.join(one.run_id.split())}: {NAMES[one.status]}{notes}")
    told = ", ".join(f"{counts[status]} {name}" for status, name in NAMES.items() if counts[status])
    further = ", ".join(f"{counts[note]} {note}" for note in ("stale", "unsealed") if counts[note])
    say(f"{told or 'no runs there'}{f' ({further})' if further else ''}; {own['runs_root']}")
    return StorageError.exit_code if counts["refused"] else 0
