"""Rows read from shards of tf.Examples, and counts of the rows that checks find."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple, TypeVar

from pydantic import Base64Encoder, EncodedBytes, TypeAdapter
from typing_extensions import Self

from regard.components.data.row_values import Image
from regard.models.tasks.description import Feature

K = TypeVar("K", int, str)

MAX_EXAMPLES = 5
_ROW_BITS = 40


@dataclass(frozen=True)
class Shard:
    """One TFRecord file of a split; ``index`` is its position in the corpus."""

    index: int
    split: str
    path: str

    def rows(self, features: Sequence[Feature]) -> Iterator[ShardRow]:
        """Yield every row."""
        return read_shard(self.path, features)


class ShardRow(NamedTuple):
    """The values of each feature of a row (empty if missing), and its file and line."""

    values: list[list[Any]]
    file: str
    line: int


def row_reference(shard: int, row: int) -> int:
    """Return a number for a row; numbers sort in the order of the corpus."""
    return shard << _ROW_BITS | row


def _split_reference(ref: int) -> tuple[int, int]:
    """Return the shard and the row, from 0, of a reference."""
    return ref >> _ROW_BITS, ref & ((1 << _ROW_BITS) - 1)


@dataclass
class CheckCounts:
    """Counts and first examples of the checks; counts of several shards can be added.

    Attributes:
        rows: all rows by shard.
        counts: the rows of each check by shard.
        examples: for each check references of rows, each with that of the row it repeats, or None.
        letters: the letters of each feature of train by script.
        lengths: the histogram of the lengths of each feature by shard.
        overlaps: references of other splits in train, packed as in ``duplicates``.
        capped: rows of train that were not compared with all similar rows.
        inputs: rows of other splits that train can be compared with.
    """

    rows: dict[int, int] = field(default_factory=dict)
    counts: dict[str, dict[int, int]] = field(default_factory=dict)
    examples: dict[str, list[tuple[int, int | None]]] = field(default_factory=dict)
    letters: dict[str, dict[str, int]] = field(default_factory=dict)
    lengths: dict[str, dict[int, list[int]]] = field(default_factory=dict)
    overlaps: Annotated[bytes, EncodedBytes(Base64Encoder)] = b""
    capped: int = 0
    inputs: int = 0

    def add(self, check: str, ref: int, other: int | None = None) -> None:
        """Count one row of a check; rows must be added in the order of their references."""
        by_shard = self.counts.setdefault(check, {})
        shard = _split_reference(ref)[0]
        by_shard[shard] = by_shard.get(shard, 0) + 1
        examples = self.examples.setdefault(check, [])
        if len(examples) < MAX_EXAMPLES:
            examples.append((ref, other))

    @classmethod
    def total(cls, parts: Iterable[CheckCounts]) -> Self:
        """Return the sum; its examples are the first ones of the corpus."""
        total = cls()
        for part in parts:
            _add(total.rows, part.rows)
            for check, by_shard in part.counts.items():
                _add(total.counts.setdefault(check, {}), by_shard)
            for check, examples in part.examples.items():
                both = [*total.examples.get(check, []), *examples]
                total.examples[check] = sorted(both, key=lambda pair: pair[0])[:MAX_EXAMPLES]
            for feature, by_script in part.letters.items():
                _add(total.letters.setdefault(feature, {}), by_script)
            for feature, histograms in part.lengths.items():
                # A shard is scanned as a whole: no two parts have lengths of the same one.
                total.lengths.setdefault(feature, {}).update(histograms)
            total.overlaps += part.overlaps
            total.capped += part.capped
            total.inputs += part.inputs
        return total

    def to_json(self) -> bytes:
        """Return the counts as JSON."""
        return TypeAdapter(CheckCounts).dump_json(self)

    @staticmethod
    def from_json(content: bytes | str) -> CheckCounts:
        """Restore the counts from ``to_json``."""
        return TypeAdapter(CheckCounts).validate_json(content)


def _add(total: dict[K, int], counts: Mapping[K, int]) -> None:
    for key, count in counts.items():
        total[key] = total.get(key, 0) + count


def read_shard(path: str, features: Sequence[Feature], batch: int = 1024) -> Iterator[ShardRow]:
    """Yield every row of a shard."""
    import tensorflow as tf  # `regard validate` and `regard schedule` must not wait for it

    if any(feature.kind == "image" for feature in features):
        batch = 32  # an image can have as many bytes as ten thousand sentences
    for records in tf.data.TFRecordDataset(path, compression_type="GZIP").batch(batch):
        for record in records.numpy():
            stored = tf.train.Example.FromString(record).features.feature
            values = [_values(stored, feature) for feature in features]
            (file,) = _texts(stored["file"])
            (line,) = stored["line"].int64_list.value
            yield ShardRow(values, file, line)


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


def read_referenced_rows(
    shards: Sequence[Shard], features: Sequence[Feature], refs: Iterable[int]
) -> dict[int, ShardRow]:
    """Return the rows at references; a shard is read only up to its last one."""
    refs_by_shard: dict[int, dict[int, int]] = {}
    for ref in refs:
        shard, row = _split_reference(ref)
        refs_by_shard.setdefault(shard, {})[row] = ref
    rows = {}
    for shard, ref_by_row in refs_by_shard.items():
        last = max(ref_by_row)
        for number, row_values in enumerate(shards[shard].rows(features)):
            if number in ref_by_row:
                rows[ref_by_row[number]] = row_values
            if number == last:
                break
    return rows
