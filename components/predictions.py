"""The table of decoded sentences: what one model answered, one row a sentence.

The Predictor writes it as Parquet; the Evaluator, the ServingCheck and the command line read it.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from components.files import atomic_path, atomic_write
from serving.saved_model import Answer

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

CANDIDATE = "candidate.parquet"
PRODUCTION = "production.parquet"
SUMMARY = "predictions.json"
ROWS_A_GROUP = 1024


@dataclasses.dataclass(frozen=True)
class Row:
    """One sentence to decode: where it came from, its source and its reference."""

    source: str
    reference: str
    file: str = ""
    line: int = 0


def write(path: str | os.PathLike[str], rows: Sequence[Row], answers: Sequence[Answer]) -> None:
    """Writes the table as a whole, or not at all."""
    import pyarrow.parquet as pq

    with (
        atomic_path(path) as temporary,
        pq.ParquetWriter(temporary, schema(), compression="zstd") as writer,
    ):
        # A slice at a time: alignments of a large test split are the bulk of its memory.
        for start in range(0, len(rows), ROWS_A_GROUP):
            part = slice(start, start + ROWS_A_GROUP)
            writer.write_table(_table(start, rows[part], answers[part]))


def read(path: str | os.PathLike[str], columns: Sequence[str] | None = None) -> dict[str, list]:
    """The columns of a table as Python lists, in row order.

    Args:
        path: a file that `write` wrote.
        columns: those wanted; all where it is None. Leaving out ``alignment`` is much faster.
    """
    import pyarrow.parquet as pq

    return pq.read_table(path, columns=list(columns) if columns else None).to_pydict()


def rows_at(path: str | os.PathLike[str], indices: Sequence[int]) -> list[dict[str, Any]]:
    """Some rows of a table with all their columns, in the order of ``indices``."""
    import pyarrow.parquet as pq

    return pq.read_table(path).take(list(indices)).to_pylist()


def write_summary(folder: str | os.PathLike[str], summary: dict[str, Any]) -> None:
    """Writes ``predictions.json``."""
    text = json.dumps(summary, indent=2, ensure_ascii=False) + "\n"
    atomic_write(Path(folder) / SUMMARY, text)


def read_summary(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Reads ``predictions.json``."""
    return json.loads((Path(folder) / SUMMARY).read_text(encoding="utf-8"))


def schema() -> pa.Schema:
    """The columns; ``file`` and ``line`` (from 1) say where the row stood in the corpus."""
    import pyarrow as pa

    return pa.schema(
        [
            ("row", pa.int64()),
            ("file", pa.string()),
            ("line", pa.int64()),
            ("source", pa.string()),
            ("reference", pa.string()),
            ("hypothesis", pa.string()),
            ("score", pa.float32()),
            ("source_pieces", pa.list_(pa.string())),
            ("target_pieces", pa.list_(pa.string())),
            ("alignment", pa.list_(pa.list_(pa.float32()))),
        ]
    )


def _table(start: int, rows: Sequence[Row], answers: Sequence[Answer]) -> pa.Table:
    import pyarrow as pa

    columns = {
        "row": list(range(start, start + len(rows))),
        "file": [row.file for row in rows],
        "line": [row.line for row in rows],
        "source": [row.source for row in rows],
        "reference": [row.reference for row in rows],
        "hypothesis": [answer.hypothesis for answer in answers],
        "score": [answer.score for answer in answers],
        "source_pieces": [answer.source_pieces for answer in answers],
        "target_pieces": [answer.target_pieces for answer in answers],
    }
    arrays = [pa.array(values, schema().field(name).type) for name, values in columns.items()]
    return pa.Table.from_arrays([*arrays, _matrices(answers)], schema=schema())


def _matrices(answers: Sequence[Answer]) -> pa.ListArray:
    """The alignments as nested lists, without making a Python object of each number."""
    import numpy as np
    import pyarrow as pa

    weights = [np.asarray(answer.alignment, dtype=np.float32) for answer in answers]
    flat = np.concatenate([w.ravel() for w in weights]) if weights else np.zeros(0, np.float32)
    widths = list(_widths(weights))
    inner_offsets = np.concatenate([[0], np.cumsum(widths, dtype=np.int64)]).astype(np.int32)
    heights = [len(w) for w in weights]
    outer_offsets = np.concatenate([[0], np.cumsum(heights, dtype=np.int64)]).astype(np.int32)
    inner = pa.ListArray.from_arrays(pa.array(inner_offsets), pa.array(flat))
    return pa.ListArray.from_arrays(pa.array(outer_offsets), inner)


def _widths(weights: Sequence[np.ndarray]) -> Iterator[int]:
    for matrix in weights:
        for _ in range(matrix.shape[0]):
            yield matrix.shape[1]
