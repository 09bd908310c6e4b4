"""The command line: a verb, or overrides that run an experiment."""

import argparse
import io
import sys
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orthobench.common import paths, signals
from orthobench.common.program import answered, carried_out, uncollected
from orthobench.common.terminal import complain, say
from orthobench.common.version import __version__
from orthobench.config import typo_hints
from orthobench.config.words import key, value
from orthobench.errors import ConfigError
from orthobench.verbs import RENAMED, VERBS, full_help, short_help

if TYPE_CHECKING:
    from orthobench.config.settings import Settings
    from orthobench.study.catalogue import Catalogue

COMPLETION = ("install", "uninstall", "query")
ANNOUNCED = {"-m", "--multirun", "-cd", "--config-dir"}
OF_SWEEPS = {
    "timeout": "add -m, or limit the run with trainer.max_time=",
    "ensemble": "add -m and several seeds, as seed=1,2",
    "cell": "name the table of this row, with experiment=",
}
OF_CONSTRAINED = ("lr_recurrent", "recurrent")
REFUSED = ("--config-path", "-cp", "--config-name", "-cn", "--experimental-rerun")


def main(arguments: list[str] | None = None) -> int:
    """Run the program; returns its exit code."""
    if arguments is not None:
        return answered(lambda: _answer(arguments))
    return carried_out(lambda: _answer(sys.argv[1:]))


def _answer(words: list[str]) -> int:
    """Do what the words of a command line ask for; returns the exit code."""
    if not words:
        complain(short_help())
        return ConfigError.exit_code
    if "--version" in words:
        say(f"orthobench {__version__}")
        return 0
    if words[0] in RENAMED:
        verb = RENAMED[words[0]]
        raise ConfigError(f"`orthobench {words[0]}` is `orthobench {verb}` now, so use that: {VERBS[verb].does}.")
    if words[0] in VERBS:
        return import_module(f"orthobench.verbs.{words[0]}").main(words[1:])
    with signals.watched(program=True):
        return _experiment(words)


def _experiment(words: list[str]) -> int:
    """Start what the overrides ask for: one run, a sweep, or an option that Hydra answers; returns the exit code."""
    _announce(words)
    options, overrides, catalogue = split(words)
    if options.shell_completion and not catalogue.folders and all(key(word) in COMPLETION for word in overrides):
        return _ask(words)
    if options.help:
        say(full_help())
    if options.help or options.hydra_help or options.cfg or options.info is not None:
        others = options.hydra_help or options.cfg or options.info is not None
        return _hydra(words, overrides, catalogue, help_alone=options.help and not others)
    if options.multirun:
        if any(key(word) == "experiment" for word in overrides):
            from orthobench.verbs import asked, reproduce

            return reproduce.run(asked.Asked.of(overrides), catalogue=catalogue)
        from orthobench.study.sweep import sweep

        return sweep(overrides, catalogue)
    _refuse_what_is_of_sweeps(overrides)
    from orthobench.run.__main__ import done

    with uncollected(for_good=True):
        checked = catalogue.settings(overrides)  # before the slow imports, so that a wrong word is refused at once
        from orthobench.models.build import fit_to_budget
    _tell_what_has_no_effect(overrides, checked)
    return done(fit_to_budget(checked))


def _refuse_what_is_of_sweeps(overrides: list[str]) -> None:
    """Refuse a typed setting that a single run would pass over."""
    from orthobench.config.launchers import LOCAL
    from orthobench.config.launchers import split as apart

    for word in apart(overrides)[0]:
        if key(word) != "hydra/launcher" or LOCAL.get(value(word)) != ():
            raise ConfigError(f"{word} is for sweeps: add -m, which also takes one run.")
    table = any(key(word) == "experiment" for word in overrides)
    for word in overrides:
        name = key(word)
        if name in OF_SWEEPS and value(word) not in ("null", "false") and not (table and name == "cell"):
            raise ConfigError(f"{word} has no effect on a single run: {OF_SWEEPS[name]}.")


def _tell_what_has_no_effect(overrides: list[str], checked: "Settings") -> None:
    """Say which of the typed settings this run passes over, as a sweep over several models may need them."""
    from orthobench.config.settings import ONLY_WITH, TRAINER_NUMBERS

    model, given = checked.model["name"], {**checked.trainer, **checked.stopping}
    for word in overrides:
        section, _, name = key(word).partition(".")
        if section == "optimizer" and name in OF_CONSTRAINED and name not in checked.optimizer:
            complain(f"orthobench: {word} has no effect: model={model} has no constrained parameters.")
        needed = ONLY_WITH.get(name, ()) if section == "trainer" else ()
        if needed and all(given.get(other) is None for other in needed):
            named = (f"{'trainer' if other in TRAINER_NUMBERS else 'stopping'}.{other}=" for other in needed)
            complain(f"orthobench: {word} has no effect without {' or '.join(named)}.")


def _announce(words: list[str]) -> None:
    """Say that the program has begun, before the imports take a second; not where an option asks for another answer.

    The words are not repeated: one of them may be a secret, which is then refused.
    """
    options = {word.split("=")[0] for word in words if word.startswith("-")}
    if options <= ANNOUNCED and any("=" in word for word in words):
        say(f"orthobench {__version__} reads the configuration")


def split(words: list[str]) -> "tuple[Any, list[str], Catalogue]":
    """Hydra's options, the overrides, and the catalogue with the folders of `--config-dir`.

    Raises:
        ConfigError: a word that is neither an option of Hydra's nor an override, or an option that is refused.
    """
    from hydra._internal.utils import get_args_parser

    from orthobench.config.check import ROOT
    from orthobench.config.files import GROUPS
    from orthobench.study.catalogue import Catalogue

    for word in words:
        problem = typo_hints.dashed(word, {*ROOT, *GROUPS})
        if problem:
            raise ConfigError(problem)
        if word.split("=")[0] in REFUSED:
            raise ConfigError(
                f"{word.split('=')[0]} is refused: the configuration is orthobench's own; use --config-dir."
            )
        if (
            not word.startswith(("-", "~"))
            and "=" not in word
            and word not in ("job", "hydra", "all")
            and not _follows(words, word)
        ):
            sentence = typo_hints.misplaced(words, word)
            raise ConfigError(sentence or f"{word!r} is neither a verb nor key=value: {_hint(word)}")
    parser = argparse.ArgumentParser(
        parents=[get_args_parser()],
        add_help=False,
        allow_abbrev=False,  # or the start of a refused option would be that option
        conflict_handler="resolve",
    )
    parser.error = _usage_error  # type: ignore[method-assign]
    parser.add_argument("--config-dir", "-cd", action="append", default=[])  # Hydra's own keeps the last one alone
    options = parser.parse_intermixed_args(words)
    folders = (paths.expanded(folder, "--config-dir") for folder in options.config_dir if folder)
    return options, options.overrides, Catalogue(tuple(map(Path, folders)))


def _follows(words: list[str], word: str) -> bool:
    """Return True if `word` is the value of the option before it."""
    before = words[words.index(word) - 1] if words.index(word) else ""
    return before in ("--config-dir", "-cd", "--package", "-p", "--info", "-i", "--cfg", "-c")


def _hint(word: str) -> str:
    from orthobench.common.schema import did_you_mean

    return f"as a verb it comes first, orthobench {word} ..." if word in VERBS else did_you_mean(word, VERBS)


def _usage_error(message: str) -> None:
    raise ConfigError(f"{message}; see `orthobench --help`.")


def _hydra(words: list[str], overrides: list[str], catalogue: "Catalogue", help_alone: bool) -> int:
    """Let Hydra answer `--cfg` and the like, from a configuration that has been checked first; `--help` is our own."""
    from orthobench.config.words import quoted

    cell = catalogue.expand(overrides)
    words = cell + [word for word in words if word not in (*overrides, "-m", "--multirun")]
    parsed = catalogue.parse(cell)
    swept = [word.key for word in parsed if word.sweep]
    if swept:
        raise ConfigError(f"{swept[0]}= has several values, but this option describes a single run: give one value.")
    composed = catalogue.compose(cell)
    if composed.unknown():
        from orthobench.config.check import check

        check(composed)
    if help_alone:
        from orthobench.config.help import text

        say(text(catalogue, composed))
        return 0
    texts = {text: word.text for text, word in zip(cell, parsed, strict=True)}
    folders = catalogue.folders
    first = ["--config-dir", str(folders[0])] if folders else []  # of several Hydra takes this, the last one
    others = ",".join(quoted(f"file://{folder.resolve()}") for folder in folders[1:])
    more = [f"hydra.searchpath=[{others}]"] if others else []
    return _ask([*more, *(texts.get(word, word) for word in words), *first])


def _ask(words: list[str]) -> int:
    """Leave the answer to Hydra."""
    import hydra

    from orthobench.config.files import conf_dir

    sys.argv, text = ["orthobench", *words], io.StringIO()
    try:
        with redirect_stdout(text):  # Hydra ends with a traceback where its reader has gone
            hydra.main(version_base="1.3", config_path=str(conf_dir()), config_name="config")(_nothing)()
    finally:
        say(text.getvalue(), end="")
    return 0


def _nothing(cfg: Any) -> None:
    """The task function that Hydra requires; it is never called, because Hydra answers these options itself."""


if __name__ == "__main__":
    sys.exit(main())
