"""A sample of the sentences of a split: each worker samples a file, and the lowest hashes remain.

The sample of a file is a Parquet file with the hash of each sentence. However large the split is,
memory holds the sample of one file in each worker, and at the end the hashes of all samples.
"""

from __future__ import annotations

import hashlib
import heapq
import itertools
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from regard.core.characters import is_blank
from regard.core.files import atomic_path

if TYPE_CHECKING:
    import tensorflow as tf

# SentencePiece's work on a line without spaces grows with the square of its length.
MAX_BYTES = 16384

# Rows parsed at a time: memory holds their images too.
_BATCH = 256
# A joiner between letters; vowel signs of Indic scripts are not letters to `re`.
_JOINED = re.compile(r"(?:\w|[^\x00-\x7f\s])\u200c(?:\w|[^\x00-\x7f\s])")
_COUNTS_KEY = b"counts"
_ROWS_PER_GROUP = 1 << 14


@dataclass
class SentenceCounts:
    """How many sentences were read, are empty, are too long, and are used for training.

    ``joined`` is the number of those with U+200C between letters, also outside of the sample.
    """

    read: int = 0
    empty: int = 0
    too_long: int = 0
    used: int = 0
    joined: int = 0


def read_sentences(path: str, features: Sequence[str]) -> Iterator[bytes]:
    """Yield the UTF-8 texts of the features of every tf.Example of a file, in order."""
    import tensorflow as tf

    # Ragged: a row can have several texts of a feature, or none.
    spec = {name: tf.io.RaggedFeature(tf.string) for name in features}
    rows = tf.data.TFRecordDataset(path, compression_type="GZIP").batch(_BATCH)
    options = tf.data.Options()
    options.autotune.enabled = False
    parsed = rows.map(lambda records: tf.io.parse_example(records, spec)).prefetch(1)
    for batch in parsed.with_options(options):
        for row in zip(*(_rows_of(batch[name]) for name in features), strict=True):
            for texts in row:
                yield from texts


def _rows_of(column: tf.RaggedTensor) -> Iterator[list[bytes]]:
    """Yield the texts of each row of a batch."""
    texts, ends = column.values.numpy().tolist(), column.row_splits.numpy().tolist()
    return (texts[start:end] for start, end in itertools.pairwise(ends))


def sample_sentences(
    sentences: Iterable[bytes], limit: int, seed: int, counts: SentenceCounts, shard: int = 0
) -> list[tuple[int, bytes]]:
    """Return at most ``limit`` sentences with their hashes, in their order: the lowest hashes.

    Every sentence has the same chance, and the same input gives the same sample. At most ``limit``
    sentences are held. Empty sentences and those of more than ``MAX_BYTES`` are left out.

    Args:
        sentences: the sentences of a file.
        limit: the size of the sample.
        seed: another seed gives another sample.
        counts: the counts to fill.
        shard: the index of the file.
    """
    key = seed.to_bytes(8, "little")

    def hashed() -> Iterator[tuple[int, int, bytes]]:
        for sentence in sentences:
            counts.read += 1
            text = sentence.decode("utf-8", errors="replace")
            if is_blank(text):
                counts.empty += 1
            elif len(sentence) > MAX_BYTES:
                counts.too_long += 1
            else:
                if _JOINED.search(text):
                    counts.joined += 1
                # The position is hashed too: copies of a sentence are sampled independently.
                position = shard.to_bytes(8, "little") + counts.read.to_bytes(8, "little")
                digest = hashlib.blake2b(sentence, digest_size=8, key=key, salt=position).digest()
                yield int.from_bytes(digest, "little"), counts.read, sentence

    sample = heapq.nsmallest(limit, hashed())
    counts.used = len(sample)
    sample.sort(key=lambda entry: entry[1])
    return [(sentence_hash, sentence) for sentence_hash, _, sentence in sample]


@dataclass(frozen=True)
class FileSampler:
    """Samples the sentences of a file.

    Attributes:
        groups: the features whose sentences are sampled together.
        limit: the size of a sample.
        seed: another seed gives another sample.
        folder: the folder of the samples, which every worker must be able to write to.
    """

    groups: Sequence[Sequence[str]]
    limit: int
    seed: int
    folder: str

    def __call__(self, job: tuple[int, str]) -> None:
        """Write the sample of each group.

        Args:
            job: the index and the path of the file.
        """
        shard, path = job
        for number, group in enumerate(self.groups):
            counts = SentenceCounts()
            sample = sample_sentences(
                read_sentences(path, group), self.limit, self.seed, counts, shard
            )
            columns = {
                "hash": pa.array([sentence_hash for sentence_hash, _ in sample], pa.uint64()),
                "sentence": pa.array([sentence for _, sentence in sample], pa.binary()),
            }
            metadata = {_COUNTS_KEY: json.dumps(asdict(counts))}
            table = pa.table(columns).replace_schema_metadata(metadata)
            final = os.path.join(self.folder, f"{number:02d}-{shard:05d}.parquet")
            with atomic_path(final) as temporary:
                pq.write_table(table, temporary, row_group_size=_ROWS_PER_GROUP, compression="lz4")


@dataclass(frozen=True)
class CorpusSample:
    """The sample of all files, as if they were one.

    Attributes:
        files: the samples of each file.
        counts: the counts of all files.
        max_hash: sentences with a higher hash are left out; None: no limit.
    """

    files: Sequence[Path]
    counts: SentenceCounts
    max_hash: int | None

    def __iter__(self) -> Iterator[bytes]:
        """Yield the sentences in the order of the corpus."""
        limit = None if self.max_hash is None else pa.scalar(self.max_hash, pa.uint64())
        for file in self.files:
            for batch in pq.ParquetFile(file).iter_batches(_ROWS_PER_GROUP):
                if limit is not None:
                    batch = batch.filter(pc.less_equal(batch["hash"], limit))
                yield from batch["sentence"].to_pylist()


def join_samples(folder: str, group: int, limit: int) -> CorpusSample:
    """Return the sample of all files.

    Args:
        folder: the folder of the samples.
        group: the index of the group of features.
        limit: the size of the sample.
    """
    files = sorted(Path(folder).glob(f"{group:02d}-*.parquet"))
    parts = [json.loads(pq.read_schema(file).metadata[_COUNTS_KEY]) for file in files]
    counts = SentenceCounts(
        **{name: sum(part[name] for part in parts) for name in asdict(SentenceCounts())}
    )
    if counts.used <= limit:
        return CorpusSample(files, counts, None)
    hashes = [pq.read_table(file, columns=["hash"])["hash"].to_numpy() for file in files]
    max_hash = int(np.partition(np.concatenate(hashes), limit - 1)[limit - 1])
    counts.used = limit
    return CorpusSample(files, counts, max_hash)
