"""`orthobench tune KEY=VALUE... KEY=RANGE... [--trials N] [--pruner NAME]`: the best settings by validation."""

from typing import TYPE_CHECKING, Any

from orthobench.common import signals
from orthobench.common.schema import refuse_unknown
from orthobench.common.terminal import columns, command, say
from orthobench.errors import ConfigError
from orthobench.verbs.arguments import LAUNCHER, Parser

if TYPE_CHECKING:
    from orthobench.study.tune.search import Search


def main(arguments: list[str]) -> int:
    """Try values, each as an ordinary run; the same command resumes a tuning that was stopped or killed.

    A range is `log(1e-4,1e-1)`, `float(0,1)`, `int(1,95)`, `int(8,256,log)` or `{a,b,c}`. Several processes may work on
    one tuning. The result is a recipe and a picture of the importance of each setting.

    Raises:
        ConfigError: Optuna is not installed, or a range or another word is wrong; nothing was started.
        StorageError: the journal of the study cannot be written or read.
    """
    from orthobench.config import ranges
    from orthobench.config.launchers import split
    from orthobench.study.launcher import launcher_of
    from orthobench.study.tune.search import PRUNERS, Search, Trials, import_optuna, open_study
    from orthobench.study.tune.tuned import refuse_changed

    parser = Parser(__doc__)
    parser.add_argument(
        "--trials", type=int, default=40, metavar="N", help="trials in all, earlier ones among them (40)"
    )
    parser.add_argument(
        "--pruner", default="none", metavar="NAME", help=f"stops bad trials early: {', '.join(PRUNERS)}"
    )
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="how many trials side by side (1)")
    parser.add_argument("--launcher", metavar="NAME", help=LAUNCHER)
    parser.add_folders()
    given = parser.read(arguments)
    if given.names:
        parser.error(f"{given.names[0]!r} is not an argument here: write KEY=VALUE or KEY=RANGE")
    if given.trials < 1:
        raise ConfigError(f"--trials {given.trials} is out of range: it must be >= 1.")
    if given.jobs < 1:
        raise ConfigError(f"--jobs {given.jobs} is out of range: it must be >= 1.")
    refuse_unknown([given.pruner], PRUNERS, "--pruner ", " is not known")
    import_optuna()
    about, words = split(given.overrides)
    tried = tuple(ranges.parse(word) for word in words if ranges.is_range(word))
    fixed = tuple(word for word in words if not ranges.is_range(word))
    search = Search(fixed, tried, given.catalogue)
    search.check()
    place = launcher_of(given.launcher, about, search.folder.parent)
    with signals.watched(program=True):
        study = open_study(search, given.pruner)
        refuse_changed(search, study)
        known = len(study.get_trials(deepcopy=False))
        say(f"{search.folder}: {known} of {given.trials} trials begun" if known else f"{search.folder}: a new tuning")
        code = Trials(search, study, given.trials, place).work_on(given.jobs)
    _tell(search, study)
    return code


def _tell(search: "Search", study: Any) -> None:
    """Write the recipe and the picture, and say where they are and what they hold."""
    from optuna.trial import TrialState

    from orthobench.recording.files import write_bytes
    from orthobench.report.importance import picture
    from orthobench.study.tune import tuned

    told = ", ".join(f"{count} {status}" for status, count in sorted(tuned.counts(study).items()))
    best = tuned.best(study)
    if best is None:
        say(f"{told or 'no trials'}; none has a validation score yet")
        return
    names = [one.key for one in search.ranges]
    columns(["trial", *names, search.score], tuned.ranking(study, names))
    values = " ".join(one.word(best) for one in search.ranges)
    say(f"{told}; the best: {search.score} {best.value:.4g}, {values}, run {best.user_attrs['run_id']}")
    shares = tuned.importances(study)
    trials = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    drawn = picture(shares, [(t.number + 1, t.value) for t in trials], search.score, search.task.higher_is_better)
    path = search.folder / "importance.svg"
    write_bytes(path, drawn.encode())
    say(f"{path}: {', '.join(f'{name} {share:.2f}' for name, share in shares.items()) or 'too few trials'}")
    folder, name = tuned.write_recipe(search, best.user_attrs["run_id"])
    words = [f"model={best.params.get('model', search.first.model['name'])}", f"task={search.first.task['name']}"]
    options = [option for one in (*search.configuration.folders, folder) for option in ("--config-dir", str(one))]
    say(command(["orthobench", *words, *options, f"recipe={name}"]))
