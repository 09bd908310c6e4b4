"""`orthobench submit FOLDER... [--to FOLDER]|--check PACK...`: finished runs as a sealed pack, or a check of packs."""

from pathlib import Path
from typing import TYPE_CHECKING

from orthobench.common.terminal import complain, say
from orthobench.errors import ConfigError, DataError
from orthobench.verbs.arguments import Parser, results_root

if TYPE_CHECKING:
    from orthobench.study.catalogue import Catalogue


def main(arguments: list[str]) -> int:
    """Pack the finished runs of some folders, or check packs as a pull request is checked.

    Raises:
        ConfigError: no folder, no finished run in it, or one that cannot be given away.
        DataError: a pack breaks a rule.
        StorageError: a run has been changed, or the pack cannot be written.
    """
    parser = Parser(__doc__)
    parser.add_argument("--to", type=Path, metavar="FOLDER", help="where the pack is written (submission-DIGITS here)")
    parser.add_argument("--check", action="store_true", help="check packs; exit 3 where one breaks a rule")
    given = parser.read(arguments)
    if not given.names:
        raise ConfigError("submit needs a folder of runs, for example `orthobench submit runs`.")
    places = list(map(Path, given.names))
    if given.check:
        return _check(places, results_root(given.overrides), given.catalogue)
    if given.overrides:
        raise ConfigError(f"{given.overrides[0]} does not apply to submit: name folders of runs.")
    return _pack(places, given.to)


def _pack(places: list[Path], to: Path | None) -> int:
    from orthobench.study.outside.packed import pack
    from orthobench.study.records import own_runs

    found = own_runs.read(places)
    for why, alike in found.why_left_out().items():
        complain(f"orthobench: {alike[0]}{f' and {len(alike) - 1} more' * (len(alike) > 1)}: {why}.")
    if not found.finished:
        raise ConfigError(
            f"{', '.join(map(str, places))}: none of the runs is finished: run the command of the sweep again."
        )
    folders = {path.name: path for place in places for path in (place, *place.glob("*"))}
    folder = pack([folders[run.line.run_id] for run in found.finished], to)
    say(
        f"wrote {folder}: {len(found.finished)} run{'s' * (len(found.finished) > 1)}; docs/how-to/submit.md tells where"
    )
    return 0


def _check(places: list[Path], results: Path, catalogue: "Catalogue") -> int:
    from orthobench.study.outside.checked import PLACE, packs, read_pack, refuse_drift

    others, _ = packs(results)
    broken = 0
    for place in places:
        try:
            pack = read_pack(place)
            beside = [one for one in others if (results / PLACE / one.name).resolve() != place.resolve()]
            again = refuse_drift(pack, beside, catalogue.tables(), results)
        except DataError as error:
            complain(str(error))
            broken += 1
        else:
            say(f"{place}: {len(pack.records)} runs pass, {again} of them known here and within the drift")
    return DataError.exit_code if broken else 0
