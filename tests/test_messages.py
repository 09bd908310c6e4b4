"""Every error message of the package, in one file that is read from end to end: tests/messages.txt."""

import ast

import pytest

from scripts.messages import FILE, MEAN, SENTENCES, messages, names_a_fix, raised, sentences, words

LONGEST = 40  # words of a message's longest sentence
REASONS = """
it is running now
it names a file of somebody's own, which is not read.
its best checkpoint is damaged or missing
its last checkpoint is damaged or missing
its last checkpoint is not of its last validation
its record is that of another run, {record.get('run_id')}
its record lacks {error}, as one of another version
its record names no {unnamed}
{'record.json is damaged' if path.is_file() else 'it has no record, as if it had been killed'}
{record.get('status')}, {record.get('reason')}
"""  # parts of another sentence, which says what to do
FILLED_IN = """
${PLUGINS} names {name}, which cannot be imported: {why}; {fix}.
--style {style} is neither a style file nor a style of matplotlib: {hint}.
hydra.launcher.gpus={gpus}: this machine shows {len(known) or 'no'} GPUs; {some}.
hidden_size={n} does not suit givens: {reason}
hidden_size={n} does not suit plane rotations: {reason}
model.hidden_size={n} does not suit {name}: {reason}
model.output_bias_init={scheme} is not known: {known}
model={model['name']} is a feed-forward model, and task={name} has sequences: {use}.
model={model['name']} reads sequences, and task={name} has none: {use}.
stopping.{key}={filled[key]} is no metric of this task: {known}
{group}={shown} is not known: {told}
{word} has no effect on a single run: {OF_SWEEPS[name]}.
{key}= is not a setting: {_place(key, values)}
{key}={name} is not known: {told}
{missing}
{path}: column {shown(name)} is empty in row {int(empty.argmax()) + 1} after the header{fix}.
{place}: {error}
{problem}
{run} is no run: there is no config.yaml in {places}; {_hint(Path(run), runs)}
{self.task.no_training}.
{sentence or f'{word!r} is neither a verb nor key=value: {_hint(word)}'}
{stale}
{table.name} ({printed.label}, {printed.column}): {error}
{typo_hints.spelling(word) or wrong}
{where} is damaged or not the published one: {found[:16]}... instead of {expected[:16]}..., {len(content)} bytes; \
{remedy(data_set)}.
{where}:{i + 1}:{j + first}: the value is missing (NaN); {rule}.
{where}:{i}:{j}: {shown(cell)} is not a number{_hint(cell, separator)}.
"""  # whose fix is in a value: a hint, a rule, or another message


def test_the_file_is_fresh() -> None:
    """Renewed by `python scripts/messages.py --write`; read what is new in it."""
    assert FILE.read_text(encoding="utf-8").splitlines() == messages()


def test_there_are_messages_of_every_room() -> None:
    assert len(messages()) > 600


def test_a_message_has_two_sentences_at_most() -> None:
    long = [text for text in _texts() if sentences(text) > SENTENCES]
    assert long == [], f"{len(long)} of {len(_texts())} messages have more than {SENTENCES} sentences"


def test_the_sentences_are_short() -> None:
    counts = [(words(text), sentences(text)) for text in _texts()]
    assert sum(count for count, _ in counts) <= MEAN * sum(number for _, number in counts)
    assert [text for text in _texts() if words(text) > LONGEST * sentences(text)] == []


def test_a_message_of_every_class_names_a_fix() -> None:
    """All but the listed ones, of which each is still there."""
    assert sorted({text for text in _texts() if not names_a_fix(text)}) == sorted(_lines(REASONS) + _lines(FILLED_IN))


def _texts() -> list[str]:
    return [line.partition(": ")[2] for line in messages()]


def _lines(text: str) -> list[str]:
    return text.strip().splitlines()


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("a.csv is empty.", False),
        ("a.csv is empty: fetch it again.", True),
        ("k=0 is out of range.", False),
        ("k=0 is out of range: it must be >= 1.", True),
        ("{use or write} is no file.", False),  # a value's own code is no fix
        ("k is not known: {did_you_mean(k, known)}", True),
        ("no data: `python -m orthobench prepare har` fetches them.", True),
    ],
)
def test_a_fix(text: str, named: bool) -> None:
    assert names_a_fix(text) == named


def test_a_text_with_a_name_is_put_in_place() -> None:
    module = "HOW = 'fetch it again'\ndef f(x):\n    told = f'{x} is empty'\n    raise DataError(f'{told}: {HOW}.')\n"
    assert list(raised(ast.parse(module))) == [("DataError", "{x} is empty: fetch it again.")]


@pytest.mark.parametrize(
    ("text", "count"),
    [("a is b: write c.", 1), ("a is b. Write c.", 2), ("{x} is b. Run `a. B`. Or not.", 3), ("3.5 is no 1.", 1)],
)
def test_sentences(text: str, count: int) -> None:
    assert sentences(text) == count
