"""Image files that rows name: where they are, and whether they can be used."""

from __future__ import annotations

import functools
import os
from typing import Self

from regard.components.data.read_problems import UnreadableFile
from regard.components.settings.data import DataConfig

KINDS = "JPEG, PNG, GIF or BMP"

_HEAD_BYTES = 16
_CACHE_SIZE = 1 << 16  # results of some hundred bytes each

_MAGIC = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF8", b"BM")


class Images:
    """The images that the rows of a corpus name, each checked once.

    Args:
        root: the folder of the corpus.
        folder: the folder of the images, relative to ``root``.
        decode: whether each image is decoded, as for training; otherwise only its first bytes are
            checked, without TensorFlow.
    """

    def __init__(self, root: str, folder: str | None = None, decode: bool = False):
        self._root = root
        self._folder = folder or ""
        self._decode = decode
        # Rows that name the same image are mostly adjacent.
        self.problem = functools.lru_cache(_CACHE_SIZE)(self._problem)

    @classmethod
    def of(cls, config: DataConfig, decode: bool = False) -> Self:
        """Return the images of a section ``data``."""
        return cls(config.root, config.images, decode)

    def path_of(self, name: str) -> str:
        """Return the file of an image."""
        return os.path.join(self._root, os.path.expanduser(self._folder), name)

    def read(self, name: str) -> bytes:
        """Return the bytes of an image.

        Raises:
            UnreadableFile: it cannot be read any more.
        """
        try:
            with open(self.path_of(name), "rb") as file:
                return file.read()
        except OSError as error:
            raise UnreadableFile(
                self.path_of(name),
                f"the image cannot be read: {error.strerror}",
                "Do not change the images during a run.",
            ) from error

    def _problem(self, name: str) -> str | None:
        """Return why an image cannot be used, or None."""
        relative = os.path.join(self._folder, name)
        try:
            with open(self.path_of(name), "rb") as file:
                content = file.read(-1 if self._decode else _HEAD_BYTES)
        except FileNotFoundError:
            return f"{relative}: no such file"
        except IsADirectoryError:
            return f"{relative} is a folder"
        except OSError as error:
            return f"{relative} cannot be read: {error.strerror}"
        if not content:
            return f"{relative} is empty"
        if not content.startswith(_MAGIC):
            return f"{relative} is not an image ({KINDS})"
        if self._decode and not _can_decode(content):
            return f"{relative} is truncated or damaged"
        return None


def _can_decode(content: bytes) -> bool:
    """Return whether TensorFlow decodes an image to three channels; of an animation the first."""
    import tensorflow as tf

    try:
        tf.io.decode_image(content, channels=3, expand_animations=False)
    except tf.errors.OpError:
        return False
    return True
