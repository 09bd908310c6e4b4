"""`orthobench best FOLDER|TABLE ROW [--by KEY] [--steps N] [--write FILE] [KEY=VALUE...]`: best settings, to run."""

from argparse import Namespace
from pathlib import Path

from orthobench.common.schema import refuse_unknown
from orthobench.common.terminal import command, comment, complain, say
from orthobench.errors import ConfigError
from orthobench.recording.store import runs_root
from orthobench.verbs import own_runs
from orthobench.verbs.arguments import Parser, results_root

LENGTHS = ("trainer.max_steps", "trainer.max_epochs", "trainer.min_steps", "trainer.min_epochs", "trainer.max_time")


def main(arguments: list[str]) -> int:
    """Print, for each task, length and model, the winner by validation and the command that trains it for longer.

    The output is a shell script: commands whose settings have been checked, each quoted, and comments of one line.
    `--write` gives a recipe with all settings, for `--config-dir`: of the one winner among your runs, or of a table's
    row.

    Raises:
        ConfigError: no folder, no run in it that is asked for, or no such setting.
    """
    from orthobench.config.overrides import words
    from orthobench.config.places import word
    from orthobench.config.recorded import named_files
    from orthobench.recording.sources import refuse_unrecorded

    parser = Parser(__doc__)
    parser.add_argument("--by", default="model", metavar="KEY", help="a winner for each value of it (model)")
    parser.add_argument("--steps", type=int, metavar="N", help="of the longer run; twice as many as now by default")
    parser.add_argument("--write", metavar="FILE", help="write the settings as recipe/FILE, with scores and source")
    parser.add_folders()
    given = parser.read(arguments)
    if not given.names:
        raise ConfigError("best needs a folder of runs, or a table and a row: `orthobench best runs/ --by model`.")
    in_tables = not own_runs.folders(given.names, given.catalogue)
    if given.write is not None or in_tables:
        return _write(given, in_tables)
    if given.steps is not None and given.steps < 1:
        raise ConfigError(f"--steps {given.steps} is out of range: it must be >= 1.")
    places, code = [Path(name) for name in given.names], 0
    for table in own_runs.tables(places, given.overrides):
        known = {key for row in table.rows for key in row.settings}
        refuse_unknown([given.by], known, "--by ", " is no setting of these runs")
        for value, row in table.best_by(lambda row: str(row.settings.get(given.by))).items():
            scores = row.scores(table.validation)
            mean = "diverged" if scores.mean is None else f"{scores.mean:.4g}"
            told = f"{table.validation} {mean} over {scores.done} seed{'s' * (scores.done > 1)}"
            count = sum(str(one.settings.get(given.by)) == value for one in table.rows)
            among = f"the best of {count}" if count > 1 else "alone"
            say(comment(f"{table.title}, {given.by}={value}: {told}, {among}"))
            for reason in dict.fromkeys(reason for run in row.runs for reason in run.stale):
                say(comment(f"stale: {reason}"))
            had = max(int(run.line.values["steps"]) for run in row.runs)
            steps = given.steps or 2 * had
            seeds = ",".join(str(seed) for seed in sorted(scores.by_seed))
            roots = [word("runs_root", str(places[0]))] if _elsewhere(places[0]) else []
            options = [option for path in given.config_dir for option in ("--config-dir", str(path))]
            try:
                if steps <= had:
                    raise ConfigError(f"--steps {steps} is not longer than the run, which has {had:,}: give more.")
                record = row.runs[0].record
                refuse_unrecorded(record.get("sources"), named_files(record["config"]), "record.json")
                found = words(record["config"], given.catalogue)  # which checks the settings
                kept = [one for one in found if _is_kept(one)]
                asked = [*kept, f"seed={seeds}", word("trainer.max_steps", steps), *roots]
                say(command(["orthobench", *(["-m"] if "," in seeds else []), *options, *asked]))
            except ConfigError as error:
                complain(f"orthobench: {row.runs[0].line.run_id}: {error}")
                code = ConfigError.exit_code
    return code


def _is_kept(word: str) -> bool:
    """Return True if a word is of the longer run too: no seed, and no limit but one that lifts a recipe's."""
    name, _, value = word.partition("=")
    return name != "seed" and (name not in LENGTHS or value == "null")


def _write(given: Namespace, in_tables: bool) -> int:
    """Write the recipe of the winner; returns 0."""
    from orthobench.study import winner

    if in_tables and (len(given.names) != 2 or given.write is None):
        example = "orthobench best fair2/cued_copying gru --write best.yaml"
        raise ConfigError(f"best of a table needs its name, a row, and --write FILE: `{example}`.")
    path = winner.place(given.write)
    if in_tables:
        root = results_root([one for one in given.overrides if one.startswith("results_root=")])
        if other := next((one for one in given.overrides if not one.startswith("results_root=")), None):
            raise ConfigError(f"{other} does not apply to a row of a table: leave it out, or use results_root= alone.")
        found = winner.of_row(given.catalogue.table(given.names[0]), given.names[1], root)
    else:
        places = [Path(name) for name in given.names]
        best = [
            (f"{table.title}: the best {given.by}={value} by {table.validation}", row)
            for table in own_runs.tables(places, given.overrides)
            for value, row in table.best_by(lambda row: str(row.settings.get(given.by))).items()
        ]
        if len(best) > 1:
            shown = "; ".join(title for title, _ in best)
            raise ConfigError(f"--write is for one winner, and here are {len(best)}: choose by KEY=VALUE. {shown}.")
        found = winner.of_runs(best[0][1], best[0][0], places)
    told = winner.write(found, path, given.catalogue)
    for line in found.comments:
        say(line)
    say(comment(f"wrote {path}"))
    say(told)
    return 0


def _elsewhere(folder: Path) -> bool:
    """Return True if a folder is not the one that runs go to where no other is named."""
    return folder.resolve() != runs_root().resolve()
