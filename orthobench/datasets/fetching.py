"""Downloading one published file: from mirrors in turn, up to a largest size, and kept only if its digest matches."""

import hashlib
import logging
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from orthobench.common.terminal import is_terminal
from orthobench.errors import DataError, StorageError

TRIES = 3
PAUSE_S = 1.0
CONNECT_S, READ_S, WHOLE_S = 10.0, 30.0, 3600.0
REDIRECTS = 5
CHUNK = 1 << 16
AGAIN = (408, 425, 429)
SHOWN = 12


class Refused(Exception):
    """An attempt that failed; `again` tells whether another one may succeed."""

    def __init__(self, reason: str, again: bool) -> None:
        super().__init__(reason)
        self.again = again


def fetch(urls: Sequence[str], target: Path, digest: str | None, cap: int) -> Path:
    """Download a file to `target`, whose folder must exist, from the first of `urls` that provides it.

    Each address is tried at most three times, and only once where the answer is final: 403, 404 or wrong content.

    Args:
        urls: http or https addresses of the same file.
        target: the file to write; it appears under this name only if its content matches.
        digest: `sha256:...`, `md5:...` or `git:...` (git's id of the content as a blob); None where none is published
            and the caller checks the content.
        cap: the largest size in bytes that is accepted.

    Raises:
        DataError: no address provided the file; the sentence gives the reason for each of them.
        StorageError: the file cannot be written.
    """
    reasons = []
    for url in urls:
        for turn in range(1, TRIES + 1):
            try:
                return _retrieve(url, target, digest, cap)
            except Refused as refused:
                tries = f" ({turn} tries)" if turn > 1 else ""
                reason = f"{url}: {refused}{tries}"
                if not refused.again:
                    break
                if turn < TRIES:
                    time.sleep(PAUSE_S * turn)
        reasons.append(reason)
    raise DataError(
        f"{target.name} could not be downloaded: {'; '.join(reasons)}; try again, or put the file there yourself."
    )


def file_digest(path: Path, kind: str) -> str:
    """The digest of a file in hexadecimal, for a kind that `fetch` knows."""
    state = hashlib.new("sha1" if kind == "git" else kind, usedforsecurity=False)
    if kind == "git":
        state.update(b"blob %d\0" % path.stat().st_size)
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            state.update(chunk)
    return state.hexdigest()


def _retrieve(url: str, target: Path, digest: str | None, cap: int) -> Path:
    """Try once; pooch keeps the file under a temporary name until its digest matches."""
    import pooch

    pooch.get_logger().setLevel(logging.WARNING)
    known = None if digest is None or digest.startswith("git:") else digest
    downloader: Any = _Download(digest, cap)
    try:
        pooch.retrieve(url, known, fname=target.name, path=target.parent, downloader=downloader)
    except OSError as error:
        raise StorageError(
            f"{target.parent} cannot be written: {error.strerror or error}; name another folder by data_root=."
        ) from error
    return target


class _Download:
    """The downloader that pooch calls: one request of limited size and duration, whose content must match."""

    def __init__(self, digest: str | None, cap: int) -> None:
        self.digest, self.cap = digest, cap

    def __call__(self, url: str, output_file: str, pooch: Any) -> None:
        import requests
        import urllib3

        session = requests.Session()
        session.max_redirects = REDIRECTS
        headers = {"Accept-Encoding": "identity", "User-Agent": "orthobench"}
        try:
            with session, session.get(url, stream=True, timeout=(CONNECT_S, READ_S), headers=headers) as answer:
                if answer.status_code != 200:
                    status = answer.status_code
                    raise Refused(f"HTTP {status} {answer.reason}", again=status >= 500 or status in AGAIN)
                self._save(answer, Path(output_file))
        except requests.TooManyRedirects as error:
            raise Refused(f"more than {REDIRECTS} redirects", again=False) from error
        except (requests.exceptions.InvalidSchema, requests.exceptions.InvalidURL, ValueError) as error:  # http://[
            raise Refused(f"redirected to an address that is not http: {error}", again=False) from error
        except requests.exceptions.SSLError as error:
            raise Refused("its certificate is not trusted, or it does not speak TLS", again=False) from error
        except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
            raise Refused(_plain(error), again=True) from error
        self._compare(Path(output_file))

    def _save(self, answer: Any, path: Path) -> None:
        promised = answer.headers.get("Content-Length", "")
        total = int(promised) if promised.isdigit() else None
        if total is not None and total > self.cap:
            raise Refused(f"it promises {total:,} bytes where at most {self.cap:,} are expected", again=False)
        size, deadline = 0, time.monotonic() + WHOLE_S
        with path.open("wb") as file, _bar(path, total) as bar:
            for chunk in answer.raw.stream(CHUNK, decode_content=False):
                size += len(chunk)
                if size > self.cap:
                    raise Refused(f"more than {self.cap:,} bytes, the most that is expected", again=False)
                if time.monotonic() > deadline:
                    raise Refused(f"not done after {WHOLE_S:.0f} s", again=False)
                file.write(chunk)
                bar.update(len(chunk))
        if total is not None and size != total:
            raise Refused(f"{size:,} of {total:,} bytes came", again=True)

    def _compare(self, path: Path) -> None:
        if self.digest is None:
            return
        kind, _, expected = self.digest.partition(":")
        found = file_digest(path, kind)
        if found != expected:
            with path.open("rb") as file:
                page = " of a web page" if file.read(256).lstrip().lower().startswith((b"<!doctype", b"<html")) else ""
            was = f"{kind} {found[:SHOWN]}... instead of {expected[:SHOWN]}..."
            raise Refused(f"{was} in {path.stat().st_size:,} bytes{page}", again=False)


def _plain(error: Exception) -> str:
    """A connection error in a few words, without the object names that urllib3 prints."""
    import requests

    if isinstance(error, requests.ConnectTimeout):
        return f"no connection within {CONNECT_S:g} s"
    if isinstance(error, requests.Timeout) or "timed out" in str(error).lower():
        return f"no data for {READ_S:g} s"
    if "IncompleteRead" in str(error):
        return "the connection ended before the file did"
    return f"no connection ({type(error).__name__})"


def _bar(path: Path, total: int | None) -> Any:
    from tqdm import tqdm

    shown = is_terminal(sys.stderr)
    return tqdm(total=total, unit="B", unit_scale=True, desc=path.suffix or "download", leave=False, disable=not shown)
