"""BibTeX entries: results/published/<paper>.bib of each paper, references.bib of everything else that a model cites.

A folder of `--config-dir` has them in `published/`, in a .bib file of any name; that of a paper is `<paper>.bib`.
"""

import re
from functools import cache
from pathlib import Path

from orthobench.analysis.published import papers, published_dirs
from orthobench.config.about import read
from orthobench.config.files import options
from orthobench.config.table import Table, load, tables
from orthobench.errors import ConfigError
from orthobench.schema import did_you_mean

START = re.compile(r"^@\w+\s*\{\s*([^,\s}]+)\s*,", flags=re.M)


def cited(word: str, folders: tuple[Path, ...] = ()) -> list[str]:
    """The entries of a model, a paper or a table: its own `cite:`, a paper's file, or those of its models.

    Raises:
        ConfigError: the word is not known, or nothing says what to cite.
    """
    if word in tables(folders):
        return _of_table(load(word, folders), folders)
    if word in options("model", folders):
        return _of_model(word, folders)
    if word in papers(folders):
        return _of_paper(word, folders)
    known = {*options("model", folders), *papers(folders), *tables(folders)}
    raise ConfigError(f"cite {word} is not known: {did_you_mean(word, known)}")


def entries(folders: tuple[Path, ...] = ()) -> dict[str, str]:
    """Every entry by its key.

    Raises:
        ConfigError: a key has two different entries, or a file is no BibTeX.
    """
    found: dict[str, str] = {}
    for path in (path for folder in published_dirs(folders) for path in sorted(folder.glob("*.bib"))):
        for name, text in _read(path).items():
            if found.setdefault(name, text) != text:
                raise ConfigError(f"{path}: {name} is the key of another entry in an earlier file; rename it.")
    return found


def _of_table(table: Table, folders: tuple[Path, ...]) -> list[str]:
    own = read("experiment", table.name, folders)[0].cite
    if own:
        return [_entry(name, f"experiment/{table.name}.yaml", folders) for name in own]
    if table.paper in papers(folders):
        return _of_paper(table.paper, folders)
    models = dict.fromkeys(table.chosen(row)["model"] for row in table.rows)
    return list(dict.fromkeys(entry for model in models for entry in _of_model(model, folders)))


def _of_model(model: str, folders: tuple[Path, ...]) -> list[str]:
    about, _ = read("model", model, folders)
    place = f"model/{model}.yaml"
    if about.cite is None:
        raise ConfigError(f"{place} does not say what to cite: add `cite: KEY` of a BibTeX entry, or `cite: []`.")
    return [_entry(name, place, folders) for name in about.cite]


def _of_paper(paper: str, folders: tuple[Path, ...]) -> list[str]:
    paths = [folder / f"{paper}.bib" for folder in published_dirs(folders)]
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
        raise ConfigError(f"{paper} has no BibTeX entry: put one into {paper}.bib beside {paper}.yaml.")
    return list(_read(path).values())


def _entry(name: str, place: str, folders: tuple[Path, ...]) -> str:
    known = entries(folders)
    if name not in known:
        raise ConfigError(f"cite: {name} in {place} is the key of no entry of a .bib file: {did_you_mean(name, known)}")
    return known[name]


@cache
def _read(path: Path) -> dict[str, str]:
    """The entries of one file, each from its @ to the brace that closes it."""
    text = path.read_text(encoding="utf-8")
    starts = [(found.start(), found[1]) for found in START.finditer(text)]
    ends = [*(start for start, _ in starts), len(text)][1:]
    found = {name: text[start:end].strip() for (start, name), end in zip(starts, ends, strict=True)}
    wrong = [name for name, entry in found.items() if entry.count("{") != entry.count("}") or entry[-1] != "}"]
    if wrong or not found or len(found) < len(starts):
        what = f"{wrong[0]} does not end with its closing brace" if wrong else "no entry, or one key twice"
        raise ConfigError(f"{path} is no BibTeX that can be read: {what}.")
    return found
