"""A headless Chromium that a test drives over its DevTools protocol: it opens a page and answers JavaScript."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import websocket

CHROMIUM = shutil.which("chromium")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-port=0"),
)
PATIENCE_S = 120


class Page:
    """The browser's one tab."""

    def __init__(self, socket: websocket.WebSocket) -> None:
        self._socket, self._sent = socket, 0

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol and return its result."""
        self._sent += 1
        self._socket.send(json.dumps({"id": self._sent, "method": method, "params": parameters}))
        while (reply := json.loads(self._socket.recv())).get("id") != self._sent:
            pass
        assert "error" not in reply, reply
        return reply["result"]

    def open(self, url: str) -> None:
        self.send("Page.navigate", url=url)
        self.wait(f"location.href.startsWith({json.dumps(url.split('?')[0])}) && document.readyState === 'complete'")

    def ask(self, expression: str) -> Any:
        """Return the JSON value of a JavaScript expression; of a promise, what it resolves to."""
        done = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def wait(self, expression: str) -> Any:
        """Ask until the answer is true, and return it."""
        end = time.monotonic() + PATIENCE_S
        while not (answer := self.ask(expression)):
            assert time.monotonic() < end, f"never true: {expression}\n{self.ask('document.body.innerText')[-2000:]}"
            time.sleep(0.1)
        return answer

    def prefer(self, scheme: str) -> None:
        """Let the system prefer `light` or `dark`."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.send("Emulation.setEmulatedMedia", features=[feature])

    def shoot(self, path: Path) -> None:
        """Write what is seen as a PNG."""
        path.write_bytes(base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"]))


@contextmanager
def browser(profile: Path, size: str = "1280,1600") -> Iterator[Page]:
    """Start a browser with a profile of its own, and end it."""
    process = subprocess.Popen(
        [str(CHROMIUM), *FLAGS, f"--user-data-dir={profile}", f"--window-size={size}", "about:blank"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        socket = websocket.create_connection(_address(profile), suppress_origin=True, timeout=PATIENCE_S)
        page = Page(socket)
        page.send("Emulation.setFocusEmulationEnabled", enabled=True)  # a page without focus has no current notebook
        yield page
        socket.close()
    finally:
        process.terminate()
        process.wait()


def _address(profile: Path) -> str:
    """Return the address of the tab, once the browser has written its port."""
    end, port = time.monotonic() + PATIENCE_S, profile / "DevToolsActivePort"
    while not (port.exists() and port.read_text().count("\n")):
        assert time.monotonic() < end, "the browser did not start"
        time.sleep(0.1)
    with urllib.request.urlopen(f"http://127.0.0.1:{port.read_text().splitlines()[0]}/json") as reply:
        return next(tab["webSocketDebuggerUrl"] for tab in json.load(reply) if tab["type"] == "page")
