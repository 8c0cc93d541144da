"""The folder that ``prepare`` writes and every other command reads.

It holds NumPy files and JSON only, so that a machine without the corpora, without SentencePiece's
trainer and without TensorFlow can use it.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.gpu.sizes import SIZES, Size
from regard.components.common.row_files import LENGTHS, write_rows
from regard.components.trainer.batches import Batches
from regard.core.ragged import Ragged
from regard.models import tasks

SPLITS = ("train", "eval", "test")
SIDES = ("source", "target")
MULTI30K, TATOEBA = "multi30k", "tatoeba"
REFERENCE = "reference.npz"
TOKENIZER, REFERENCES = "multi30k.tokenizer.model", "multi30k.test.txt"
_SETTINGS = "settings.json"


@dataclasses.dataclass(frozen=True)
class Settings:
    """What the folder was prepared with.

    Attributes:
        size: the name of the ``Size``.
        vocabulary_sizes: the size of the vocabulary of each corpus, shared by its two sides.
        model: the section ``model`` of the configuration that part ``multi30k`` trains.
        training: its section ``training``.
        search: its section ``search``.
        commit: the commit of Regard that prepared the folder; empty if it is not known.
        versions: the versions of the libraries that computed the reference.
    """

    size: str
    vocabulary_sizes: Mapping[str, int]
    model: Mapping[str, Any]
    training: Mapping[str, Any]
    search: Mapping[str, Any]
    commit: str
    versions: Mapping[str, str]

    @property
    def sizes(self) -> Size:
        """The size of the benchmark."""
        return SIZES[self.size]

    def write(self, folder: Path) -> None:
        """Write the settings into the folder."""
        (folder / _SETTINGS).write_text(json.dumps(dataclasses.asdict(self), indent=1), "utf-8")

    @classmethod
    def read(cls, folder: Path) -> Settings:
        """Read what ``write`` has written."""
        return cls(**json.loads((folder / _SETTINGS).read_text("utf-8")))


def write_corpus(path: Path, splits: Mapping[str, Mapping[str, Sequence[Sequence[int]]]]) -> None:
    """Write the ids of a corpus, without EOS, as 16-bit numbers.

    Args:
        path: the npz file.
        splits: for each split the rows of each side.
    """
    arrays = {}
    for split, sides in splits.items():
        for side, rows in sides.items():
            ids = [token for row in rows for token in row]
            arrays[f"{split}_{side}"] = np.asarray(ids, np.uint16)
            arrays[f"{split}_{side}_lengths"] = np.asarray([len(row) for row in rows], np.uint16)
    with open(path, "wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)


def read_split(folder: Path, corpus: str, split: str) -> dict[str, Ragged]:
    """Return the ids of both sides of a split, without EOS."""
    with np.load(folder / f"{corpus}.npz", allow_pickle=False) as arrays:
        return {
            side: Ragged.from_lengths(
                arrays[f"{split}_{side}"].astype(np.int32),
                arrays[f"{split}_{side}_lengths"].astype(np.int64),
            )
            for side in SIDES
        }


def pack_rows(sides: Mapping[str, Ragged], length: int, count: int) -> dict[str, Ragged]:
    """Cut the tokens of a corpus into rows of one length, so that batches have no padding.

    Args:
        sides: the ids of both sides.
        length: the tokens of a row, with the EOS that batches append.
        count: the number of rows; the corpus is repeated if it is too short.
    """
    packed = {}
    for side, rows in sides.items():
        values = np.resize(rows.values, count * (length - 1))
        packed[side] = Ragged.from_lengths(values, np.full(count, length - 1))
    return packed


def write_row_file(path: Path, sides: Mapping[str, Ragged]) -> None:
    """Write pairs as Preprocess writes them, for the product's ``Batches``."""
    lengths = np.stack([sides[side].lengths for side in SIDES])
    training = np.where(lengths.min(axis=0) > 0, lengths.max(axis=0) + 1, 0)
    ones = np.ones(len(training), np.int64)
    columns = {
        "source_ids": sides["source"],
        "target_ids": sides["target"],
        "target_lengths": Ragged.from_lengths(lengths[1], ones),
        LENGTHS: Ragged.from_lengths(training, ones),
    }
    arrays = [
        pa.LargeListArray.from_arrays(rows.splits.astype(np.int64), rows.values.astype(np.int64))
        for rows in columns.values()
    ]
    table = pa.table(arrays, names=list(columns))
    write_rows(path, table.schema, table.to_batches(max_chunksize=1024))


def make_batches(
    path: Path,
    sides: Mapping[str, Ragged],
    batch_tokens: int,
    max_length: int,
    seed: int,
    growth: float,
) -> Batches:
    """Return the product's batches of some pairs, in the fixed shapes that JAX compiles.

    Args:
        path: the row file, which is written.
        sides: the ids of both sides.
        batch_tokens: as in ``Batches``.
        max_length: as in ``Batches``.
        seed: as in ``Batches``.
        growth: as in ``Batches``.
    """
    write_row_file(path, sides)
    return Batches(
        [str(path)],
        tasks.get_network("translation"),
        batch_tokens=batch_tokens,
        max_length=max_length,
        seed=seed,
        fixed_shapes=True,
        growth=growth,
    )
