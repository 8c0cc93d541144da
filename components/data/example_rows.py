"""The rows of tf.Examples that CorpusGen writes."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from regard.core.features import Feature
from regard.core.kinds.image import ImageFile

# Few, because an image can have as many bytes as ten thousand sentences.
_RECORDS_PER_READ = 64


class ExampleRow(NamedTuple):
    """The values of each feature of a row (empty if missing), and its file and line."""

    values: list[list[Any]]
    file: str
    line: int


def read_records(path: str) -> Iterator[bytes]:
    """Yield every serialized tf.Example of a file."""
    import tensorflow as tf  # `regard validate` and `regard schedule` must not wait for it

    dataset = tf.data.TFRecordDataset(path, "GZIP").batch(_RECORDS_PER_READ)
    for batch in dataset.as_numpy_iterator():
        yield from batch.tolist()


def parse_record(record: bytes, features: Sequence[Feature]) -> ExampleRow:
    """Parse a serialized tf.Example.

    Args:
        record: the tf.Example.
        features: those that are returned.
    """
    import tensorflow as tf

    stored = tf.train.Example.FromString(record).features.feature
    values = [_values(stored, feature) for feature in features]
    (file,) = _texts(stored["file"])
    (line,) = stored["line"].int64_list.value
    return ExampleRow(values, file, line)


def read_rows(path: str, features: Sequence[Feature]) -> Iterator[ExampleRow]:
    """Yield every row of a file."""
    return (parse_record(record, features) for record in read_records(path))


def _values(stored: Any, feature: Feature) -> list[Any]:
    values = getattr(stored[feature.name], feature.kind.stored_list).value
    if feature.kind.is_text:
        return _texts(stored[feature.name])
    if feature.kind.names_file:
        return list(map(ImageFile, _texts(stored[f"{feature.name}_file"]), values))
    return list(values)


def _texts(content: Any) -> list[str]:
    return [text.decode("utf-8", "replace") for text in content.bytes_list.value]
