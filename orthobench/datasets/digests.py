"""The digests of the published files that are known, digests.json, and what is read compared with them.

The bytes that are read are compared at every load: a digest costs less than reading, and a file that is changed between
the two is noticed. Compressed files are known by what they unpack to, so that every packing of a file will do.
"""

import hashlib
import json
from functools import cache
from pathlib import Path

from orthobench.errors import DataError


def verify(data_set: str, name: str, content: bytes, where: object) -> bytes:
    """Content that is what was published under this name, or of whose name no digest is known.

    Args:
        data_set: as `orthobench prepare` names it.
        name: the file's name, without the ending of a packing.
        content: its bytes.
        where: the file in messages.

    Raises:
        DataError: it is other content.
    """
    expected = _known().get(f"{data_set}/{name}")
    if expected is not None and (found := digest(content, expected.partition(":")[0])) != expected:
        raise DataError(
            f"{where} is damaged or not the published one: {found[:16]}... instead of {expected[:16]}..., "
            f"{len(content):,} bytes; {remedy(data_set)}."
        )
    return content


def remedy(data_set: str) -> str:
    """Advice about a file that is not the published one."""
    return f"delete it and run `python -m orthobench prepare {data_set}`, or set data.verify=false to read it as it is"


def digest(content: bytes, kind: str) -> str:
    """`kind:hexadecimal` of `content` for `sha256`, `md5`, or `git`, git's id of it as a blob."""
    if kind == "git":
        content = b"blob %d\0" % len(content) + content
    return f"{kind}:{hashlib.new('sha1' if kind == 'git' else kind, content, usedforsecurity=False).hexdigest()}"


@cache
def _known() -> dict[str, str]:
    return json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
