"""Image files: where they are, and what is wrong with them."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from typing import Any

from components.corpus_gen.problems import Broken

KINDS = "JPEG, PNG, GIF or BMP"

_HEAD = 16
_KEPT = 1 << 16  # verdicts; one takes some hundred bytes

# How a file of each kind begins, and whether its end is there.
_MAGIC: dict[bytes, Callable[[bytes], bool]] = {
    b"\xff\xd8\xff": lambda content: content.rstrip(b"\0").endswith(b"\xff\xd9"),
    b"\x89PNG\r\n\x1a\n": lambda content: b"IEND" in content[-12:],
    b"GIF8": lambda content: content.endswith(b";"),
    b"BM": lambda content: len(content) >= int.from_bytes(content[2:6], "little"),
}


class Images:
    """The images that the rows of a corpus name, each looked at once.

    Args:
        data: the ``data`` section; paths are relative to ``images``, and that to ``root``.
        decode: whether each is also decoded, as training will; otherwise its first bytes must do,
            and TensorFlow is not needed.
    """

    def __init__(self, data: Mapping[str, Any], decode: bool = False):
        self._root = data.get("root") or "."
        self._folder = data.get("images") or ""
        self._decode = decode
        # Rows that name the same image mostly stand together.
        self.wrong = functools.lru_cache(_KEPT)(self._wrong)

    def place(self, path: str) -> str:
        """The file of an image."""
        return os.path.join(self._root, os.path.expanduser(self._folder), path)

    def content(self, path: str) -> bytes:
        """The bytes of an image.

        Raises:
            Broken: it cannot be read, or not any more.
        """
        try:
            with open(self.place(path), "rb") as file:
                return file.read()
        except OSError as error:
            raise Broken(
                self.place(path),
                f"the image cannot be read: {error.strerror}",
                "Leave the images alone while they are read.",
            ) from error

    def _wrong(self, path: str) -> str | None:
        """Why an image cannot be used, or None."""
        shown = os.path.join(self._folder, path)
        try:
            with open(self.place(path), "rb") as file:
                content = file.read(-1 if self._decode else _HEAD)
        except FileNotFoundError:
            return f"{shown}: no such file"
        except IsADirectoryError:
            return f"{shown} is a folder"
        except OSError as error:
            return f"{shown} cannot be read: {error.strerror}"
        if not content:
            return f"{shown} is empty"
        whole = next((test for magic, test in _MAGIC.items() if content.startswith(magic)), None)
        if whole is None:
            return f"{shown} is no image ({KINDS})"
        if not self._decode or _decodes(content):
            return None
        return f"{shown} is {'damaged' if whole(content) else 'cut off'}"


def _decodes(content: bytes) -> bool:
    """Whether TensorFlow makes three channels of an image, of an animation the first picture."""
    import tensorflow as tf

    try:
        tf.io.decode_image(content, channels=3, expand_animations=False)
    except tf.errors.OpError:
        return False
    return True
