import hashlib
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from orthobench.datasets import fetching
from orthobench.datasets.fetching import fetch, file_digest
from orthobench.errors import DataError, StorageError
from tests.datasets.serving import Answer, Server, send, serving

BODY = bytes(range(256)) * 300
DIGEST = "sha256:" + hashlib.sha256(BODY).hexdigest()
PAGE = b"<!DOCTYPE html><html><body>Please sign in</body></html>"


def hang(handler: BaseHTTPRequestHandler) -> None:
    send(handler, BODY[:100], length=len(BODY))
    handler.server.released.wait(5)  # type: ignore[attr-defined]


def silent(handler: BaseHTTPRequestHandler) -> None:
    handler.server.released.wait(5)  # type: ignore[attr-defined]


def endless(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.end_headers()
    for _ in range(10_000):
        handler.wfile.write(BODY)


ANSWERS: dict[str, Answer] = {
    "/good": lambda h: send(h, BODY),
    "/unsized": lambda h: send(h, BODY, length=None),
    "/short": lambda h: send(h, BODY[:-7], length=len(BODY)),
    "/short-unsized": lambda h: send(h, BODY[:-7], length=None),
    "/empty": lambda h: send(h, b""),
    "/wrong": lambda h: send(h, BODY[::-1]),
    "/page": lambda h: send(h, PAGE),
    "/403": lambda h: send(h, PAGE, 403),
    "/404": lambda h: send(h, PAGE, 404),
    "/500": lambda h: send(h, PAGE, 500),
    "/206": lambda h: send(h, BODY, 206),
    "/hang": hang,
    "/silent": silent,
    "/loop": lambda h: send(h, b"", 302, Location="/loop"),
    "/elsewhere": lambda h: send(h, b"", 302, Location="file:///etc/passwd"),
    "/moved": lambda h: send(h, b"", 302, Location="/good"),
    "/huge": lambda h: send(h, BODY, length=1 << 40),
    "/endless": endless,
    "/gzip": lambda h: send(h, b"\x1f\x8b" + bytes(50), **{"Content-Encoding": "gzip"}),
}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(fetching, "PAUSE_S", 0.0)

    with serving(ANSWERS) as server:
        yield server


@pytest.mark.parametrize("path", ["/good", "/unsized", "/moved"])
def test_the_published_file_is_kept(server: Server, tmp_path: Path, path: str) -> None:
    target = fetch([server.url(path)], tmp_path / "x.bin", DIGEST, 1 << 20)
    assert target.read_bytes() == BODY
    assert [p.name for p in tmp_path.iterdir()] == ["x.bin"]


@pytest.mark.parametrize(
    ("path", "tries", "reason"),
    [
        ("/short", 3, "the connection ended before the file did"),
        ("/short-unsized", 1, r"sha256 \w{12}... instead of \w{12}... in 76,793 bytes"),
        ("/empty", 1, "in 0 bytes"),
        ("/wrong", 1, r"sha256 \w{12}... instead of " + DIGEST[7:19] + r"... in 76,800 bytes"),
        ("/page", 1, "bytes of a web page"),
        ("/gzip", 1, "in 52 bytes"),
        ("/403", 1, "HTTP 403"),
        ("/404", 1, "HTTP 404"),
        ("/206", 1, "HTTP 206"),
        ("/500", 3, "HTTP 500"),
        ("/hang", 3, "no data for 0.3 s"),
        ("/silent", 3, "no data for 0.3 s"),
        ("/loop", 6, "more than 5 redirects"),
        ("/elsewhere", 1, "not http"),
        ("/huge", 1, "promises 1,099,511,627,776 bytes"),
        ("/endless", 1, "more than 1,048,576 bytes"),
    ],
)
def test_whatever_else_comes_is_refused_and_nothing_is_kept(
    server: Server, tmp_path: Path, path: str, tries: int, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "no data" in reason:  # an answer that does come may be late where other programs run
        monkeypatch.setattr(fetching, "READ_S", 0.3)
    url = server.url(path)
    with pytest.raises(DataError, match=reason) as caught:
        fetch([url], tmp_path / "x.bin", DIGEST, 1 << 20)
    assert url in str(caught.value)
    assert "x.bin" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert server.asked == [path] * tries
    assert list(tmp_path.iterdir()) == []


def test_mirrors_are_asked_in_turn_until_one_has_it(server: Server, tmp_path: Path) -> None:
    urls = [server.url(path) for path in ("/404", "/wrong", "/500", "/good", "/page")]
    assert fetch(urls, tmp_path / "x.bin", DIGEST, 1 << 20).read_bytes() == BODY
    assert server.asked == ["/404", "/wrong", "/500", "/500", "/500", "/good"]


def test_every_mirror_s_reason_is_told(server: Server, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"/404: HTTP 404.*; .*/500: HTTP 500.*\(3 tries\); try again"):
        fetch([server.url("/404"), server.url("/500")], tmp_path / "x.bin", DIGEST, 1 << 20)


def test_nobody_listens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "PAUSE_S", 0.0)
    with Server() as closed:
        url = closed.url("/good")
    with pytest.raises(DataError, match=r"no connection.*\(3 tries\)"):
        fetch([url], tmp_path / "x.bin", DIGEST, 1 << 20)


def test_a_trickle_ends_too(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "WHOLE_S", 0.0)
    with pytest.raises(DataError, match="not done after"):
        fetch([server.url("/unsized")], tmp_path / "x.bin", DIGEST, 1 << 20)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_a_storage_error(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: object, answer: object, path: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(fetching._Download, "_save", fail)
    with pytest.raises(StorageError, match="No space left"):
        fetch([server.url("/good")], tmp_path / "x.bin", DIGEST, 1 << 20)


def test_digests(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"hello\n")
    assert file_digest(path, "git") == "ce013625030ba8dba906f756967f9e9ca394464a"  # git hash-object
    assert file_digest(path, "md5") == "b1946ac92492d2347c6235b4d2611184"
    assert file_digest(path, "sha256").startswith("5891b5b522d5df08")


@pytest.mark.parametrize("digest", ["git", "md5", "sha256"])
def test_each_kind_of_digest_is_checked(server: Server, tmp_path: Path, digest: str) -> None:
    (tmp_path / "good").write_bytes(BODY)
    known = f"{digest}:{file_digest(tmp_path / 'good', digest)}"
    assert fetch([server.url("/good")], tmp_path / "x", known, 1 << 20).read_bytes() == BODY
    with pytest.raises(DataError, match=digest):
        fetch([server.url("/wrong")], tmp_path / "y", known, 1 << 20)
    assert not (tmp_path / "y").exists()


@pytest.fixture
def secure(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server of https whose certificate nobody has signed but itself."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl, which makes the certificate, is not installed")
    home = tmp_path_factory.mktemp("certificate")
    files = ["-keyout", str(home / "key.pem"), "-out", str(home / "certificate.pem")]
    kind = ["-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost"]
    subprocess.run(["openssl", "req", "-x509", *kind, *files], check=True, capture_output=True)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(fetching, "PAUSE_S", 0.0)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(home / "certificate.pem", home / "key.pem")
    with serving(ANSWERS, lambda socket: context.wrap_socket(socket, server_side=True)) as made:
        yield made


@pytest.mark.parametrize("digest", [DIGEST, None])
def test_a_certificate_that_nobody_has_signed_is_refused(secure: Server, tmp_path: Path, digest: str | None) -> None:
    url = secure.url("/good").replace("http:", "https:")
    with pytest.raises(DataError, match=r"its certificate is not trusted") as caught:
        fetch([url], tmp_path / "x.bin", digest, 1 << 20)
    assert url in str(caught.value)
    assert secure.asked == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
@pytest.mark.parametrize(("path", "kept"), [("/good", True), ("/wrong", False), ("/404", False)])
def test_of_a_redirect_to_another_host_only_the_published_file_is_kept(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str, path: str, kept: bool
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    with serving(ANSWERS) as other:
        place = other.url(path).replace("127.0.0.1", host)
        monkeypatch.setitem(ANSWERS, "/away", lambda h: send(h, b"", 302, Location=place))
        if kept:
            assert fetch([server.url("/away")], tmp_path / "x.bin", DIGEST, 1 << 20).read_bytes() == BODY
        else:
            with pytest.raises(DataError, match=r"x\.bin could not be downloaded"):
                fetch([server.url("/away")], tmp_path / "x.bin", DIGEST, 1 << 20)
            assert list(tmp_path.iterdir()) == []
        assert other.asked == [path]


@pytest.mark.parametrize(
    "place", ["file:///etc/passwd", "ftp://127.0.0.1/x", "javascript:1", "data:text/plain,x", "http://[", "http://"]
)
def test_a_redirect_to_what_is_no_web_address_is_refused(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setitem(ANSWERS, "/away", lambda h: send(h, b"", 302, Location=place))
    with pytest.raises(DataError, match=r"x\.bin could not be downloaded") as caught:
        fetch([server.url("/away")], tmp_path / "x.bin", None, 1 << 20)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []
