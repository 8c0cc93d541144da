"""References to the rows of shards of tf.Examples, and counts of the rows that checks find."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from typing_extensions import Self

from regard.components.data.example_rows import ExampleRow, read_rows
from regard.core.features import Feature

MAX_EXAMPLES = 5
_ROW_BITS = 40


@dataclass(frozen=True)
class Shard:
    """One TFRecord file of a split; ``index`` is its position in the corpus."""

    index: int
    split: str
    path: str

    def rows(self, features: Sequence[Feature]) -> Iterator[ExampleRow]:
        """Yield every row."""
        return read_rows(self.path, features)


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
        words: counts of ``count_words`` for each text of train that the model outputs.
        lengths: the histogram of the lengths of each feature by shard.
        overlaps: references of other splits in train, packed as in ``duplicates``.
        capped: rows of train that were not compared with all similar rows.
        inputs: rows of other splits that train can be compared with.
    """

    rows: Counter[int] = field(default_factory=Counter)
    counts: dict[str, Counter[int]] = field(default_factory=dict)
    examples: dict[str, list[tuple[int, int | None]]] = field(default_factory=dict)
    letters: dict[str, Counter[str]] = field(default_factory=dict)
    words: dict[str, Counter[str]] = field(default_factory=dict)
    lengths: dict[str, dict[int, list[int]]] = field(default_factory=dict)
    overlaps: bytes = b""
    capped: int = 0
    inputs: int = 0

    def add(self, check: str, ref: int, other: int | None = None) -> None:
        """Count one row of a check; rows must be added in the order of their references."""
        self.counts.setdefault(check, Counter())[_split_reference(ref)[0]] += 1
        examples = self.examples.setdefault(check, [])
        if len(examples) < MAX_EXAMPLES:
            examples.append((ref, other))

    @classmethod
    def total(cls, parts: Iterable[CheckCounts]) -> Self:
        """Return the sum; its examples are the first ones of the corpus."""
        total = cls()
        for part in parts:
            total.rows.update(part.rows)
            for check, by_shard in part.counts.items():
                total.counts.setdefault(check, Counter()).update(by_shard)
            for check, examples in part.examples.items():
                both = [*total.examples.get(check, []), *examples]
                total.examples[check] = sorted(both, key=lambda pair: pair[0])[:MAX_EXAMPLES]
            for feature, by_script in part.letters.items():
                total.letters.setdefault(feature, Counter()).update(by_script)
            for feature, words in part.words.items():
                total.words.setdefault(feature, Counter()).update(words)
            for feature, histograms in part.lengths.items():
                # A shard is scanned as a whole: no two parts have lengths of the same one.
                total.lengths.setdefault(feature, {}).update(histograms)
            total.overlaps += part.overlaps
            total.capped += part.capped
            total.inputs += part.inputs
        return total


def read_referenced_rows(
    shards: Sequence[Shard], features: Sequence[Feature], refs: Iterable[int]
) -> dict[int, ExampleRow]:
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
