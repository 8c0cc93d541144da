"""JSON as TensorFlow Serving writes it: RapidJSON's PrettyWriter, and numbers that come back.

Objects have a line for each key, indented by four; what is inside of an array stands on one line.
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

_ESCAPED = re.compile(rb'[\x00-\x1f"\\]')
_SHORT = {b'"': b'\\"', b"\\": b"\\\\", b"\b": b"\\b", b"\f": b"\\f", b"\n": b"\\n"}
_SHORT |= {b"\r": b"\\r", b"\t": b"\\t"}
# Digits after which a number of the type is what it was.
_EXACT = {np.dtype(np.float32): 9, np.dtype(np.float64): 17}


def decimal(value: Any) -> bytes:
    """A float32 or float64: six digits if they give it back, else all; whole numbers get ``.0``."""
    if math.isnan(value):
        return b"NaN"
    if math.isinf(value):
        return b"Infinity" if value > 0 else b"-Infinity"
    text = f"{value:g}"
    kind = np.dtype(type(value)) if isinstance(value, np.floating) else np.dtype(np.float64)
    if kind.type(text) != value:
        text = f"{value:.{_EXACT[kind]}g}"
    return (text if "." in text or "e" in text else f"{text}.0").encode()


def string(value: bytes | str) -> bytes:
    """Text in quotation marks; bytes that are no UTF-8 stay as they are."""
    raw = value.encode() if isinstance(value, str) else value
    return b'"' + _ESCAPED.sub(_escape, raw) + b'"'


def _escape(match: re.Match[bytes]) -> bytes:
    sign = match[0]
    return _SHORT.get(sign) or b"\\u%04X" % sign[0]


class Writer:
    """Writes JSON piece by piece.

    Attributes:
        single_line: whether what comes into an array next stays on its line; may change between.
    """

    def __init__(self) -> None:
        self.single_line = False
        self._parts: list[bytes] = []
        self._levels: list[list[Any]] = []  # whether it is an array, and how many values it has

    def value(self, text: bytes) -> None:
        """A number, a string, ``true`` or another value that is JSON already."""
        self._begin()
        self._parts.append(text)

    def key(self, name: str) -> None:
        """The key of the next value."""
        self.value(string(name))

    def start(self, array: bool) -> None:
        """Opens an array, or an object."""
        self._begin()
        self._levels.append([array, 0])
        self._parts.append(b"[" if array else b"{")

    def end(self) -> None:
        """Closes what was opened last."""
        array, count = self._levels.pop()
        if count and not (array and self.single_line):
            self._new_line()
        self._parts.append(b"]" if array else b"}")

    def plain(self, value: Any) -> None:
        """What Python's ``json`` would write, too."""
        if isinstance(value, dict):
            self.start(array=False)
            for name, inner in value.items():
                self.key(name)
                self.plain(inner)
            self.end()
        elif isinstance(value, (list, tuple)):
            self.start(array=True)
            for inner in value:
                self.plain(inner)
            self.end()
        elif isinstance(value, (str, bytes)):
            self.value(string(value))
        elif value is None or isinstance(value, bool):
            self.value({None: b"null", True: b"true", False: b"false"}[value])
        else:
            is_whole = isinstance(value, (int, np.integer))
            self.value(str(int(value)).encode() if is_whole else decimal(value))

    def finish(self) -> bytes:
        """All that was written."""
        return b"".join(self._parts)

    def _begin(self) -> None:
        if not self._levels:
            return
        level = self._levels[-1]
        array, count = level
        level[1] += 1
        if array:
            self._parts.append(b"," if count else b"")
            if not self.single_line:
                self._new_line()
            elif count:
                self._parts.append(b" ")
        elif count % 2:
            self._parts.append(b": ")
        else:
            self._parts.append(b"," if count else b"")
            self._new_line()

    def _new_line(self) -> None:
        self._parts.append(b"\n" + b"    " * len(self._levels))


def pretty(value: Any) -> bytes:
    """A whole value, an element of an array a line."""
    writer = Writer()
    writer.plain(value)
    return writer.finish()
