"""results/site: the pages, their script and style, the records behind them, and what they show as data."""

import hashlib
import json
import stat
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any

from orthobench.errors import StorageError
from orthobench.recording.files import read_json, within, write_json
from orthobench.report.site.environment import environment
from orthobench.report.site.pages import DOCS, FROM_OTHERS, MENU, pages
from orthobench.report.site.places import OUTSIDE, Places, slug

WRITTEN = "written.json"  # the digests of every file that the program has written, by its path in the site
LARGEST = 1 << 28  # bytes of a file that is compared or copied
ASSETS = ("style.css", "site.js")


def write(data: dict[str, Any], results: Path, script: str, written: str = "") -> Path:
    """Write the site of a results.json below `results`, and remove what an earlier one left; returns its first page.

    Only a file is replaced or removed that has a digest which an earlier call has written into WRITTEN.

    Args:
        data: what `collected.collected` returns.
        results: the folder of the records.
        script: what draws the plots, see `charts.javascript`.
        written: when and by what code it is made.

    Raises:
        StorageError: a file cannot be written, is not the program's own, or a part of its path is a link.
    """
    root = within(results, "site")
    kept = {name: found for name, found in data.items() if name != "figures"}  # which are drawn from the same records
    files = {"results.json": json.dumps(kept, separators=(",", ":"), allow_nan=False), "assets/vega.js": script}
    files |= {f"assets/{name}": environment().loader.get_source(environment(), name)[0] for name in ASSETS}  # type: ignore[union-attr]
    files |= rendered(data, written, (root / DOCS).is_file())
    found = {name: text.encode() for name, text in files.items()}
    copied = {place["record"] for run in data["runs"].values() for place in run["places"]}
    try:
        found |= {name: _content(within(results, name)) or b"" for name in copied}
        _replace(root, found)
    except OSError as error:
        raise StorageError(
            f"{root} cannot be written: {error}; set results_root= to a folder that can be written."
        ) from error
    return root / "index.html"


def rendered(data: dict[str, Any], written: str = "", documented: bool = False) -> dict[str, str]:
    """Every page and every plot's data, by path.

    Args:
        data: what `collected.collected` returns.
        written: when and by what code it is made.
        documented: whether the documentation stands in its folder, so that pages lead there.
    """
    found, places = {}, Places(data)
    menu = [*MENU, *([(OUTSIDE, FROM_OTHERS)] if data["outside"] else []), *([(DOCS, "Docs")] if documented else [])]
    for path, template, shown in pages(data):
        root = "../" * (len(PurePosixPath(path).parts) - 1)
        about = {"root": root, "here": path, "menu": menu, "written": written, "places": places, "plots": []}
        found[path] = environment().get_template(template).render(**about | shown)
        found |= {f"data/{slug(plot.name)}.csv": plot.csv for plot in shown.get("plots", ())}
    return found


def _replace(root: Path, files: dict[str, bytes]) -> None:
    """Let the files of a site be these; WRITTEN names the old and the new ones while they are replaced."""
    before = _digests(within(root, WRITTEN))
    new = {name: [_digest(content)] for name, content in files.items()}
    changed = {name: content for name, content in files.items() if _content(within(root, name)) != content}
    for name in changed:
        _refuse_other(within(root, name), before.get(name, []))
    root.mkdir(parents=True, exist_ok=True)
    write_json(within(root, WRITTEN), {name: before.get(name, []) + new.get(name, []) for name in {**before, **new}})
    for name, content in changed.items():
        path = within(root, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and path.stat().st_nlink > 1:
            path.unlink()  # or another name of the same file, a hard link, would change too
        path.write_bytes(content)
    for name in before.keys() - files.keys():
        with suppress(StorageError):  # a name or a link that leads elsewhere, or a file of somebody else's
            path = within(root, name)
            _refuse_other(path, before[name])
            path.unlink(missing_ok=True)
    write_json(within(root, WRITTEN), new)


def _digests(path: Path) -> dict[str, list[str]]:
    """The digests in WRITTEN, by name; none where it is not there or is damaged."""
    found = read_json(path) or {}
    return {
        name: [one for one in digests if isinstance(one, str)]
        for name, digests in found.items()
        if isinstance(digests, list)
    }


def _refuse_other(path: Path, digests: list[str]) -> None:
    """Refuse a file that is there and has none of these digests.

    Raises:
        StorageError: it has not, or is no plain file of at most LARGEST bytes.
    """
    content = _content(path)
    if content is not None and _digest(content) not in digests:
        raise StorageError(
            f"{path} is not what this program wrote, as {WRITTEN} has it: move it elsewhere, or delete the site."
        )


def _content(path: Path) -> bytes | None:
    """The bytes of a plain file of at most LARGEST bytes; None where there is none."""
    if not path.exists():
        return None
    state = path.stat()
    if not stat.S_ISREG(state.st_mode) or state.st_size > LARGEST:
        raise StorageError(f"{path} is no plain file of at most {LARGEST:,} bytes: remove it.")
    return path.read_bytes()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
