"""Rows as they are read back from shards of tf.Examples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import tensorflow as tf

from components.example_validator.tally import place
from components.words import counted
from models.tasks.features import Feature


@dataclass(frozen=True)
class Shard:
    """One TFRecord file of a split; ``index`` is its place in the corpus."""

    index: int
    split: str
    path: str


class Image(NamedTuple):
    """An image of a row: the path that named it, and its bytes."""

    path: str
    content: bytes


class Row(NamedTuple):
    """The values of each feature of a row (empty where it is missing), and where it came from."""

    values: list[list[Any]]
    file: str
    line: int


def read(path: str, features: Sequence[Feature], batch: int = 1024) -> Iterator[Row]:
    """Yields every row of a shard."""
    if any(feature.kind == "image" for feature in features):
        batch = 32  # an image can have as many bytes as ten thousand sentences
    for records in tf.data.TFRecordDataset(path, compression_type="GZIP").batch(batch):
        for record in records.numpy():
            stored = tf.train.Example.FromString(record).features.feature
            values = [_values(stored, feature) for feature in features]
            (file,) = _texts(stored["file"])
            (line,) = stored["line"].int64_list.value
            yield Row(values, file, line)


def _values(stored: Any, feature: Feature) -> list[Any]:
    content = stored[feature.name]
    if feature.kind == "text":
        return _texts(content)
    if feature.kind == "image":
        paths = _texts(stored[f"{feature.name}_file"])
        return list(map(Image, paths, content.bytes_list.value))
    if feature.kind == "positions":
        return list(content.int64_list.value)
    return list(content.float_list.value)


def _texts(content: Any) -> list[str]:
    return [text.decode("utf-8", "replace") for text in content.bytes_list.value]


def shown(feature: Feature, values: Sequence[Any]) -> str:
    """The values of a feature as a text for people."""
    if feature.kind == "text":
        return " / ".join(values)
    if feature.kind == "image":
        return " / ".join(image.path for image in values)
    if feature.kind == "number":
        return " ".join(f"{value:g}" for value in values)
    if feature.kind == "positions":
        return " ".join(map(str, values))
    pairs = zip(values[::2], values[1::2], strict=True)
    points = " ".join(f"({x:g}, {y:g})" for x, y in pairs)
    return f"{counted(len(values) // 2, 'point')}: {points}" if values else ""


def fetch(
    shards: Sequence[Shard], features: Sequence[Feature], refs: Iterable[int]
) -> dict[int, Row]:
    """The rows at the references; a shard is read only as far as its last one."""
    wanted: dict[int, dict[int, int]] = {}
    for ref in refs:
        shard, row = place(ref)
        wanted.setdefault(shard, {})[row] = ref
    rows = {}
    for shard, by_row in wanted.items():
        last = max(by_row)
        for number, found in enumerate(read(shards[shard].path, features)):
            if number in by_row:
                rows[by_row[number]] = found
            if number == last:
                break
    return rows
