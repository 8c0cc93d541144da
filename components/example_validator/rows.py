"""The checks of single rows, and reading rows back from shards of tf.Examples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from components.example_validator.tally import place


@dataclass(frozen=True)
class Shard:
    """One TFRecord file of a split; ``index`` is its place in the corpus."""

    index: int
    split: str
    path: str


def find(row: Sequence[str], checks: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The names of the row checks that find something in the sides of a row.

    ``checks`` are those that are on: ``empty_side``, ``length_ratio`` (characters of the longer
    side over those of the shorter, which counts as 1 where it is empty) and ``too_long``.
    """
    lengths = [len(text.strip()) for text in row]
    shortest, longest = min(lengths), max(lengths)
    found = []
    if shortest == 0 and "empty_side" in checks:
        found.append("empty_side")
    if "length_ratio" in checks and longest > checks["length_ratio"]["ratio"] * max(1, shortest):
        found.append("length_ratio")
    if "too_long" in checks and longest > checks["too_long"]["characters"]:
        found.append("too_long")
    return found


def read(
    path: str, features: Sequence[str], batch: int = 1024
) -> Iterator[tuple[list[str], str, int]]:
    """Yields the text features, ``file`` and ``line`` of every row; what is absent is empty."""
    dataset = tf.data.TFRecordDataset(path, compression_type="GZIP").batch(batch)
    spec = {name: tf.io.FixedLenFeature([], tf.string, "") for name in (*features, "file")}
    spec["line"] = tf.io.FixedLenFeature([], tf.int64, 0)
    for records in dataset:
        parsed = tf.io.parse_example(records, spec)
        columns = [
            [text.decode("utf-8", "replace") for text in parsed[name].numpy()]
            for name in (*features, "file")
        ]
        for *texts, file, line in zip(*columns, parsed["line"].numpy().tolist(), strict=True):
            yield texts, file, line


def fetch(
    shards: Sequence[Shard], features: Sequence[str], refs: Iterable[int]
) -> dict[int, tuple[list[str], str, int]]:
    """The rows at the references; a shard is read only as far as its last one."""
    wanted: dict[int, dict[int, int]] = {}
    for ref in refs:
        shard, row = place(ref)
        wanted.setdefault(shard, {})[row] = ref
    rows = {}
    for shard, by_row in wanted.items():
        last = max(by_row)
        for number, content in enumerate(read(shards[shard].path, features)):
            if number in by_row:
                rows[by_row[number]] = content
            if number == last:
                break
    return rows
