"""Convert a group of files: write its rows as tf.Examples to gzip TFRecords of bounded size."""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import tensorflow as tf
from pydantic import TypeAdapter

from regard.components.common.artifact_files import write_uri
from regard.components.data.corpus_plan import GroupResult, with_progress
from regard.components.data.group_jobs import GroupJob
from regard.components.data.images import Images
from regard.components.data.read_problems import ReadProblems
from regard.components.data.sources import SPAN_FEATURE, Corpus
from regard.components.data.unreadable_file import UnreadableFile
from regard.core import events
from regard.core.features import Feature, Value

if TYPE_CHECKING:
    from regard.components.data.row_filter import RowFilter

# A tf.Example is reused for the rows of a file until it has serialised this many bytes: protobuf
# keeps the memory of earlier rows.
_MAX_BYTES = 1 << 20
_RESULT = TypeAdapter(GroupResult)


class ExampleEncoder:
    """Serialises the rows of one file; the same row always gives the same bytes.

    Args:
        features: the features of a row, in order.
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
            if feature.kind.is_text:
                items = [text.encode("utf-8") for text in items]
            elif feature.kind.names_file:
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
        self._values = [self._new_list(f.name, f.kind.stored_list) for f in self._features]
        self._paths = {
            feature.name: self._new_list(f"{feature.name}_file", "bytes_list")
            for feature in self._features
            if feature.kind.names_file
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
        stem: the start of the paths.
        shards: the number of complete shards.

    Raises:
        OSError: the disk is full or the folder is read-only.
    """

    def __init__(self, stem: str, rows_per_shard: int = 100_000, bytes_per_shard: int = 1 << 28):
        self.stem = stem
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
        self._final = f"{self.stem}-{self.shards:05d}.gz"
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


def convert_or_count(
    job: GroupJob, corpus: Mapping[str, Any], folder: str, rules: RowFilter | None = None
) -> None:
    """Convert a group, or count the rows that a replayed group may give, and save the result.

    The second reading of a replayed group, which converts it, reports the problems of its rows.

    Args:
        job: the group; a replayed one is converted if it has a threshold.
        corpus: JSON of the corpus.
        folder: where the splits and the results are written.
        rules: drops and repairs rows; None: no check does.
    """
    parsed = Corpus.from_json(corpus)
    if job.group.replay and job.threshold is None:
        result = GroupResult.of(job)
        rows = job.rows(parsed, ReadProblems(), Images.of(parsed.config), rules)
        result.replayable = job.count_replayable(rows)
    else:
        result = convert(job, parsed, folder, rules)
    write_uri(_result_path(folder, job.index), _RESULT.dump_json(result))


def convert(job: GroupJob, corpus: Corpus, folder: str, rules: RowFilter | None) -> GroupResult:
    """Write a group's rows to ``<folder>/Split-<name>/part-<index>-<shard>.gz``, in their order.

    It raises neither for invalid input nor for a full disk: the result reports them.

    Args:
        job: the group.
        corpus: the corpus.
        folder: where the folders of the splits are.
        rules: drops and repairs rows; None: no check does.
    """
    group = job.group
    images = Images.of(corpus.config, decode=True)
    result = GroupResult.of(job)
    encode = ExampleEncoder(corpus.features, group.name, images, group.span)
    writers = {
        name: ShardWriter(os.path.join(folder, f"Split-{name}", f"part-{job.index:05d}"))
        for name in job.splits
    }
    result.rows = dict.fromkeys(job.splits, 0)
    rows = job.rows(corpus, result.problems, images, rules)
    report = functools.partial(events.emit, "progress", node="CorpusGen")
    try:
        for line, values in with_progress(group, rows, lambda text: report(text=text)):
            name = job.assign(values)
            if name is not None:
                writers[name].write(encode(line, values))
                result.rows[name] += 1
        for name, writer in writers.items():
            writer.close()
            result.shards[name] = writer.shards
    except UnreadableFile as error:
        result.problems.unreadable.append(error.problem)
    except OSError as error:
        result.write_error = (error.errno or 0, error.strerror or str(error))
    if result.write_error or result.problems.is_fatal(corpus.config):
        _remove_shards(job, folder)
    return result


def read_result(folder: str, index: int) -> GroupResult:
    """Read the result of a group."""
    from tfx.dsl.io import fileio

    with fileio.open(_result_path(folder, index)) as file:
        return _RESULT.validate_json(file.read())


def _remove_shards(job: GroupJob, folder: str) -> None:
    """Remove what was written of a corpus that will not be used: the disk may be full."""
    for name in job.splits:
        shards = os.path.join(folder, f"Split-{name}")
        for shard in tf.io.gfile.listdir(shards):
            if shard.startswith(f"part-{job.index:05d}-"):
                tf.io.gfile.remove(os.path.join(shards, shard))


def _result_path(folder: str, index: int) -> str:
    return os.path.join(folder, f"result-{index:05d}.json")
