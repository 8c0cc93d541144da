"""The table of answered rows: what one model answered, one row an example.

The Predictor writes it as Parquet; the Evaluator, the ServingCheck and the command line read it.
Its columns are ``row``, ``file`` and ``line`` (from 1: where the row stood in the corpus), the
inputs and the extras by their names (of an image its path), ``references`` (a list),
``hypothesis``, ``score``, ``size`` (by which rows are put into buckets), and the model's other
outputs by theirs.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from components.files import atomic_path, atomic_write
from models.tasks.features import Feature
from serving.saved_model import Answer

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

CANDIDATE = "candidate.parquet"
PRODUCTION = "production.parquet"
SUMMARY = "predictions.json"
ROWS_A_GROUP = 1024
# The columns that every table has; the others are the features and the model's outputs.
OWN = ("row", "file", "line", "references", "hypothesis", "score", "size")
# What tasks call their models' outputs, which are columns too.
RESERVED = frozenset(
    {
        *OWN,
        *("alignment", "cut", "length", "pieces", "positions", "points_length"),
        *("caption", "similarity", "summary", "translation"),
        *(f"{side}_{what}" for side in ("source", "target") for what in ("pieces", "length")),
        *(f"{side}_{what}" for side in ("first", "second") for what in ("pieces", "length")),
        *("source_cut", "target_cut", "first_weights", "second_weights"),
        *("forced_alignment", "forced_source_pieces", "forced_target_pieces"),
        *("forced_score", "forced_length", "forced_cut"),
    }
)


@dataclasses.dataclass(frozen=True)
class Row:
    """One row to answer.

    Attributes:
        inputs: what the model is asked, by feature: a text, a number, points as ``[n, 2]``, the
            bytes of an image file.
        references: the right answers.
        extras: the features that only the evaluation reads.
        paths: where the images came from, by feature.
        file: the file that the row came from.
        line: its line there, from 1.
    """

    inputs: Mapping[str, Any]
    references: Sequence[Any]
    extras: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    paths: Mapping[str, str] = dataclasses.field(default_factory=dict)
    file: str = ""
    line: int = 0

    def column(self, feature: Feature) -> Any:
        """What the table keeps of an input or an extra."""
        if feature.kind == "image":
            return self.paths[feature.name]
        return (self.inputs if feature.role == "input" else self.extras)[feature.name]


def write(
    path: str | os.PathLike[str],
    features: Sequence[Feature],
    rows: Sequence[Row],
    answers: Sequence[Answer],
) -> None:
    """Writes the table as a whole, or not at all.

    Args:
        path: the file.
        features: those of the task; they say what the columns hold.
        rows: what was asked.
        answers: of the signature that tells most, one a row.
    """
    import pyarrow.parquet as pq

    columns = schema(features, answers)
    with (
        atomic_path(path) as temporary,
        pq.ParquetWriter(temporary, columns, compression="zstd") as writer,
    ):
        # A slice at a time: alignments of a large test split are the bulk of its memory.
        for start in range(0, len(rows), ROWS_A_GROUP):
            part = slice(start, start + ROWS_A_GROUP)
            numbers = range(start, start + len(rows[part]))
            writer.write_table(table(features, numbers, rows[part], answers[part], columns))


def join(path: str | os.PathLike[str], windows: Sequence[Sequence[Path]]) -> None:
    """Writes one table of many, as a whole or not at all, and as `write` would have written it.

    Args:
        path: the file.
        windows: files with rows of the table; those of a window hold the next rows of it, in any
            order among them. One window at a time is in memory, and there is at least one. A column
            that a file has not is null for its rows.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    schemas = [pq.read_schema(file).remove_metadata() for files in windows for file in files]
    columns = pa.unify_schemas(schemas)
    with (
        atomic_path(path) as temporary,
        pq.ParquetWriter(temporary, columns, compression="zstd") as writer,
    ):
        for files in windows:
            parts = [pq.ParquetFile(file).read().replace_schema_metadata() for file in files]
            rows = pa.concat_tables([columns.empty_table(), *parts], promote_options="default")
            writer.write_table(rows.sort_by("row"), row_group_size=ROWS_A_GROUP)


def read(path: str | os.PathLike[str], columns: Sequence[str] | None = None) -> dict[str, list]:
    """The columns of a table as Python lists, in row order.

    Args:
        path: a file that `write` wrote.
        columns: those wanted; all where it is None. Leaving out alignments is much faster.
    """
    import pyarrow.parquet as pq

    # Not read_table, which imports what reads folders, for a seventh of a second.
    with pq.ParquetFile(path) as file:
        wanted = file.schema_arrow.names if columns is None else list(columns)
        if not file.num_row_groups:  # it has no way to read no rows
            return file.schema_arrow.empty_table().select(wanted).to_pydict()
        return file.read(columns=wanted).select(wanted).to_pydict()


def column_names(path: str | os.PathLike[str]) -> list[str]:
    """The names of a table's columns."""
    import pyarrow.parquet as pq

    return list(pq.read_schema(path).names)


def row_count(path: str | os.PathLike[str]) -> int:
    """How many rows a table has."""
    import pyarrow.parquet as pq

    return pq.read_metadata(path).num_rows


def rows_at(
    path: str | os.PathLike[str], indices: Sequence[int], columns: Sequence[str] | None = None
) -> list[dict[str, Any]]:
    """Some rows of a table, in the order of ``indices``; no more of it is in memory at once.

    Args:
        path: a file that `write` wrote.
        indices: the rows' places in the table.
        columns: those wanted; all where it is None.
    """
    import pyarrow.parquet as pq

    found: dict[int, dict[str, Any]] = {}
    with pq.ParquetFile(path) as file:
        first = 0
        for group in range(file.num_row_groups):
            behind = first + file.metadata.row_group(group).num_rows
            wanted = sorted({index for index in indices if first <= index < behind})
            if wanted:
                table = file.read_row_group(group, None if columns is None else list(columns))
                taken = table.take([index - first for index in wanted]).to_pylist()
                found.update(zip(wanted, taken, strict=True))
            first = behind
    return [found[index] for index in indices]


def write_summary(folder: str | os.PathLike[str], summary: dict[str, Any]) -> None:
    """Writes ``predictions.json``."""
    text = json.dumps(summary, indent=2, ensure_ascii=False) + "\n"
    atomic_write(Path(folder) / SUMMARY, text)


def read_summary(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Reads ``predictions.json``."""
    return json.loads((Path(folder) / SUMMARY).read_text(encoding="utf-8"))


def schema(features: Sequence[Feature], answers: Sequence[Answer]) -> pa.Schema:
    """The columns and their types; the outputs of no answers are not known.

    Raises:
        ValueError: a feature or an output is called like another column.
    """
    import pyarrow as pa

    (reference,) = (feature for feature in features if feature.role == "reference")
    fields = [
        ("row", pa.int64()),
        ("file", pa.string()),
        ("line", pa.int64()),
        *((feature.name, _feature_type(feature)) for feature in _kept(features)),
        ("references", pa.list_(_value_type(reference.kind))),
        ("hypothesis", _value_type(reference.kind)),
        ("score", pa.float32()),
        ("size", pa.int64()),
    ]
    if answers:
        fields += [(name, _output_type(answers[0], name)) for name in _other_outputs(answers[0])]
    names = [name for name, _ in fields]
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(f"two columns of the predictions are called {', '.join(twice)}")
    return pa.schema(fields)


def size(row: Row, answer: Answer) -> int | None:
    """How long a row is, in the unit of the model's contract; None where that has none."""
    told = answer.contract["size"]
    if told is None:
        return None
    length = answer.outputs[told["output"]] if "output" in told else len(row.inputs[told["input"]])
    return int(length) - int(told.get("minus", 0))


def _kept(features: Sequence[Feature]) -> list[Feature]:
    """The features that have a column of their own."""
    return [feature for feature in features if feature.role != "reference"]


def _other_outputs(answer: Answer) -> list[str]:
    own = (answer.contract["answer"], answer.contract["score"])
    return [name for name in answer.outputs if name not in own]


def _feature_type(feature: Feature) -> pa.DataType:
    import pyarrow as pa

    kind = _value_type(feature.kind)
    return pa.list_(kind) if feature.several else kind


def _value_type(kind: str) -> pa.DataType:
    import pyarrow as pa

    return {
        "text": pa.string(),
        "image": pa.string(),
        "number": pa.float64(),
        "positions": pa.list_(pa.int64()),
        "points": pa.list_(pa.list_(pa.float64())),
    }[kind]


def _output_type(answer: Answer, name: str) -> pa.DataType:
    """The type that holds an output of any row, read off that of one."""
    import numpy as np
    import pyarrow as pa

    value = answer.outputs[name]
    if isinstance(value, np.ndarray):
        return _lists(pa.from_numpy_dtype(value.dtype), value.ndim)
    if isinstance(value, list):  # texts
        contract = answer.contract
        dimensions = contract["signatures"][contract["detail"]]["outputs"][name]
        return _lists(pa.string(), len(dimensions))
    return {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}[type(value)]


def _lists(kind: pa.DataType, depth: int) -> pa.DataType:
    import pyarrow as pa

    for _ in range(depth):
        kind = pa.list_(kind)
    return kind


def table(
    features: Sequence[Feature],
    numbers: Sequence[int],
    rows: Sequence[Row],
    answers: Sequence[Answer],
    columns: pa.Schema | None = None,
) -> pa.Table:
    """Some rows of the table, at least one.

    Args:
        features: those of the task.
        numbers: of each row its place in the table.
        rows: what was asked.
        answers: one a row.
        columns: their `schema`, where it is known.
    """
    import numpy as np
    import pyarrow as pa

    columns = schema(features, answers) if columns is None else columns
    values: dict[str, list[Any]] = {
        "row": list(numbers),
        "file": [row.file for row in rows],
        "line": [row.line for row in rows],
        **{feature.name: [row.column(feature) for row in rows] for feature in _kept(features)},
        "references": [list(row.references) for row in rows],
        "hypothesis": [answer.hypothesis for answer in answers],
        "score": [answer.score for answer in answers],
        "size": [size(row, answer) for row, answer in zip(rows, answers, strict=True)],
    }
    for name in columns.names[len(values) :]:
        values[name] = [answer.outputs[name] for answer in answers]
    return pa.Table.from_arrays(
        [
            _nested(values[field.name])
            if isinstance(values[field.name][0], np.ndarray)
            else pa.array(values[field.name], field.type)
            for field in columns
        ],
        schema=columns,
    )


def _nested(values: Sequence[np.ndarray]) -> pa.Array:
    """Arrays of equal dimensions as nested lists, without making an object of each number."""
    import numpy as np
    import pyarrow as pa

    nested = pa.array(np.concatenate([value.ravel() for value in values]))
    for axis in reversed(range(values[0].ndim)):
        # So many lists of this depth, each as long as the array is along its axis.
        lengths = [
            np.full(int(np.prod(value.shape[:axis])), value.shape[axis], np.int64)
            for value in values
        ]
        ends = np.cumsum(np.concatenate(lengths))
        offsets = np.concatenate([[0], ends]).astype(np.int32)
        nested = pa.ListArray.from_arrays(pa.array(offsets), nested)
    return nested
