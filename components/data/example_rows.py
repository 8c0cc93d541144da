"""The rows of tf.Examples, which CorpusGen or an ExampleGen of TFX writes."""

import os
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from regard.core.errors import DataError
from regard.core.features import Feature
from regard.core.kinds.image import ImageFile

# Few, because an image can have as many bytes as ten thousand sentences.
_RECORDS_PER_READ = 64
_SHARD_OF_SPLIT = re.compile(r"Split-([^/]+)/[^/]*-(\d{5})-of-(\d{5})[^/]*")
Position = tuple[str, int]  # the file and the line of a row


class ExampleRow(NamedTuple):
    """The values of each feature of a row (empty if missing), and its file and line.

    Without the features ``file`` and ``line``, which CorpusGen adds, these are the split and the
    number of the row in it, from 1; of a split of several files, the split with the number of the
    file, such as ``test-00001``, and the number of the row in this file.
    """

    values: list[list[Any]]
    file: str
    line: int


def read_records(path: str) -> Iterator[bytes]:
    """Yield every serialized tf.Example of a file."""
    import tensorflow as tf  # `regard validate` and `regard schedule` must not wait for it

    dataset = tf.data.TFRecordDataset(path, "GZIP").batch(_RECORDS_PER_READ)
    for batch in dataset.as_numpy_iterator():
        yield from batch.tolist()


def read_positioned_records(path: str) -> Iterator[tuple[Position, bytes]]:
    """Yield every tf.Example of a file with the position of a row that names none itself."""
    match = _SHARD_OF_SPLIT.search(path.replace(os.sep, "/"))
    if match is None:
        name = os.path.basename(path)
    else:
        split, number, count = match.groups()
        name = split if int(count) == 1 else f"{split}-{number}"
    for line, record in enumerate(read_records(path), 1):
        yield (name, line), record


def parse_record(
    record: bytes, features: Sequence[Feature], position: Position = ("", 0)
) -> ExampleRow:
    """Parse a serialized tf.Example.

    Args:
        record: the tf.Example.
        features: those that are returned.
        position: the file and the line of a row without these features.

    Raises:
        UserError: a feature is missing, or has values of another type.
    """
    import tensorflow as tf

    stored = tf.train.Example.FromString(record).features.feature
    values = [_values(stored, feature) for feature in features]
    file, line = _texts(stored["file"]), stored["line"].int64_list.value
    return ExampleRow(values, *((file[0], line[0]) if file and line else position))


def read_rows(path: str, features: Sequence[Feature]) -> Iterator[ExampleRow]:
    """Yield every row of a file."""
    records = read_positioned_records(path)
    return (parse_record(record, features, position) for position, record in records)


def _values(stored: Any, feature: Feature) -> list[Any]:
    if feature.name not in stored and not feature.optional:
        message = (
            f"A tf.Example has no feature {feature.name!r}; it has {', '.join(sorted(stored))}."
        )
        remedy = "Rename the columns of your data, or choose another task."
        raise DataError(message, feature.name, remedy)
    content = stored[feature.name]
    values = getattr(content, feature.kind.stored_list).value
    if not values and (kind := content.WhichOneof("kind")) and getattr(content, kind).value:
        message = f"The feature {feature.name!r} is {kind}, not {feature.kind.stored_list}."
        raise DataError(message, feature.name, "Change its type in the component that writes it.")
    if feature.kind.is_text:
        return _texts(content)
    if feature.kind.names_file:
        paths = _texts(stored[f"{feature.name}_file"]) or [""] * len(values)
        return list(map(ImageFile, paths, values))
    return list(values)


def _texts(content: Any) -> list[str]:
    return [text.decode("utf-8", "replace") for text in content.bytes_list.value]
