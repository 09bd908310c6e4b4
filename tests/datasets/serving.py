"""A server of this machine that answers by path and remembers what was asked."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[BaseHTTPRequestHandler], None]


def send(
    handler: BaseHTTPRequestHandler, body: bytes, status: int = 200, length: int | None = -1, **headers: str
) -> None:
    handler.send_response(status)
    if length is not None:
        handler.send_header("Content-Length", str(len(body) if length < 0 else length))
    for name, value in headers.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(body)


class Server(ThreadingHTTPServer):
    """What `answers` does not name is 404."""

    daemon_threads = True

    def __init__(self, answers: dict[str, Answer] | None = None) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers = {} if answers is None else answers
        self.asked: list[str] = []
        self.released = threading.Event()

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server_port}/{path.removeprefix('/')}"

    def offer(self, name: str, content: bytes) -> str:
        self.answers[f"/{name}"] = lambda handler: send(handler, content)
        return self.url(name)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is what many tests are about."""


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        self.server.answers.get(self.path, lambda handler: send(handler, b"", 404))(self)

    def log_message(self, *args: object) -> None:
        """Nothing on the terminal."""


@contextmanager
def serving(
    answers: dict[str, Answer] | None = None, wrap: Callable[[Any], Any] = lambda socket: socket
) -> Iterator[Server]:
    with Server(answers) as server:
        server.socket = wrap(server.socket)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield server
        server.released.set()
        server.shutdown()
