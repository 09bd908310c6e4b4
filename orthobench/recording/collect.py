"""Finished runs that were made elsewhere, brought into the runs folder here after they have been checked.

A place is a runs folder, the folder of one run, or an archive (.zip, .tar, also compressed) of either. Of an archive
only the files of runs are read, under the names that they have here; a member whose path leads outside makes the whole
archive refused, and one that cannot be read its own run alone. A place without a run is an error.
"""

import json
import lzma
import re
import shutil
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

from orthobench.config.recorded import named_files, settings
from orthobench.errors import ConfigError, StorageError
from orthobench.recording.checkpoint import digest_of
from orthobench.recording.claim import Claim
from orthobench.recording.curve import SEAL, sealed
from orthobench.recording.digest import FINAL, final, owner, read_sealed
from orthobench.recording.files import LARGEST as LARGEST_RECORD
from orthobench.recording.files import make_folder, refuse_links
from orthobench.recording.record import other_code
from orthobench.recording.shape import RECORD
from orthobench.recording.sources import refuse_changed, refuse_unrecorded

SCHEMAS = (1, 2)
FILES = ("checkpoints/last.ckpt", "checkpoints/best.ckpt", "metrics.csv", "config.yaml", "record.json")
LARGEST = 8 << 30  # bytes of a file in an archive
LONGEST = 200  # bytes of a run's name: beyond 255 no file system has it
CHUNK = 1 << 20
PLAIN = re.compile(r"[\w-]+")  # the form of a run's name
DAMAGED = (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, ValueError, RuntimeError,
           LookupError)  # fmt: skip


@dataclass(frozen=True)
class Collected:
    """Outcome for one run.

    Attributes:
        run_id: the run.
        status: `brought`, `here` already, `unfinished`, or `refused`.
        reason: why it was refused; of one that was brought, why it is stale, empty where it is not.
        unsealed: whether its record has no digest of its curves, as earlier versions wrote them.
    """

    run_id: str
    status: str
    reason: str = ""
    unsealed: bool = False


def collect(place: Path, runs_root: Path, data_root: str) -> Iterator[Collected]:
    """Bring the finished runs of a place into `runs_root`; a run that is there already is left as it is.

    Args:
        place: where they are.
        runs_root: the runs folder here.
        data_root: where the data are here, by which a run made from other data is known.

    Raises:
        StorageError: there is no such place, it is no archive that can be read, or one with a path that leads outside.
    """
    try:
        make_folder(runs_root)
        with tempfile.TemporaryDirectory(prefix=".collect-", dir=runs_root) as staged, _opened(place) as runs:
            for name, files in sorted(runs.items()):
                folder = Path(staged) / name
                reason = _copy(files, folder)
                yield Collected(name, "refused", reason) if reason else _accept(folder, runs_root, data_root)
                shutil.rmtree(folder, ignore_errors=True)
    except (OSError, *DAMAGED) as error:
        raise StorageError(f"{place} cannot be collected: {_text(error)}; copy or pack the runs again.") from error


class _Member:
    """A file of a run, in a folder or in an archive."""

    def __init__(self, size: int, opened: Any) -> None:
        self.size, self.opened = size, opened

    def copy(self, to: Path) -> None:
        to.parent.mkdir(parents=True, exist_ok=True)
        source: IO[bytes]
        with self.opened() as source, to.open("xb") as file:
            shutil.copyfileobj(source, file, CHUNK)


@contextmanager
def _opened(place: Path) -> Iterator[dict[str, dict[str, _Member]]]:
    """The files of every run of a place, by the run's name."""
    if place.is_dir():
        homes = [place] if (place / RECORD).is_file() else sorted(path.parent for path in _records(place))
        if not homes:
            raise StorageError(
                f"{place} holds no run: there is no {RECORD} in it, nor in a folder of it"
                "; name a folder of runs, or a run."
            )
        for home in homes:
            refuse_links(home)
        yield {
            home.resolve().name: {name: _file(home / name) for name in FILES if (home / name).is_file()}
            for home in homes
        }
    elif not place.is_file():
        raise StorageError(f"{place} is neither a folder nor an archive (.zip, .tar, .tar.gz): name one of these.")
    elif zipfile.is_zipfile(place) and not tarfile.is_tarfile(place):  # the checkpoints in a tar are zip files
        with zipfile.ZipFile(place) as archive:
            members = {one.filename: _zipped(archive, one) for one in archive.infolist() if not one.is_dir()}
            yield _runs(members, place)
    else:
        with tarfile.open(place) as archive:
            plain = [one for one in archive.getmembers() if not one.isdir()]
            yield _runs(
                {one.name: _Member(one.size if one.isreg() else -1, _tarred(archive, one)) for one in plain}, place
            )


def _records(place: Path) -> list[Path]:
    return [path for path in place.glob("*/record.json") if not path.parent.is_symlink()]


def _file(path: Path) -> _Member:
    return _Member(path.stat().st_size, lambda: path.open("rb"))


def _zipped(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> _Member:
    return _Member(member.file_size, lambda: archive.open(member))


def _tarred(archive: tarfile.TarFile, member: tarfile.TarInfo) -> Any:
    return lambda: archive.extractfile(member)


def _runs(members: dict[str, _Member], place: Path) -> dict[str, dict[str, _Member]]:
    """The members of an archive by run and by their name in it.

    Raises:
        StorageError: a path leads outside, two runs have one name, or there is no run.
    """
    found: dict[PurePosixPath, _Member] = {}
    homes: dict[str, PurePosixPath] = {}
    for name, member in members.items():
        path = PurePosixPath(name.replace("\\", "/"))  # without the `./` that names may begin with
        if path.is_absolute() or ".." in path.parts or any(":" in part for part in path.parts[:1]):
            raise StorageError(f"{place} is refused: its member {name!r} leads outside; pack the folder of runs anew.")
        found[path] = member
        if path.name == RECORD:
            run = path.parent.name or _name_of(member)
            if homes.setdefault(run, path.parent) != path.parent:
                raise StorageError(f"{place} is refused: it has two runs of the name {run}; pack each by itself.")
    if not homes:
        raise StorageError(f"{place} holds no run: there is no {RECORD} in it; name a folder of runs, or a run.")
    return {run: {name: found[home / name] for name in FILES if home / name in found} for run, home in homes.items()}


def _name_of(member: _Member) -> str:
    """The name that a record gives its run, for an archive of what is in a run's folder; `_problem` looks at it again.

    Raises:
        StorageError: it names none.
    """
    if 0 <= member.size <= LARGEST_RECORD:
        with suppress(ValueError, RecursionError), member.opened() as file:
            record = json.loads(file.read())
            if isinstance(record, dict) and PLAIN.fullmatch(str(record.get("run_id"))):
                return str(record["run_id"])
    raise StorageError(f"the {RECORD} at the top of the archive names no run: pack the folder of a run.")


def _copy(files: dict[str, _Member], folder: Path) -> str:
    """Copy a run's files; returns why it cannot be, empty where it was."""
    if len(folder.name.encode()) > LONGEST:
        return f"its name has more than {LONGEST} bytes"
    for name, member in files.items():
        if member.size < 0:
            return f"{name} is no plain file"
        if member.size > LARGEST:
            return f"{name} has {member.size:,} bytes"
        try:
            member.copy(folder / name)
        except DAMAGED as error:
            return f"{name} cannot be read: {_text(error)}"
    return ""


def _text(error: Exception) -> str:
    return (getattr(error, "strerror", None) or " ".join(str(error).split())).rstrip(".")


def _accept(folder: Path, runs_root: Path, data_root: str) -> Collected:
    """Check a run that was copied into a folder, and move it into the runs folder."""
    name, target = folder.name, runs_root / folder.name
    record = read_sealed(folder / "record.json")
    if record is None:
        return Collected(name, "refused", "record.json is damaged: its digest does not match")
    if record.get("status") not in FINAL:
        return Collected(name, "unfinished", f"it is {record.get('status')}")
    try:
        refuse_unrecorded(record.get("sources"), named_files(record["config"]), name)
        reason, stale = _problem(folder, record), _stale(record, data_root)
    except (ConfigError, StorageError, KeyError, TypeError, ValueError) as error:
        reason, stale = f"its settings do not suit this version ({error})", ""
    if reason:
        return Collected(name, "refused", reason)
    known = final(target / "record.json")
    if known is not None:
        same = {key: known.get(key) for key in ("sha256", "identity")} == {
            key: record.get(key) for key in ("sha256", "identity")
        }
        return Collected(name, "here", "" if same else "with another record, which is kept")
    with Claim(target) as claim:
        if not claim.held:
            return Collected(name, "refused", f"it is running here: {claim.owner}")
        for file in (path for path in FILES if (folder / path).is_file()):  # record.json, which makes it final, last
            make_folder((target / file).parent)
            shutil.move(folder / file, target / file)
    return Collected(name, "brought", stale, record.get(SEAL) is None)


def _problem(folder: Path, record: dict[str, Any]) -> str:
    """Why a record is not to be trusted, or not that of its folder; empty where it is."""
    if record.get("schema") not in SCHEMAS:
        return f"record.json has the form {record.get('schema')}, which this version does not know"
    found = settings(record["config"])
    if record.get("identity", found.digest) != found.digest or record["run_id"] != found.run_id:
        return f"its settings are those of {found.run_id}, not of {record['run_id']}"
    if folder.name != record["run_id"]:
        return f"it is the record of {record['run_id']}"
    if owner(folder / "config.yaml") not in (None, found.digest) or not (folder / "config.yaml").is_file():
        return "config.yaml is missing, or another run's"
    try:
        sealed(folder, record)
    except StorageError as error:
        return f"metrics.csv is damaged: {str(error).removeprefix(f'{folder}/').partition(';')[0]}"
    for which, digest in (record.get("checkpoint") or {}).items():
        path = folder / "checkpoints" / f"{which}.ckpt"
        if path.is_file() and digest is not None and digest_of(path) != digest:
            return f"{path.name} is damaged: its digest does not match"
    return ""


def _stale(record: dict[str, Any], data_root: str) -> str:
    """Why a run, which is brought all the same, would not be taken for one that was made here."""
    reasons = []
    other = other_code(record)
    if other:
        reasons.append(f"made by other code, {other}")
    try:
        refuse_changed(record.get("sources"), settings(record["config"], data_root))
    except ConfigError as error:
        reasons.append(str(error))
    return "; ".join(reasons)
