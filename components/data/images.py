"""Image files that rows name: where they are, and whether they can be used."""

import functools
import os
from collections.abc import Callable
from typing import Any

from typing_extensions import Self

from regard.components.data.unreadable_file import UnreadableFile
from regard.components.settings.data import DataConfig
from regard.core.files import check_no_special_file
from regard.models.tasks.image_formats import MAX_MAGIC_BYTES, format_problem

_CACHE_SIZE = 1 << 16  # results of some hundred bytes each


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
            check_no_special_file(path)
            with open(path, "rb") as file:
                content = file.read(-1 if self._decode else MAX_MAGIC_BYTES)
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
        problem = format_problem(content[:MAX_MAGIC_BYTES])
        if problem is None and self._decode:
            problem = _decoding_problem(content)
        return f"{relative} {problem}" if problem else None


def _decoding_problem(content: bytes) -> str | None:
    """Return why an image cannot be decoded, or None."""
    import tensorflow as tf

    check, decode = _graphs()
    try:
        if problem := check(content).numpy().decode():
            return problem
        decode(content)
    except tf.errors.OpError:
        return "is truncated or damaged"
    return None


@functools.cache
def _graphs() -> tuple[Callable[[bytes], Any], Callable[[bytes], Any]]:
    """Return the functions of the served graph that check and decode an image."""
    import tensorflow as tf

    from regard.models.tasks.image_decoding import decode_image, image_problem

    signature = [tf.TensorSpec([], tf.string)]
    return (
        tf.function(image_problem, input_signature=signature),
        tf.function(decode_image, input_signature=signature),
    )
