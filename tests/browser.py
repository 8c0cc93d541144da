"""A headless Chromium for tests, controlled with the DevTools protocol."""

import base64
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
from websockets.sync.client import connect

# axe-core, which checks accessibility; see CONTRIBUTING.md.
AXE = os.environ.get("REGARD_AXE", "")
_AXE_RUN = """
axe.run({resultTypes: ["violations"]}).then(({violations}) => violations
  .filter(({impact}) => ["serious", "critical"].includes(impact))
  .map(({help, nodes}) => `${help}: ${nodes[0].html}`))
"""
NAMES = ("chromium", "chromium-browser", "google-chrome")
_TIMEOUT_SECONDS = 30.0


def path() -> str | None:
    """The path of the browser; None if none is installed."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One page of a browser with its own profile.

    Args:
        folder: The folder for the profile.
        size: Width and height of the window in pixels.
    """

    def __init__(self, folder: Path, size: tuple[int, int] = (1000, 1200)):
        self._process = subprocess.Popen(
            [
                *(path() or "", "--headless=new", "--no-sandbox", "--disable-gpu"),
                *("--remote-debugging-port=0", f"--user-data-dir={folder}"),
                f"--window-size={size[0]},{size[1]}",
                "about:blank",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        file = folder / "DevToolsActivePort"
        port = wait_for(lambda: file.exists() and file.read_text().splitlines()[0])
        pages = wait_for(lambda: httpx.get(f"http://127.0.0.1:{port}/json/list").json())
        page = next(page for page in pages if page["type"] == "page")
        self._socket = connect(page["webSocketDebuggerUrl"], max_size=None)
        self._number = 0
        self.log: list[str] = []
        for domain in ("Page", "Runtime", "Log", "DOM"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a command and return its result; errors of the page are added to ``log``."""
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv(timeout=_TIMEOUT_SECONDS))
            if message.get("method") == "Log.entryAdded":
                self.log.append(message["params"]["entry"]["text"])
            elif message.get("method") == "Runtime.exceptionThrown":
                self.log.append(str(message["params"]["exceptionDetails"]))
            elif message.get("id") == self._number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']['message']}")
                return message["result"]

    def open(self, address: str) -> None:
        """Open a page without any state."""
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=address)
        wait_for(lambda: self.run("document.readyState") == "complete")

    def run(self, script: str) -> Any:
        """Evaluate a JavaScript expression."""
        response = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in response:
            raise RuntimeError(str(response["exceptionDetails"]))
        return response["result"].get("value")

    def text(self, selector: str) -> str:
        """The visible text of an element; empty if there is none."""
        return self.run(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''")

    def wait(self, script: str) -> Any:
        """Wait until an expression is truthy, and return its value."""
        return wait_for(lambda: self.run(script))

    def click(self, x: float, y: float) -> None:
        """Click at a position of the window."""
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key: str) -> None:
        """Press a named key."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def choose(self, selector: str, file: Path) -> None:
        """Select a file in an input element."""
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        node = self.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.call("DOM.setFileInputFiles", files=[str(file)], nodeId=node)

    def violations(self) -> list[str]:
        """The serious violations of accessibility that axe-core finds in the page."""
        self.run(f"{Path(AXE).read_text(encoding='utf-8')};0")
        return self.run(_AXE_RUN)

    def screenshot(self, file: Path) -> None:
        """Save the window as a PNG file."""
        file.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def close(self) -> None:
        """Close the browser."""
        self._socket.close()
        self._process.terminate()
        self._process.wait(_TIMEOUT_SECONDS)


def wait_for(function: Callable[[], Any]) -> Any:
    """Call a function until it returns something truthy; it may fail before that."""
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    while True:
        try:
            if result := function():
                return result
        except (OSError, httpx.HTTPError, IndexError, RuntimeError):
            pass
        if time.monotonic() > deadline:
            raise TimeoutError("The browser did not respond in time.")
        time.sleep(0.05)
