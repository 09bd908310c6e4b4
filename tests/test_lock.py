"""requirements.lock has every pinned package and every dependency, each with its hashes."""

import re
import tomllib

from tests.conftest import REPO

LOCK = (REPO / "requirements.lock").read_text(encoding="utf-8")
ENTRIES = re.findall(r"(?m)^([A-Za-z0-9_.-]+)==(\S+)(.*(?:\n +.*)*)", LOCK)


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_what_is_pinned_is_locked() -> None:
    pinned = re.findall(r"(?m)^([A-Za-z0-9_.-]+)==(\S+)", (REPO / "constraints.txt").read_text(encoding="utf-8"))
    locked = {(plain(name), version) for name, version, _ in ENTRIES}
    assert {(plain(name), version) for name, version in pinned} <= locked


def test_every_dependency_is_locked() -> None:
    project = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [
        *project["dependencies"],
        *(word for words in project["optional-dependencies"].values() for word in words),
    ]
    names = {plain(re.match(r"[A-Za-z0-9_.-]+", word)[0]) for word in wanted}  # type: ignore[index]
    assert names <= {plain(name) for name, _, _ in ENTRIES}


def test_every_package_has_hashes() -> None:
    assert len(ENTRIES) > 100
    assert [name for name, _, rest in ENTRIES if not re.search(r"--hash=sha256:[0-9a-f]{64}", rest)] == []
    assert not re.search(r"(?m)^(?!#| |[A-Za-z0-9_.-]+==)", LOCK.strip()), "no other kind of line, such as an address"
