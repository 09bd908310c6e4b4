"""End of a sweep: its settings by their validation score, what is not done and why, and the commands that come next."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean

from orthobench.common import signals
from orthobench.common.terminal import columns, command, comment, complain, say
from orthobench.config.configuration import Configuration
from orthobench.config.recorded import by_key
from orthobench.errors import ConfigError, Stopped
from orthobench.launch.processes import exit_code
from orthobench.study.records.own_runs import text
from orthobench.study.statistics.statistics import in_words
from orthobench.study.sweep_run import Ending, SweepRun, named, told_apart

MOST = 30  # rows of a table, before the rest is left to `compare`
PLAIN = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+/")
SummaryRow = tuple[Mapping[str, str], list[Ending]]  # the swept words but the seed, and how each seed has ended


def show(runs: Sequence[SweepRun], endings: Mapping[int, Ending], configuration: Configuration) -> int:
    """Print how a sweep has ended; returns its exit code.

    Args:
        runs: all of its runs.
        endings: by their numbers, those that have ended; the others were not started.
        configuration: its folders are named in the commands.
    """
    names = told_apart(runs)
    missing = [number for number in range(len(runs)) if number not in endings]
    failed = {number: ending for number, ending in sorted(endings.items()) if ending.code}
    done = [number for number, ending in endings.items() if ending.state == "done"]
    elsewhere = len(endings) - len(done) - len(failed)
    parts = [f"{len(done)} of {len(runs)} runs done"]
    parts += [f"{elsewhere} running elsewhere"] if elsewhere else []
    states = [ending.state for ending in failed.values()]
    parts += [f"{states.count(state)} {state}" for state in dict.fromkeys(states)]
    parts += [f"{len(missing)} not started"] if missing else []
    say(", ".join(parts))
    for case in dict.fromkeys(run.case for run in runs):
        chosen = [number for number, run in enumerate(runs) if run.case == case and number in endings]
        _table(case, [(names[n], runs[n], endings[n]) for n in chosen])
    for number, ending in failed.items():
        log = runs[number].log
        place = f" ({log})" if ending.state in ("failed", "diverged") and log.is_file() else ""
        complain(f"{named(names[number], runs[number])}: {ending.told}{place}")
    if missing:
        again = "; the same command resumes" if signals.asked() is not None else ""
        complain(f"not started: {'; '.join(named(names[n], runs[n]) for n in missing[:MOST])}{again}")
    if len(done) > 1:
        for line in _next([runs[number] for number in done], configuration):
            say(line)
    if signals.asked() is not None:
        return Stopped.exit_code
    code = exit_code([ending.code for ending in failed.values()])
    return code or (1 if missing else Stopped.exit_code if elsewhere else 0)


def _table(case: str, ended: Sequence[tuple[Mapping[str, str], SweepRun, Ending]]) -> None:
    """The rows of one task and length, the best first, and those with a seed that is not done last."""
    rows: dict[tuple[str, ...], SummaryRow] = {}
    for values, _, ending in ended:
        seedless = {key: value for key, value in values.items() if key not in ("seed", "task", "T")}
        rows.setdefault(tuple(seedless.items()), (seedless, []))[1].append(ending)  # type: ignore[arg-type]
    metric = next((ending.metric for _, _, ending in ended if ending.metric), "")
    if not metric or len(ended) < 2:
        return
    task = ended[0][1].settings.parts.task
    higher = task.metric_of(metric).direction == "higher"

    def place(row: SummaryRow) -> tuple[bool, bool, float]:
        scores = [ending.score for ending in row[1] if ending.score is not None]
        return not scores, len(scores) < len(row[1]), (-1 if higher else 1) * mean(scores) if scores else 0.0

    ordered = sorted(rows.values(), key=place)
    seeds = max(len(row[1]) for row in ordered) > 1
    over = ", mean over seeds (lowest to highest)" if seeds else ""
    say(f"{case}: best first by validation {metric}, {'higher' if higher else 'lower'} is better{over}")
    heads = [*ordered[0][0], *(["seeds"] if seeds else []), f"val {metric}", f"test {metric}"]
    lines = []
    for values, endings in ordered[:MOST]:
        done = sum(ending.state == "done" for ending in endings)
        count = str(done) if done == len(endings) else f"{done} of {len(endings)}"
        cells = [in_words(e.scores.get(f"{split}/{metric}") for e in endings) or "none" for split in ("val", "test")]
        lines.append([*values.values(), *([count] if seeds else []), *cells])
    columns(heads, lines)
    if len(ordered) > MOST:
        say(f"  and {len(ordered) - MOST} more")


def _next(runs: Sequence[SweepRun], configuration: Configuration) -> list[str]:
    """The commands that look at these runs further."""
    folder = runs[0].folder.parent
    settings = [by_key(run.settings.as_dict()) for run in runs]
    swept = {key for own in told_apart(runs) for key in own} & set(settings[0]) - {"seed"}
    words = []
    for key in ("task", "T", "model", *sorted(swept - {"task", "T", "model"})):
        values = list(dict.fromkeys(text(own[key]) for own in settings if own.get(key) is not None))
        if values and all(set(value) <= PLAIN for value in values):
            words.append(f"{key}={','.join(values)}")
    options = [word for path in configuration.folders for word in ("--config-dir", str(path))]
    told = ["compare them in full", "draw them", "the command that trains the best ones for longer"]
    found = []
    try:
        for verb, what in zip(("compare", "plot", "best"), told, strict=True):
            found.append(f"  {command(['orthobench', verb, _named(folder), *words, *options])}  {comment(what)}")
    except ConfigError:  # a folder whose name a shell would take for a command
        return []
    return ["next:", *found]


def _named(folder: Path) -> str:
    """A folder of runs as the verbs know it from a table."""
    name = str(folder)
    return name if folder.is_absolute() or name.startswith(".") else f"{name}/"
