"""tf.Examples in gzip TFRecords, in shards of bounded size."""

from __future__ import annotations

import contextlib
import errno
import os
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf

from components.corpus_gen.fields import Value
from components.corpus_gen.images import Images
from components.corpus_gen.spans import FEATURE
from models.tasks.features import Feature

# Of a tf.Example that is filled anew for every row: what a row leaves behind in it is kept.
_MOST_BYTES = 1 << 20
# Where a tf.Example has the values of a feature.
_LISTS = {"text": "bytes_list", "image": "bytes_list", "positions": "int64_list"}
_NUMBERS = "float_list"


class Encoder:
    """Serialises the rows of one file; the same row always gives the same bytes.

    Args:
        features: of a row, in order.
        file: whose base name every row carries.
        images: gives the bytes of the images that rows name.
        span: the name of the file's span; None where the corpus has none.
    """

    def __init__(
        self, features: Sequence[Feature], file: str, images: Images, span: str | None = None
    ):
        self._features = list(features)
        self._file = os.path.basename(file).encode("utf-8", "replace")
        self._images = images
        self._span = None if span is None else span.encode("utf-8")
        self._begin()

    def __call__(self, line: int, values: Sequence[Value]) -> bytes:
        """A tf.Example with the features, ``file`` (base name), ``line`` (from 1) and ``span``.

        An image is its bytes, and the path that named it ``<name>_file``. A feature that is
        missing is an empty list of its kind.

        Raises:
            Broken: an image cannot be read any more.
        """
        if self._bytes > _MOST_BYTES:
            self._begin()
        for feature, kept, value in zip(self._features, self._kept, values, strict=True):
            items: Any = value if isinstance(value, list) else [] if value is None else [value]
            if feature.kind == "text":
                items = [text.encode("utf-8") for text in items]
            elif feature.kind == "image":
                self._paths[feature.name][:] = [path.encode("utf-8") for path in items]
                items = [self._images.content(path) for path in items]
            kept[:] = items
        self._line[:] = [line]
        record = self._example.SerializeToString(deterministic=True)
        self._bytes += len(record)
        return record

    def _begin(self) -> None:
        """Makes the tf.Example whose lists each row fills; that takes longer than to fill them."""
        self._example = tf.train.Example()
        self._bytes = 0
        self._kept = [self._list(f.name, _LISTS.get(f.kind, _NUMBERS)) for f in self._features]
        self._paths = {
            feature.name: self._list(f"{feature.name}_file", "bytes_list")
            for feature in self._features
            if feature.kind == "image"
        }
        self._list("file", "bytes_list").append(self._file)
        self._line = self._list("line", "int64_list")
        if self._span is not None:
            self._list(FEATURE, "bytes_list").append(self._span)

    def _list(self, name: str, kind: str) -> Any:
        """The values of a feature of the tf.Example, none yet: an empty list has a kind, too."""
        made = getattr(self._example.features.feature[name], kind)
        made.SetInParent()
        return made.value


class ShardWriter:
    """Writes records into ``<stem>-00000.gz``, ``<stem>-00001.gz``, ...

    A shard has a temporary name until it is whole. It ends at a number of rows, or of bytes
    before they are packed: nothing can read a part of a gzip file alone, and a shard is what a
    worker of the later nodes takes.

    Raises:
        OSError: the disk is full or the folder cannot be written to.
    """

    def __init__(self, stem: str, rows_per_shard: int = 100_000, bytes_per_shard: int = 1 << 28):
        self._stem = stem
        self._limits = rows_per_shard, bytes_per_shard
        self._writer: tf.io.TFRecordWriter | None = None
        self._temporary = self._final = ""
        self._rows = self._bytes = 0
        self._shards = 0

    def write(self, record: bytes) -> None:
        """Appends one record."""
        try:  # for every row: a context manager would take as long as the writing
            if self._writer is None:
                self._writer = self._open()
            self._writer.write(record)
        except tf.errors.OpError as error:
            raise _as_os_error(error) from error
        self._rows += 1
        self._bytes += len(record)
        if self._rows >= self._limits[0] or self._bytes >= self._limits[1]:
            self.close()

    def _open(self) -> tf.io.TFRecordWriter:
        self._final = f"{self._stem}-{self._shards:05d}.gz"
        self._temporary = f"{self._final}.{uuid.uuid4().hex[:8]}.tmp"
        # Level 1 packs text at twice the speed for a tenth more bytes.
        options = tf.io.TFRecordOptions(compression_type="GZIP", compression_level=1)
        return tf.io.TFRecordWriter(self._temporary, options)

    def close(self) -> None:
        """Ends the shard that is open and gives it its name."""
        if self._writer is None:
            return
        writer, self._writer = self._writer, None
        with os_errors():
            writer.close()
            tf.io.gfile.rename(self._temporary, self._final, overwrite=True)
        self._shards += 1
        self._rows = self._bytes = 0


@contextlib.contextmanager
def os_errors() -> Iterator[None]:
    """Turns TensorFlow's file errors into Python's, so that callers know one kind."""
    try:
        yield
    except tf.errors.OpError as error:
        raise _as_os_error(error) from error


def _as_os_error(error: tf.errors.OpError) -> OSError:
    if isinstance(error, tf.errors.ResourceExhaustedError):
        return OSError(errno.ENOSPC, error.message)
    if isinstance(error, tf.errors.PermissionDeniedError):
        return PermissionError(errno.EACCES, error.message)
    return OSError(errno.EIO, error.message)
