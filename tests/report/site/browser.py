"""Headless Chromium over its own protocol: pages opened, keys pressed, questions asked, and what its console says."""

import base64
import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
READ, WRITE = 3, 4  # the file descriptors of --remote-debugging-pipe
OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe")
KEYS = {"Tab": 9, "Enter": 13, " ": 32}
TOLD = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")


class Browser:
    """A browser with one page.

    Args:
        profile: an empty folder for its own files.
    """

    def __init__(self, profile: Path) -> None:
        (their_in, self._out), (self._in, their_out) = os.pipe(), os.pipe()
        command = [str(CHROMIUM), *OPTIONS, f"--user-data-dir={profile}", "about:blank"]
        wired = f'exec "$@" {READ}<&{their_in} {WRITE}>&{their_out}'
        self._process = subprocess.Popen(
            ["bash", "-c", wired, "bash", *command], pass_fds=(their_in, their_out), stderr=subprocess.DEVNULL
        )
        os.close(their_in), os.close(their_out)
        self._rest, self._asked, self._session = b"", 0, ""
        self._events: list[dict[str, Any]] = []
        target = next(x for x in self._ask("Target.getTargets")["targetInfos"] if x["type"] == "page")
        attached = self._ask("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._ask(f"{domain}.enable")

    def open(self, page: Path, width: int, height: int = 900, scheme: str = "light", script: bool = True) -> None:
        """Open a page in a window of a size, light or dark, with or without JavaScript, and wait until it is drawn."""
        self._events.clear()
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self._ask("Emulation.setDeviceMetricsOverride", **size)
        self._ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self._ask("Emulation.setScriptExecutionDisabled", value=not script)
        self._ask("Page.navigate", url=page.as_uri())
        end = time.monotonic() + 60
        while not (self.ask(DRAWN if script else "true") and self.of("Page.loadEventFired")):
            if time.monotonic() > end:
                raise TimeoutError(f"{page} is not drawn after a minute.")
            time.sleep(0.05)

    def ask(self, expression: str) -> Any:
        """The value of an expression of JavaScript; that of a promise is waited for."""
        found = self._ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"])
        return found["result"].get("value")

    def press(self, key: str, text: str = "") -> None:
        """Press a key, and let it go."""
        about = {"key": key, "code": key, "windowsVirtualKeyCode": KEYS.get(key, 0)}
        self._ask("Input.dispatchKeyEvent", type="keyDown", text=text, **about)
        self._ask("Input.dispatchKeyEvent", type="keyUp", **about)

    def type(self, text: str) -> None:
        """Write text where the focus is."""
        self._ask("Input.insertText", text=text)

    def text(self) -> str:
        """Everything that is read aloud, which needs no script in the page."""
        nodes = self._ask("Accessibility.getFullAXTree")["nodes"]
        return "\n".join(str(node.get("name", {}).get("value", "")) for node in nodes)

    def picture(self, path: Path, whole: bool = True) -> None:
        """Write what is seen, or the whole page, as PNG."""
        found = self._ask("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(found["data"]))

    def said(self) -> list[str]:
        """Everything that the console has, and errors that nothing caught."""
        self.ask("1")
        return [json.dumps(event["params"]) for event in self._events if event["method"] in TOLD]

    def requested(self) -> list[str]:
        """The addresses of everything that the page asked for."""
        self.ask("1")
        return [event["params"]["request"]["url"] for event in self.of("Network.requestWillBeSent")]

    def of(self, method: str) -> list[dict[str, Any]]:
        """The events of one kind since the page was opened."""
        return [event for event in self._events if event["method"] == method]

    def close(self) -> None:
        """End the browser."""
        os.close(self._out), os.close(self._in)
        self._process.kill()
        self._process.wait()

    def _ask(self, method: str, **params: Any) -> dict[str, Any]:
        self._asked += 1
        asked = {"id": self._asked, "method": method, "params": params}
        asked |= {"sessionId": self._session} if self._session else {}
        os.write(self._out, json.dumps(asked).encode() + b"\0")
        while True:
            while b"\0" not in self._rest:
                more = os.read(self._in, 1 << 20)
                if not more:
                    raise RuntimeError(f"Chromium ended at {method}.")
                self._rest += more
            line, self._rest = self._rest.split(b"\0", 1)
            answer = json.loads(line)
            if answer.get("id") == self._asked:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self._events.append(answer)


DRAWN = """[...document.querySelectorAll("[data-plot]")].every(one => one.querySelector(".chart.empty, .chart svg"))"""
