"""Write tf.Examples to gzip TFRecords in shards of bounded size."""

from __future__ import annotations

import contextlib
import errno
import os
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf

from regard.components.data.cell_values import Value
from regard.components.data.images import Images
from regard.components.data.sources import SPAN_FEATURE
from regard.models.tasks.description import Feature

# A tf.Example is reused for the rows of a file until it has serialised this many bytes: protobuf
# keeps the memory of earlier rows.
_MAX_BYTES = 1 << 20
# The list of a tf.Example that holds the values of each kind of feature.
_LISTS = {"text": "bytes_list", "image": "bytes_list", "positions": "int64_list"}
_FLOAT_LIST = "float_list"


class ExampleEncoder:
    """Serialises the rows of one file; the same row always gives the same bytes.

    Args:
        features: of a row, in order.
        file: the file, whose base name every row holds.
        images: reads the images that rows name.
        span: the name of the file's span; None for a corpus without spans.
    """

    def __init__(
        self, features: Sequence[Feature], file: str, images: Images, span: str | None = None
    ):
        self._features = list(features)
        self._file = os.path.basename(file).encode("utf-8", "replace")
        self._images = images
        self._span = None if span is None else span.encode("utf-8")
        self._new_example()

    def __call__(self, line: int, values: Sequence[Value]) -> bytes:
        """Return a tf.Example of the features, ``file`` (base name), ``line`` (from 1), ``span``.

        An image becomes its bytes, and its path the feature ``<name>_file``. A missing value is an
        empty list of its type.

        Raises:
            UnreadableFile: an image cannot be read any more.
        """
        if self._bytes > _MAX_BYTES:
            self._new_example()
        for feature, target, value in zip(self._features, self._values, values, strict=True):
            items: Any = value if isinstance(value, list) else [] if value is None else [value]
            if feature.kind == "text":
                items = [text.encode("utf-8") for text in items]
            elif feature.kind == "image":
                self._paths[feature.name][:] = [path.encode("utf-8") for path in items]
                items = [self._images.read(path) for path in items]
            target[:] = items
        self._line[:] = [line]
        record = self._example.SerializeToString(deterministic=True)
        self._bytes += len(record)
        return record

    def _new_example(self) -> None:
        """Create the tf.Example whose lists each row fills: faster than a new one for each row."""
        self._example = tf.train.Example()
        self._bytes = 0
        self._values = [
            self._new_list(f.name, _LISTS.get(f.kind, _FLOAT_LIST)) for f in self._features
        ]
        self._paths = {
            feature.name: self._new_list(f"{feature.name}_file", "bytes_list")
            for feature in self._features
            if feature.kind == "image"
        }
        self._new_list("file", "bytes_list").append(self._file)
        self._line = self._new_list("line", "int64_list")
        if self._span is not None:
            self._new_list(SPAN_FEATURE, "bytes_list").append(self._span)

    def _new_list(self, name: str, kind: str) -> Any:
        """Return the empty list of a feature; an empty list has a type as well."""
        values = getattr(self._example.features.feature[name], kind)
        values.SetInParent()
        return values.value


class ShardWriter:
    """Writes records to ``<stem>-00000.gz``, ``<stem>-00001.gz``, ...

    A shard has a temporary name until it is complete. It ends after a number of rows or of bytes
    before compression: no part of a gzip file can be read separately, and later nodes process a
    shard in one worker.

    Args:
        stem: the start of the paths.
        rows_per_shard: the rows of a shard at most.
        bytes_per_shard: the bytes after which a shard ends.

    Attributes:
        shards: the number of complete shards.

    Raises:
        OSError: the disk is full or the folder is read-only.
    """

    def __init__(self, stem: str, rows_per_shard: int = 100_000, bytes_per_shard: int = 1 << 28):
        self._stem = stem
        self._limits = rows_per_shard, bytes_per_shard
        self._writer: tf.io.TFRecordWriter | None = None
        self._temporary = self._final = ""
        self._rows = self._bytes = 0
        self.shards = 0

    def write(self, record: bytes) -> None:
        """Append one record."""
        try:  # a context manager would take as long as the writing
            if self._writer is None:
                self._writer = self._open()
            self._writer.write(record)
        except tf.errors.OpError as error:
            raise _to_os_error(error) from error
        self._rows += 1
        self._bytes += len(record)
        if self._rows >= self._limits[0] or self._bytes >= self._limits[1]:
            self.close()

    def _open(self) -> tf.io.TFRecordWriter:
        self._final = f"{self._stem}-{self.shards:05d}.gz"
        self._temporary = f"{self._final}.{uuid.uuid4().hex[:8]}.tmp"
        # Level 1 compresses text at twice the speed for a tenth more bytes.
        options = tf.io.TFRecordOptions(compression_type="GZIP", compression_level=1)
        return tf.io.TFRecordWriter(self._temporary, options)

    def close(self) -> None:
        """Finish the current shard and give it its name."""
        if self._writer is None:
            return
        writer, self._writer = self._writer, None
        with python_os_errors():
            writer.close()
            tf.io.gfile.rename(self._temporary, self._final, overwrite=True)
        self.shards += 1
        self._rows = self._bytes = 0


@contextlib.contextmanager
def python_os_errors() -> Iterator[None]:
    """Convert TensorFlow's file errors to Python's, so that callers handle one kind."""
    try:
        yield
    except tf.errors.OpError as error:
        raise _to_os_error(error) from error


def _to_os_error(error: tf.errors.OpError) -> OSError:
    if isinstance(error, tf.errors.ResourceExhaustedError):
        return OSError(errno.ENOSPC, error.message)
    if isinstance(error, tf.errors.PermissionDeniedError):
        return PermissionError(errno.EACCES, error.message)
    return OSError(errno.EIO, error.message)
