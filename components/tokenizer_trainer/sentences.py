"""The sentences of one file: read as a stream, sampled where there are many."""

from __future__ import annotations

import hashlib
import heapq
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

# Rows parsed at a time: their images are in memory, too, where they have some.
_BATCH = 256

# SentencePiece's work on a line without spaces grows with the square of its length.
LONGEST = 16384


@dataclass
class Counts:
    """How many sentences were read, and how many of them are not trained on, and why."""

    read: int = 0
    empty: int = 0
    long: int = 0
    used: int = 0


def read(path: str, features: Sequence[str]) -> Iterator[bytes]:
    """Yields the UTF-8 texts of the features of every tf.Example of a file, in order."""
    import tensorflow as tf

    # Ragged: a row can have several texts of a feature, or none.
    spec = {name: tf.io.RaggedFeature(tf.string) for name in features}
    rows = tf.data.TFRecordDataset(path, compression_type="GZIP").batch(_BATCH)
    options = tf.data.Options()
    options.autotune.enabled = False
    parsed = rows.map(lambda records: tf.io.parse_example(records, spec)).prefetch(1)
    for batch in parsed.with_options(options):
        for row in zip(*(_by_row(batch[name]) for name in features), strict=True):
            for texts in row:
                yield from texts


def _by_row(column: Any) -> Iterator[list[bytes]]:
    """The texts of each row of a batch."""
    texts, ends = column.values.numpy().tolist(), column.row_splits.numpy().tolist()
    return (texts[start:end] for start, end in itertools.pairwise(ends))


def sample(
    sentences: Iterable[bytes], limit: int, seed: int, counts: Counts, shard: int = 0
) -> list[tuple[int, bytes]]:
    """At most ``limit`` sentences with their hashes, in their order: those whose hash is lowest.

    Every sentence has the same chance, wherever it stands, and the same input gives the same
    sample. No more than ``limit`` sentences are ever held. Empty sentences and those of more than
    ``LONGEST`` bytes do not count.

    Args:
        sentences: of a file.
        limit: of those that are kept.
        seed: another one draws others.
        counts: is filled.
        shard: the file's number.
    """
    key = seed.to_bytes(8, "little")
    kept: list[tuple[int, int, bytes]] = []  # a heap, the highest hash first
    for sentence in sentences:
        counts.read += 1
        if not sentence.strip():
            counts.empty += 1
            continue
        if len(sentence) > LONGEST:
            counts.long += 1
            continue
        # The place is hashed too: copies of one sentence are not drawn all or none.
        place = shard.to_bytes(8, "little") + counts.read.to_bytes(8, "little")
        digest = hashlib.blake2b(sentence, digest_size=8, key=key, salt=place).digest()
        item = (-int.from_bytes(digest, "little"), counts.read, sentence)
        if len(kept) < limit:
            heapq.heappush(kept, item)
        else:
            heapq.heappushpop(kept, item)
    counts.used = len(kept)
    kept.sort(key=lambda item: item[1])
    return [(-drawn, sentence) for drawn, _, sentence in kept]
