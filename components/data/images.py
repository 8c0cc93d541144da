"""Image files that rows name: where they are, and whether they can be used."""

from __future__ import annotations

import functools
import os
import struct
from collections.abc import Callable
from typing import IO, Any, Self

from regard.components.common.files import check_regular
from regard.components.data.read_problems import UnreadableFile
from regard.components.settings.data import DataConfig
from regard.models.tasks.description import MAX_PIXELS

KINDS = "JPEG, PNG, GIF or BMP"

_HEAD_BYTES = 26
_CACHE_SIZE = 1 << 16  # results of some hundred bytes each

_JPEG, _PNG, _GIF, _BMP = b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF8", b"BM"
_MAGIC = (_JPEG, _PNG, _GIF, _BMP)
# Where the header has width and height, and in which format.
_SIZES = {_PNG: (16, ">II"), _GIF: (6, "<HH"), _BMP: (18, "<ii")}
# Markers of JPEG from 0xC0 to 0xCF that do not begin a frame.
_NO_FRAMES = (0xC4, 0xC8, 0xCC)


class Images:
    """The images that the rows of a corpus name, each checked once.

    Args:
        root: the folder of the corpus.
        folder: the folder of the images, relative to ``root``.
        decode: whether each image is decoded, as for training; otherwise only its first bytes are
            checked, without TensorFlow.
        confined: whether images outside of the folder are refused, links followed.
    """

    def __init__(
        self, root: str, folder: str | None = None, decode: bool = False, confined: bool = False
    ):
        self._root = root
        self._folder = folder or ""
        self._decode = decode
        self._base = os.path.realpath(self.path_of("")) if confined else ""
        # Rows that name the same image are mostly adjacent.
        self.problem = functools.lru_cache(_CACHE_SIZE)(self._problem)

    @classmethod
    def of(cls, config: DataConfig, decode: bool = False) -> Self:
        """Return the images of a section ``data``."""
        return cls(config.root, config.images, decode, confined=True)

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
        path = self.path_of(name)
        try:
            if self._base and not os.path.realpath(path).startswith(os.path.join(self._base, "")):
                return f"{relative} leads out of the folder of the images, {self._base}"
            check_regular(path)
            with open(path, "rb") as file:
                pixels = _count_pixels(file)
                file.seek(0)
                is_too_large = pixels > MAX_PIXELS
                content = file.read(-1 if self._decode and not is_too_large else _HEAD_BYTES)
        except FileNotFoundError:
            return f"{relative}: no such file"
        except IsADirectoryError:
            return f"{relative} is a folder"
        except OSError as error:
            return f"{relative} cannot be read: {error.strerror}"
        except ValueError:
            return f"{relative!r} is not a path"
        if not content:
            return f"{relative} is empty"
        if not content.startswith(_MAGIC):
            return f"{relative} is not an image ({KINDS})"
        if is_too_large:
            return f"{relative} has {pixels:,} pixels; at most {MAX_PIXELS:,} are allowed"
        if self._decode and not _can_decode(content):
            return f"{relative} is truncated or damaged"
        return None


def _count_pixels(file: IO[bytes]) -> int:
    """Return the number of pixels in the header of an image; 0 if it does not say."""
    head = file.read(_HEAD_BYTES)
    if head.startswith(_JPEG):
        file.seek(2)
        return _count_jpeg_pixels(file)
    for magic, (place, form) in _SIZES.items():
        if head.startswith(magic) and len(head) == _HEAD_BYTES:
            width, height = struct.unpack_from(form, head, place)
            return abs(width * height)
    return 0


def _count_jpeg_pixels(file: IO[bytes]) -> int:
    while len(marker := file.read(4)) == 4 and marker[0] == 0xFF:
        if 0xC0 <= marker[1] <= 0xCF and marker[1] not in _NO_FRAMES:
            size = file.read(5)
            return int.from_bytes(size[1:3]) * int.from_bytes(size[3:])
        file.seek(max(2, int.from_bytes(marker[2:])) - 2, os.SEEK_CUR)
    return 0


def _can_decode(content: bytes) -> bool:
    """Return whether TensorFlow decodes an image to three channels; of an animation the first."""
    import tensorflow as tf

    try:
        _decoder()(content)
    except tf.errors.OpError:
        return False
    return True


@functools.cache
def _decoder() -> Callable[[bytes], Any]:
    """Return the decoder of the graph, which refuses what it cannot decode."""
    import tensorflow as tf

    from regard.models.tasks.image_decoding import decode_image

    return tf.function(decode_image, input_signature=[tf.TensorSpec([], tf.string)])
