"""Counts and first examples of the checks, which add up over shards in any order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

SHOWN = 5
_ROW_BITS = 40


def reference(shard: int, row: int) -> int:
    """A row's place in the corpus as one number that sorts like the corpus."""
    return shard << _ROW_BITS | row


def place(ref: int) -> tuple[int, int]:
    """Shard and row, from 0, of a reference."""
    return ref >> _ROW_BITS, ref & ((1 << _ROW_BITS) - 1)


@dataclass
class Tally:
    """Rows by shard; counts by check and shard; and the first rows found by each check.

    An example is a row's reference and that of the row it repeats, if it does.
    """

    rows: dict[int, int] = field(default_factory=dict)
    counts: dict[str, dict[int, int]] = field(default_factory=dict)
    examples: dict[str, list[tuple[int, int | None]]] = field(default_factory=dict)

    def add(self, check: str, ref: int, other: int | None = None) -> None:
        """Counts one row; call it in the order of the references."""
        by_shard = self.counts.setdefault(check, {})
        shard = place(ref)[0]
        by_shard[shard] = by_shard.get(shard, 0) + 1
        kept = self.examples.setdefault(check, [])
        if len(kept) < SHOWN:
            kept.append((ref, other))

    @classmethod
    def total(cls, tallies: Iterable[Tally]) -> Tally:
        """The sum; its examples are the first ones of the corpus."""
        whole = cls()
        for tally in tallies:
            for shard, count in tally.rows.items():
                whole.rows[shard] = whole.rows.get(shard, 0) + count
            for check, by_shard in tally.counts.items():
                sums = whole.counts.setdefault(check, {})
                for shard, count in by_shard.items():
                    sums[shard] = sums.get(shard, 0) + count
            for check, kept in tally.examples.items():
                both = [*whole.examples.get(check, []), *kept]
                whole.examples[check] = sorted(both, key=lambda pair: pair[0])[:SHOWN]
        return whole
