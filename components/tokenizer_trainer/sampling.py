"""The sample of a whole split: each worker draws of a file; of what is drawn the lowest stay.

A file's sample is a file, too, with the hash of each sentence. In memory are, however large the
split is, the sample of one file in each worker, and at the end the hashes of all of them.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from components.files import atomic_path
from components.tokenizer_trainer.sentences import Counts, read, sample

_COUNTS = b"counts"
_ROWS_A_GROUP = 1 << 14


@dataclasses.dataclass(frozen=True)
class Sampler:
    """Draws the samples of a file.

    Attributes:
        groups: the features whose sentences are sampled together.
        limit: the sentences of a sample.
        seed: draws others.
        folder: where the samples go; every worker must be able to write there.
    """

    groups: Sequence[Sequence[str]]
    limit: int
    seed: int
    folder: str

    def __call__(self, job: tuple[int, str]) -> None:
        """Writes the sample of each group.

        Args:
            job: the file's number and path.
        """
        shard, path = job
        for number, group in enumerate(self.groups):
            counts = Counts()
            drawn = sample(read(path, group), self.limit, self.seed, counts, shard)
            columns = {
                "hash": pa.array([drawn_hash for drawn_hash, _ in drawn], pa.uint64()),
                "sentence": pa.array([sentence for _, sentence in drawn], pa.binary()),
            }
            told = {_COUNTS: json.dumps(dataclasses.asdict(counts))}
            table = pa.table(columns).replace_schema_metadata(told)
            with atomic_path(_place(self.folder, number, shard)) as temporary:
                pq.write_table(table, temporary, row_group_size=_ROWS_A_GROUP, compression="lz4")


@dataclasses.dataclass(frozen=True)
class Sample:
    """The sample of all files.

    Attributes:
        files: the samples of each.
        counts: of all of them.
        highest: the hash up to which their sentences stay; None where all do.
    """

    files: Sequence[Path]
    counts: Counts
    highest: int | None

    def __iter__(self) -> Iterator[bytes]:
        """The sentences in the order of the corpus."""
        for file in self.files:
            for batch in pq.ParquetFile(file).iter_batches(_ROWS_A_GROUP):
                kept = batch
                if self.highest is not None:
                    kept = batch.filter(pc.less_equal(batch["hash"], self.highest))
                yield from kept["sentence"].to_pylist()


def joined(folder: str, group: int, limit: int) -> Sample:
    """The sample of all files: as if they were one.

    Args:
        folder: where the samples are.
        group: the number of the group.
        limit: the sentences of the sample.
    """
    files = sorted(Path(folder).glob(f"{group:02d}-*.parquet"))
    parts = [json.loads(pq.read_schema(file).metadata[_COUNTS]) for file in files]
    counts = Counts(**{key: sum(part[key] for part in parts) for key in ("read", "empty", "long")})
    counts.used = sum(part["used"] for part in parts)
    if counts.used <= limit:
        return Sample(files, counts, None)
    hashes = [pq.read_table(file, columns=["hash"])["hash"].to_numpy() for file in files]
    highest = int(np.partition(np.concatenate(hashes), limit - 1)[limit - 1])
    counts.used = limit
    return Sample(files, counts, highest)


def _place(folder: str, group: int, shard: int) -> str:
    return os.path.join(folder, f"{group:02d}-{shard:05d}.parquet")
