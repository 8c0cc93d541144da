"""Reads the rows of the test split of an Examples artifact."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from components.errors import UserError
from components.predictions import Row
from models.tasks.features import Feature

if TYPE_CHECKING:
    from tfx.types.artifact import Artifact

SPLIT = "test"
# Few, for an image can have as many bytes as ten thousand sentences.
_READ_TOGETHER = 32


def test_split(examples: Artifact) -> str:
    """The folder of the split that is decoded.

    Raises:
        UserError: there is none.
    """
    from tfx.types import artifact_utils

    splits = artifact_utils.decode_split_names(examples.split_names)
    if SPLIT not in splits:
        raise UserError(
            f"there is no {SPLIT!r} split to decode (there are: {', '.join(splits)})",
            remedy="Give `data.test`, or let `data.split` make one.",
        )
    return artifact_utils.get_split_uri([examples], SPLIT)


def shards(split: str) -> list[Path]:
    """The files of a split's folder, in order."""
    return sorted(path for path in Path(split).iterdir() if not path.name.startswith((".", "_")))


def records(path: str | os.PathLike[str]) -> Iterator[bytes]:
    """The serialised ``tf.Example`` records of a TFRecord file, ``.gz`` or plain."""
    import tensorflow as tf

    compression = "GZIP" if Path(path).suffix == ".gz" else ""
    several = tf.data.TFRecordDataset(os.fspath(path), compression).batch(_READ_TOGETHER)
    for batch in several.as_numpy_iterator():
        yield from batch.tolist()


def parse(record: bytes, features: Sequence[Feature], path: str | os.PathLike[str] = "") -> Row:
    """A row of a serialised ``tf.Example``.

    Args:
        record: the example.
        features: those of the task.
        path: the file that it is from.

    Raises:
        UserError: the example lacks one of them.
    """
    found = _decoded(record)
    missing = [feature.name for feature in features if feature.name not in found]
    if missing:
        raise UserError(
            f"the examples have no feature {missing[0]!r} (they have: {', '.join(sorted(found))})",
            where=os.fspath(path),
        )
    values = {feature.name: _value(found, feature) for feature in features}
    by_role: dict[str, list[Feature]] = {"input": [], "reference": [], "extra": []}
    for feature in features:
        by_role[feature.role].append(feature)
    (reference,) = by_role["reference"]
    wanted = values[reference.name]
    if not reference.several:
        wanted = [] if wanted is None else [wanted]
    file, line = _place(found)
    return Row(
        inputs={feature.name: values[feature.name] for feature in by_role["input"]},
        references=wanted,
        extras={feature.name: values[feature.name] for feature in by_role["extra"]},
        paths={
            feature.name: _text(found, f"{feature.name}_file")
            for feature in features
            if feature.kind == "image"
        },
        file=file,
        line=line,
    )


def length(row: Row) -> int:
    """About how much work a row is: its characters and points; images are all the same size."""
    return sum(len(value) for value in row.inputs.values() if not isinstance(value, bytes))


def read_images(
    split: str, names: Sequence[str], chosen: Sequence[int]
) -> dict[int, dict[str, bytes]]:
    """The images of some rows, by their numbers in the Predictor's table, and by feature.

    Args:
        split: the folder of the split.
        names: the features.
        chosen: numbers of rows.
    """
    order = in_order([_place(record) for record in _examples(split)])
    wanted = {order[row]: row for row in chosen}
    return {
        wanted[place]: {name: record[name].bytes_list.value[0] for name in names}
        for place, record in enumerate(_examples(split))
        if place in wanted
    }


def in_order(places: Sequence[tuple[str, int]]) -> list[int]:
    """The records in the order in which they stood in the corpus.

    Beam writes a split in any order; the features ``file`` and ``line`` put it right, so that
    the answers line up with the user's own test file. Without them the order read is kept.

    Args:
        places: the file and the line of each record, in the order read.
    """
    return sorted(range(len(places)), key=places.__getitem__)


def _examples(split: str) -> Iterator[Any]:
    return (_decoded(record) for path in shards(split) for record in records(path))


def _decoded(record: bytes) -> Any:
    import tensorflow as tf

    return tf.train.Example.FromString(record).features.feature


def _value(record: Any, feature: Feature) -> Any:
    """What a row holds of a feature; None where it may be missing and is."""
    entry = record[feature.name]
    if feature.kind == "text":
        texts = [value.decode("utf-8", errors="replace") for value in entry.bytes_list.value]
        if feature.several:
            return texts
        return texts[0] if texts else None if feature.optional else ""
    if feature.kind == "image":
        return entry.bytes_list.value[0]
    if feature.kind == "number":
        numbers = _numbers(entry.float_list.value)
        if feature.several:
            return numbers
        return numbers[0] if numbers else None
    if feature.kind == "points":
        flat = _numbers(entry.float_list.value)
        points = [list(pair) for pair in zip(flat[::2], flat[1::2], strict=True)]
        return points if points or not feature.optional else None
    positions = list(entry.int64_list.value)
    return positions if positions or not feature.optional else None


def _numbers(values: Sequence[float]) -> list[float]:
    """The shortest numbers that these float32 are: 4.2, and not 4.199999809265137."""
    import numpy as np

    return np.asarray(values, np.float32).astype(str).astype(float).tolist()


def _place(record: Any) -> tuple[str, int]:
    """The file and the line that a row came from."""
    line = record["line"].int64_list.value[0] if "line" in record else 0
    return _text(record, "file"), line


def _text(record: Any, name: str) -> str:
    values = record[name].bytes_list.value if name in record else ()
    return values[0].decode("utf-8", errors="replace") if values else ""
