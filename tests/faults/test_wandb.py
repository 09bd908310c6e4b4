"""Weights & Biases away, silent, refusing or limiting: a warning, a bounded delay, and the same numbers."""

import http.server
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults import runs
from tests.faults.conftest import Count, Server

KEY = "c" * 40
WORDS = ("logger=wandb", "logger.mode=online", *runs.SHORT)
START_S, END_S = 5, 30
SLACK_S = 25  # importing wandb and starting its service on a loaded machine


class StandIn(http.server.BaseHTTPRequestHandler):
    """Answers every request with one status, after a delay."""

    status, delay = 500, 0.0
    seen: list[str]

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.seen.append(f"{self.path} {dict(self.headers)} {body!r}")
        time.sleep(self.delay)
        self.send_response(self.status)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    do_GET = do_POST = do_PUT = answer

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def stand_in(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a server that behaves as the parameter says."""
    how = request.param
    if how == "closed":
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    elif how == "silent":
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            silent.listen(64)
            yield f"http://127.0.0.1:{silent.getsockname()[1]}"
    else:
        handler = type(
            "Handler",
            (StandIn,),
            {"status": how if isinstance(how, int) else 200, "seen": [], "delay": 60.0 if how == "slow" else 0.0},
        )
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        server.server_close()


@pytest.mark.faults
@pytest.mark.parametrize("stand_in", ["closed", "silent", "slow", 401, 403, 404, 429, 500, 507, "ok"], indirect=True)
def test_an_outage_changes_nothing_but_a_warning(server: Server, tmp_path: Path, stand_in: str, count: Count) -> None:
    assert server.run(tmp_path / "unbroken", *runs.SHORT) == 0
    env = {"WANDB_API_KEY": KEY, "WANDB_BASE_URL": stand_in, "WANDB_MODE": None, "HOME": str(tmp_path)}
    started = time.monotonic()
    assert server.run(tmp_path / "home", *WORDS, env=env) == 0, (tmp_path / "home/output.txt").read_text()
    seconds = time.monotonic() - started
    assert seconds < START_S + END_S + SLACK_S
    expected, found = runs.outcome(tmp_path / "unbroken"), runs.outcome(tmp_path / "home")
    assert found["numbers"] == expected["numbers"]
    assert found["weights"] == expected["weights"]
    output = (tmp_path / "home" / "output.txt").read_text()
    assert "Traceback" not in output
    assert KEY not in output
    leaks = [path for path in (tmp_path / "home").rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]
    assert not leaks
    count("outages of W&B survived")
    count("seconds of the slowest run in an outage of W&B", seconds)
