"""Slips of the pen on a command line, and what to write instead."""

from collections.abc import Collection, Sequence

VERBS_OF_OTHERS = {
    "run": "a run has no verb, `orthobench model=scornn task=copying` starts one",
    "train": "a run has no verb, `orthobench model=scornn task=copying` starts one",
    "resume": "the command that started a run goes on with it where it stopped",
    "continue": "the command that started a run goes on with it where it stopped",
    "evaluate": "`orthobench eval RUN` scores a finished run",
    "test": "`orthobench eval RUN` scores a finished run",
    "sweep": "`orthobench -m KEY=VALUE,VALUE` runs a sweep",
    "download": "`orthobench prepare DATASET` downloads a data set",
    "help": "`orthobench --help` explains every key",
}
KEYS_OF_OTHERS = {
    "t": "T=",
    "length": "T=",
    "steps": "trainer.max_steps=",
    "epochs": "trainer.max_epochs=",
    "device": "trainer.accelerator=cpu or gpu",
    "gpu": "trainer.accelerator=gpu",
    "gpus": "trainer.accelerator=gpu",
    "data": "data_root=",
    "workers": "task.num_workers=",
}


def other_key(key: str) -> str | None:
    """Hint for a setting's name in other programs; None if nothing comes to mind."""
    meant = KEYS_OF_OTHERS.get(key)
    return None if meant is None else f"did you mean {meant}?"


def dashed(word: str, keys: Collection[str]) -> str | None:
    """The sentence about `--T=200` or `--T`, where `T` is one of the keys; None for any other word."""
    name, equals, value = word.lstrip("-").partition("=")
    if not word.startswith("--") or name.split(".")[0] not in {*keys, *KEYS_OF_OTHERS}:
        return None
    return f"{word} is no option: settings have no dashes, write {name}={value if equals else 'VALUE'}."


def misplaced(words: Sequence[str], word: str) -> str | None:
    """The sentence about a word without `=`, such as the parts of `T = 200`; None where there is nothing to say."""
    place = words.index(word)
    before = words[place - 1] if place else ""
    after = words[place + 1] if place + 1 < len(words) else ""
    if before.endswith("="):
        return f"{before!r} is followed by a blank: write {before}{word}."
    if after.startswith("="):
        return f"{word!r} is followed by a blank: write {word}{after if len(after) > 1 else '=VALUE'}."
    hint = VERBS_OF_OTHERS.get(word.lower())
    return None if hint is None else f"{word!r} is no verb: {hint}."


def spelling(text: str) -> str | None:
    """The sentence about `T =200` in one word or `T=200,`; None where neither is the fault."""
    key, equals, value = text.partition("=")
    if equals and key != key.strip():
        return f"{text!r} has a blank before =: write {key.strip()}={value.strip()}."
    if equals and value.rstrip().endswith(","):
        plain = f"{key}={value.rstrip().rstrip(',')}"
        return f"{text!r} ends with a comma: write {plain}, or several values with -m."
    return None
