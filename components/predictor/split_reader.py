"""Reads the rows of the test split of an Examples artifact."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.components.common.errors import UserError
from regard.components.common.files import split_shards
from regard.components.common.prediction_table import Row
from regard.components.data.row_values import split_points
from regard.models.tasks.description import Feature

if TYPE_CHECKING:
    from tfx.types.artifact import Artifact

SPLIT = "test"
# Few, because an image can be as large as ten thousand sentences.
_RECORDS_PER_READ = 32


def test_split(examples: Artifact) -> str:
    """Return the folder of the test split.

    Raises:
        UserError: there is none.
    """
    from tfx.types import artifact_utils

    splits = artifact_utils.decode_split_names(examples.split_names)
    if SPLIT not in splits:
        message = f"There is no {SPLIT!r} split to decode (available: {', '.join(splits)})"
        raise UserError(message, remedy="Set `data.test`, or let `data.split` create the split.")
    return artifact_utils.get_split_uri([examples], SPLIT)


def read_records(path: str | os.PathLike[str]) -> Iterator[bytes]:
    """Yield the serialized ``tf.Example`` records of a TFRecord file, plain or ``.gz``."""
    import tensorflow as tf

    compression = "GZIP" if Path(path).suffix == ".gz" else ""
    dataset = tf.data.TFRecordDataset(os.fspath(path), compression).batch(_RECORDS_PER_READ)
    for batch in dataset.as_numpy_iterator():
        yield from batch.tolist()


def parse_example(
    record: bytes, features: Sequence[Feature], path: str | os.PathLike[str] = ""
) -> Row:
    """Parse a serialized ``tf.Example``.

    Args:
        record: the example.
        features: the task's features.
        path: the file of the example, for error messages.

    Raises:
        UserError: the example lacks a feature.
    """
    example = _decode(record)
    missing = [feature.name for feature in features if feature.name not in example]
    if missing:
        message = (
            f"The examples have no feature {missing[0]!r} (available: {', '.join(sorted(example))})"
        )
        raise UserError(message, where=os.fspath(path))
    values = {feature.name: _value(example, feature) for feature in features}
    by_role: dict[str, list[Feature]] = {"input": [], "reference": [], "extra": []}
    for feature in features:
        by_role[feature.role].append(feature)
    (reference,) = by_role["reference"]
    references = values[reference.name]
    if not reference.multiple:
        references = [] if references is None else [references]
    file, line = _position(example)
    return Row(
        inputs={feature.name: values[feature.name] for feature in by_role["input"]},
        references=references,
        extras={feature.name: values[feature.name] for feature in by_role["extra"]},
        paths={
            feature.name: _text(example, f"{feature.name}_file")
            for feature in features
            if feature.kind == "image"
        },
        file=file,
        line=line,
    )


def row_length(row: Row) -> int:
    """Estimate the work of a row by its characters and points; images all have the same size."""
    return sum(len(value) for value in row.inputs.values() if not isinstance(value, bytes))


def read_images(
    split: str, names: Sequence[str], rows: Sequence[int]
) -> dict[int, dict[str, bytes]]:
    """Return the images of some rows, by row number and feature.

    Args:
        split: the split's folder.
        names: the image features.
        rows: row numbers of the Predictor's table.
    """
    order = corpus_order([_position(example) for example in _examples(split)])
    row_of = {order[row]: row for row in rows}
    return {
        row_of[index]: {name: example[name].bytes_list.value[0] for name in names}
        for index, example in enumerate(_examples(split))
        if index in row_of
    }


def corpus_order(positions: Sequence[tuple[str, int]]) -> list[int]:
    """Return the indices of records in the order of the corpus.

    Beam writes a split in any order. Sorting by file and line aligns the outputs with the user's
    test file; without these features the order is kept.

    Args:
        positions: the file and the line of each record.
    """
    return sorted(range(len(positions)), key=positions.__getitem__)


def _examples(split: str) -> Iterator[Any]:
    return (_decode(record) for path in split_shards(split) for record in read_records(path))


def _decode(record: bytes) -> Any:
    import tensorflow as tf

    return tf.train.Example.FromString(record).features.feature


def _value(example: Any, feature: Feature) -> Any:
    """Return a row's value of a feature; None if an optional value is missing."""
    entry = example[feature.name]
    if feature.kind == "text":
        texts = [value.decode("utf-8", errors="replace") for value in entry.bytes_list.value]
        if feature.multiple:
            return texts
        return texts[0] if texts else None if feature.optional else ""
    if feature.kind == "image":
        return entry.bytes_list.value[0]
    if feature.kind == "number":
        numbers = _numbers(entry.float_list.value)
        if feature.multiple:
            return numbers
        return numbers[0] if numbers else None
    if feature.kind == "points":
        points = split_points(_numbers(entry.float_list.value), feature)
        return points if points or not feature.optional else None
    positions = list(entry.int64_list.value)
    return positions if positions or not feature.optional else None


def _numbers(values: Sequence[float]) -> list[float]:
    """Return the shortest decimals of float32 values: 4.2 instead of 4.199999809265137."""
    import numpy as np

    return np.asarray(values, np.float32).astype(str).astype(float).tolist()


def _position(example: Any) -> tuple[str, int]:
    line = example["line"].int64_list.value[0] if "line" in example else 0
    return _text(example, "file"), line


def _text(example: Any, name: str) -> str:
    values = example[name].bytes_list.value if name in example else ()
    return values[0].decode("utf-8", errors="replace") if values else ""
