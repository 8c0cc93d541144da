"""A headless Chromium for tests, over its own DevTools protocol."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import httpx
from websockets.sync.client import connect

NAMES = ("chromium", "chromium-browser", "google-chrome")
_PATIENCE = 30.0  # seconds


def path() -> str | None:
    """Where the browser is; None where there is none."""
    return next((found for found in map(shutil.which, NAMES) if found), None)


class Browser:
    """One page of a browser with a profile of its own.

    Args:
        folder: for the profile.
        size: of the window, in pixels.
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
        page = next(one for one in pages if one["type"] == "page")
        self._socket = connect(page["webSocketDebuggerUrl"], max_size=None)
        self._number = 0
        self.log: list[str] = []
        for domain in ("Page", "Runtime", "Log", "DOM"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The result of a command; what the page complains of meanwhile goes to ``log``."""
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv(timeout=_PATIENCE))
            if message.get("method") == "Log.entryAdded":
                self.log.append(message["params"]["entry"]["text"])
            elif message.get("method") == "Runtime.exceptionThrown":
                self.log.append(str(message["params"]["exceptionDetails"]))
            elif message.get("id") == self._number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']['message']}")
                return message["result"]

    def open(self, address: str) -> None:
        """Goes to a page, as if it were new."""
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=address)
        wait_for(lambda: self.run("document.readyState") == "complete")

    def run(self, script: str) -> Any:
        """What a JavaScript expression gives."""
        found = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in found:
            raise RuntimeError(str(found["exceptionDetails"]))
        return found["result"].get("value")

    def text(self, selector: str) -> str:
        """What one reads of an element; nothing where there is none."""
        return self.run(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''")

    def wait(self, script: str) -> Any:
        """What an expression gives, once it is something."""
        return wait_for(lambda: self.run(script))

    def click(self, x: float, y: float) -> None:
        """Clicks at a place of the window."""
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key: str) -> None:
        """Presses a key that has a name."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def choose(self, selector: str, file: Path) -> None:
        """Gives a file to an input."""
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        node = self.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.call("DOM.setFileInputFiles", files=[str(file)], nodeId=node)

    def screenshot(self, file: Path) -> None:
        """The window as a PNG."""
        file.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def close(self) -> None:
        """Ends the browser."""
        self._socket.close()
        self._process.terminate()
        self._process.wait(_PATIENCE)


def wait_for(what: Any) -> Any:
    """What a function gives, once it is something; it may fail before."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            if found := what():
                return found
        except (OSError, httpx.HTTPError, IndexError, RuntimeError):
            pass
        if time.monotonic() > deadline:
            raise TimeoutError("the browser does not come so far")
        time.sleep(0.05)
