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

    def __call__(self, line: int, values: Sequence[Value]) -> bytes:
        """A tf.Example with the features, ``file`` (base name), ``line`` (from 1) and ``span``.

        An image is its bytes, and the path that named it ``<name>_file``. A feature that is
        missing is an empty list of its kind.

        Raises:
            Broken: an image cannot be read any more.
        """
        example = tf.train.Example()
        into = example.features.feature
        for feature, value in zip(self._features, values, strict=True):
            self._fill(into, feature, value)
        into["file"].bytes_list.value.append(self._file)
        into["line"].int64_list.value.append(line)
        if self._span is not None:
            into[FEATURE].bytes_list.value.append(self._span)
        return example.SerializeToString(deterministic=True)

    def _fill(self, into: Any, feature: Feature, value: Any) -> None:
        items = value if isinstance(value, list) else [] if value is None else [value]
        if feature.kind == "image":
            _put(into[feature.name].bytes_list, [self._images.content(path) for path in items])
            _put(into[f"{feature.name}_file"].bytes_list, [path.encode("utf-8") for path in items])
        elif feature.kind == "text":
            _put(into[feature.name].bytes_list, [text.encode("utf-8") for text in items])
        elif feature.kind == "positions":
            _put(into[feature.name].int64_list, items)
        else:
            _put(into[feature.name].float_list, items)


def _put(kept: Any, items: list[Any]) -> None:
    kept.SetInParent()  # an empty list has a kind, too
    kept.value.extend(items)


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
        with os_errors():
            if self._writer is None:
                self._final = f"{self._stem}-{self._shards:05d}.gz"
                self._temporary = f"{self._final}.{uuid.uuid4().hex[:8]}.tmp"
                # Level 1 packs text at twice the speed for a tenth more bytes.
                options = tf.io.TFRecordOptions(compression_type="GZIP", compression_level=1)
                self._writer = tf.io.TFRecordWriter(self._temporary, options)
            self._writer.write(record)
        self._rows += 1
        self._bytes += len(record)
        if self._rows >= self._limits[0] or self._bytes >= self._limits[1]:
            self.close()

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
    except tf.errors.ResourceExhaustedError as error:
        raise OSError(errno.ENOSPC, error.message) from error
    except tf.errors.PermissionDeniedError as error:
        raise PermissionError(errno.EACCES, error.message) from error
    except tf.errors.OpError as error:
        raise OSError(errno.EIO, error.message) from error
