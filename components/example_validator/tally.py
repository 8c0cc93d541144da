"""Counts and first examples of the checks, which add up over shards in any order."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import asdict, dataclass, field

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
    """What was counted, and the first rows found by each check.

    Attributes:
        rows: by shard.
        counts: of each check's rows, by shard.
        examples: of each check: the row's reference, and that of the row it repeats, if it does.
        letters: of each feature of train, by script.
        lengths: of each feature, by shard: how many there are up to each bound.
        seen: references of other splits that train has too, as ``repeats`` packs them.
        capped: rows of train that were not measured with all that may be nearly the same.
    """

    rows: dict[int, int] = field(default_factory=dict)
    counts: dict[str, dict[int, int]] = field(default_factory=dict)
    examples: dict[str, list[tuple[int, int | None]]] = field(default_factory=dict)
    letters: dict[str, dict[str, int]] = field(default_factory=dict)
    lengths: dict[str, dict[int, list[int]]] = field(default_factory=dict)
    seen: bytes = b""
    capped: int = 0

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
            _add(whole.rows, tally.rows)
            for check, by_shard in tally.counts.items():
                _add(whole.counts.setdefault(check, {}), by_shard)
            for check, kept in tally.examples.items():
                both = [*whole.examples.get(check, []), *kept]
                whole.examples[check] = sorted(both, key=lambda pair: pair[0])[:SHOWN]
            for feature, by_script in tally.letters.items():
                _add(whole.letters.setdefault(feature, {}), by_script)
            for feature, histograms in tally.lengths.items():
                # A shard is read in one go: no two tallies have lengths of the same one.
                whole.lengths.setdefault(feature, {}).update(histograms)
            whole.seen += tally.seen
            whole.capped += tally.capped
        return whole

    def to_json(self) -> str:
        """As text, for a file."""
        return json.dumps({**asdict(self), "seen": base64.b64encode(self.seen).decode("ascii")})

    @classmethod
    def from_json(cls, text: str) -> Tally:
        """What ``to_json`` gave."""
        content = json.loads(text)
        return cls(
            _by_shard(content["rows"]),
            {name: _by_shard(counts) for name, counts in content["counts"].items()},
            {name: [(r, o) for r, o in kept] for name, kept in content["examples"].items()},
            content["letters"],
            {name: _by_shard(counts) for name, counts in content["lengths"].items()},
            base64.b64decode(content["seen"]),
            content["capped"],
        )


def _add(sums: MutableMapping, counts: Mapping) -> None:
    for key, count in counts.items():
        sums[key] = sums.get(key, 0) + count


def _by_shard(content: Mapping) -> dict:
    """JSON's keys are texts."""
    return {int(shard): value for shard, value in content.items()}
