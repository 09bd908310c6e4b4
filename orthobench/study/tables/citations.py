"""BibTeX entries: results/published/<paper>.bib of each paper, references.bib of everything else that a model cites.

A folder of `--config-dir` has them in `published/`, in a .bib file of any name; that of a paper is `<paper>.bib`.
"""

import re
from functools import cache
from pathlib import Path

from orthobench.common.schema import refuse_unknown
from orthobench.config.files import Files
from orthobench.errors import ConfigError
from orthobench.study.tables.published import papers, published_dirs
from orthobench.study.tables.table import Table

START = re.compile(r"^@\w+\s*\{\s*([^,\s}]+)\s*,", flags=re.M)


def entries(files: Files) -> dict[str, str]:
    """Every entry by its key.

    Raises:
        ConfigError: a key has two different entries, or a file is no BibTeX.
    """
    found: dict[str, str] = {}
    for path in (path for folder in published_dirs(files) for path in sorted(folder.glob("*.bib"))):
        for name, text in _read(path).items():
            if found.setdefault(name, text) != text:
                raise ConfigError(f"{path}: {name} is the key of another entry in an earlier file; rename it.")
    return found


def of_table(table: Table) -> list[str]:
    """The entries of a table: its own `cite:`, its paper's, or those of its models.

    Raises:
        ConfigError: nothing says what to cite.
    """
    files = table.files
    own = files.about("experiment", table.name)[0].cite
    if own:
        return [_entry(name, f"experiment/{table.name}.yaml", files) for name in own]
    if table.paper in papers(files):
        return of_paper(table.paper, files)
    models = dict.fromkeys(table.chosen(row)["model"] for row in table.rows)
    return list(dict.fromkeys(entry for model in models for entry in of_model(model, files)))


def of_model(model: str, files: Files) -> list[str]:
    """The entries of a model.

    Raises:
        ConfigError: its file does not say what to cite.
    """
    about, _ = files.about("model", model)
    place = f"model/{model}.yaml"
    if about.cite is None:
        raise ConfigError(f"{place} does not say what to cite: add `cite: KEY` of a BibTeX entry, or `cite: []`.")
    return [_entry(name, place, files) for name in about.cite]


def of_paper(paper: str, files: Files) -> list[str]:
    """The entries of a paper, those of its file.

    Raises:
        ConfigError: it has no file, or this is no BibTeX.
    """
    paths = [folder / f"{paper}.bib" for folder in published_dirs(files)]
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
        raise ConfigError(f"{paper} has no BibTeX entry: put one into {paper}.bib beside {paper}.yaml.")
    return list(_read(path).values())


def _entry(name: str, place: str, files: Files) -> str:
    known = entries(files)
    refuse_unknown([name], known, "cite: ", f" in {place} is the key of no entry of a .bib file")
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
        raise ConfigError(f"{path} is no BibTeX that can be read: {what}; correct that entry.")
    return found
