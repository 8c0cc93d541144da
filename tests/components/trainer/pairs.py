"""Transformed rows as Preprocess writes them, without TFX."""

from pathlib import Path

import pyarrow as pa

from regard.components.common.row_files import LENGTHS, write_rows

COLUMNS = ("source_ids", "target_ids", "target_lengths", LENGTHS)
SCHEMA = pa.schema({name: pa.large_list(pa.int64()) for name in COLUMNS})


def pairs_batch(pairs: list[tuple[list[int], list[int]]]) -> pa.RecordBatch:
    """Pairs of token ids as columns."""
    rows = [(s, t, [len(t)], [max(len(s), len(t)) + 1 if s and t else 0]) for s, t in pairs]
    columns = dict(zip(COLUMNS, map(list, zip(*rows, strict=True)), strict=True))
    return pa.RecordBatch.from_pydict(columns, SCHEMA)


def write_pairs(path: Path, pairs: list[tuple[list[int], list[int]]], batch_rows: int = 64) -> str:
    """Write pairs of token ids to a file, and return its path."""
    parts = (pairs[i : i + batch_rows] for i in range(0, len(pairs), batch_rows))
    write_rows(path, SCHEMA, map(pairs_batch, parts))
    return str(path)
