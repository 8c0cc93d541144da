"""The table of predictions: one row per example, with the outputs of one model.

The Predictor writes it as Parquet; the Evaluator, the ServingCheck and the command line read it.
Its columns are ``row``, ``file`` and ``line`` (from 1: the row's position in the corpus), the
inputs and extras by name (for an image its path), ``references`` (a list), ``hypothesis``,
``score``, ``size`` (the length for bucketing), and the model's other outputs by name.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from regard.core.features import Feature
from regard.core.files import atomic_path, write_json
from regard.serving.contract import Contract

if TYPE_CHECKING:
    import pyarrow as pa

    from regard.serving.saved_model import Prediction

CANDIDATE = "candidate.parquet"
PRODUCTION = "production.parquet"
SUMMARY = "predictions.json"
ROW_GROUP_SIZE = 1024
# The columns of every table; the others are features and outputs.
FIXED_COLUMNS = ("row", "file", "line", "references", "hypothesis", "score", "size")


class ModelSummary(TypedDict):
    """A decoded model: its folder, and its loading time, decoding time and speed."""

    path: str
    load_seconds: float
    seconds: float
    sentences_per_second: float


class PredictionsSummary(TypedDict, total=False):
    """The content of ``predictions.json``.

    ``split`` is that of the examples, ``production`` is the folder of the model in production if it
    was decoded, ``production_error`` says why it was not, ``device`` is ``CPU`` or ``GPU``, and
    ``contract`` that of the new model.
    """

    split: str
    rows: int
    sentences_per_second: float
    production: str | None
    production_version: str | None
    production_error: str | None
    batch_size: int
    device: str
    models: dict[str, ModelSummary]
    contract: Contract


@dataclasses.dataclass(frozen=True)
class Row:
    """A row of the split that is decoded.

    Attributes:
        inputs: the model's inputs by feature: a text, a number, points as ``[n, 2]``, or the bytes
            of an image file.
        references: the references.
        extras: the features that only the evaluation reads.
        paths: the paths of images by feature.
        file: the file of the corpus.
        line: the line in that file, from 1.
    """

    inputs: Mapping[str, Any]
    references: Sequence[Any]
    extras: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    paths: Mapping[str, str] = dataclasses.field(default_factory=dict)
    file: str = ""
    line: int = 0

    def column_value(self, feature: Feature) -> Any:
        """Return the value of an input or an extra in the table."""
        if feature.kind.names_file:
            return self.paths[feature.name]
        values = self.inputs if feature.role == "input" else self.extras
        return values[feature.name]


def robustness_table(kind: str) -> str:
    """Return the name of the table with the candidate's outputs for changed inputs."""
    return f"robustness-{kind}.parquet"


def write(
    path: str | os.PathLike[str],
    features: Sequence[Feature],
    rows: Sequence[Row],
    predictions: Sequence[Prediction],
) -> None:
    """Write a table atomically.

    Args:
        path: the file.
        features: the task's features, which determine the columns.
        rows: the rows.
        predictions: the prediction of the detail signature for each row.
    """
    import pyarrow.parquet as pq

    table = make_table(features, range(len(rows)), rows, predictions)
    with atomic_path(path) as temporary:
        pq.write_table(table, temporary, row_group_size=ROW_GROUP_SIZE, compression="zstd")


def join(path: str | os.PathLike[str], windows: Sequence[Sequence[Path]]) -> None:
    """Join files to one table, written atomically and exactly as `write` would have written it.

    Args:
        path: the file.
        windows: files with parts of the table, at least one. The files of a window contain the
            next rows, in any order. One window is in memory at a time. Columns that a file lacks
            are null for its rows.
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
            writer.write_table(rows.sort_by("row"), row_group_size=ROW_GROUP_SIZE)


def read(path: str | os.PathLike[str], columns: Sequence[str] | None = None) -> dict[str, list]:
    """Return columns of a table as Python lists, in row order.

    Args:
        path: the file.
        columns: the names of the columns; None: all. Reading is much faster without alignments.
    """
    import pyarrow.parquet as pq

    # read_table would import support for folders, which takes a seventh of a second.
    with pq.ParquetFile(path) as file:
        names = file.schema_arrow.names if columns is None else list(columns)
        if not file.num_row_groups:  # ParquetFile cannot read zero rows
            return file.schema_arrow.empty_table().select(names).to_pydict()
        return file.read(columns=names).select(names).to_pydict()


def column_names(path: str | os.PathLike[str]) -> list[str]:
    """Return the names of a table's columns."""
    import pyarrow.parquet as pq

    return list(pq.read_schema(path).names)


def row_count(path: str | os.PathLike[str]) -> int:
    """Return the number of a table's rows."""
    import pyarrow.parquet as pq

    return pq.read_metadata(path).num_rows


def rows_at(
    path: str | os.PathLike[str], indices: Sequence[int], columns: Sequence[str] | None = None
) -> list[dict[str, Any]]:
    """Return some rows of a table, in the order of ``indices``, with little memory.

    Args:
        path: the file.
        indices: the rows' indices in the table.
        columns: the names of the columns; None: all.
    """
    import pyarrow.parquet as pq

    rows: dict[int, dict[str, Any]] = {}
    with pq.ParquetFile(path) as file:
        start = 0
        for group in range(file.num_row_groups):
            end = start + file.metadata.row_group(group).num_rows
            in_group = sorted({index for index in indices if start <= index < end})
            if in_group:
                table = file.read_row_group(group, None if columns is None else list(columns))
                values = table.take([index - start for index in in_group]).to_pylist()
                rows.update(zip(in_group, values, strict=True))
            start = end
    return [rows[index] for index in indices]


def write_summary(folder: str | os.PathLike[str], summary: PredictionsSummary) -> None:
    """Write ``predictions.json``."""
    write_json(Path(folder) / SUMMARY, summary)


def read_summary(folder: str | os.PathLike[str]) -> PredictionsSummary:
    """Read ``predictions.json``."""
    return json.loads((Path(folder) / SUMMARY).read_text(encoding="utf-8"))


def _row_size(row: Row, prediction: Prediction) -> int | None:
    """Return the length of a row in the unit of the contract; None if it has none."""
    entry = prediction.contract["size"]
    if entry is None:
        return None
    is_output = "output" in entry
    length = prediction.outputs[entry["output"]] if is_output else len(row.inputs[entry["input"]])
    return int(length) - int(entry.get("minus", 0))


def _feature_type(feature: Feature) -> pa.DataType:
    import pyarrow as pa

    kind = feature.kind.arrow_type()
    return pa.list_(kind) if feature.multiple else kind


def _output_type(prediction: Prediction, name: str) -> pa.DataType:
    """Return the type of an output in any row, inferred from one row."""
    import numpy as np
    import pyarrow as pa

    value = prediction.outputs[name]
    if isinstance(value, np.ndarray):
        return _list_type(pa.from_numpy_dtype(value.dtype), value.ndim)
    if isinstance(value, list):  # texts
        contract = prediction.contract
        dimensions = contract["signatures"][contract["detail"]]["outputs"][name]
        return _list_type(pa.string(), len(dimensions))
    return {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}[type(value)]


def _list_type(kind: pa.DataType, depth: int) -> pa.DataType:
    import pyarrow as pa

    for _ in range(depth):
        kind = pa.list_(kind)
    return kind


def make_table(
    features: Sequence[Feature],
    numbers: Sequence[int],
    rows: Sequence[Row],
    predictions: Sequence[Prediction],
) -> pa.Table:
    """Return some rows of the table; without rows, the columns of outputs are missing.

    Args:
        features: the task's features.
        numbers: the row numbers.
        rows: the rows.
        predictions: the prediction of each row.

    Raises:
        ValueError: a feature or an output has the name of another column.
    """
    import pyarrow as pa

    (reference,) = (feature for feature in features if feature.role == "reference")
    kind = reference.kind.arrow_type()
    pairs = zip(rows, predictions, strict=True)
    sizes = [_row_size(row, prediction) for row, prediction in pairs]
    columns: list[tuple[str, pa.DataType, list[Any]]] = [
        ("row", pa.int64(), list(numbers)),
        ("file", pa.string(), [row.file for row in rows]),
        ("line", pa.int64(), [row.line for row in rows]),
        *(
            (feature.name, _feature_type(feature), [row.column_value(feature) for row in rows])
            for feature in features
            if feature.role != "reference"
        ),
        ("references", pa.list_(kind), [list(row.references) for row in rows]),
        ("hypothesis", kind, [prediction.hypothesis for prediction in predictions]),
        ("score", pa.float32(), [prediction.score for prediction in predictions]),
        ("size", pa.int64(), sizes),
    ]
    if predictions:
        contract, outputs = predictions[0].contract, predictions[0].outputs
        for name in outputs:
            if name not in (contract["answer"], contract["score"]):
                values = [prediction.outputs[name] for prediction in predictions]
                columns.append((name, _output_type(predictions[0], name), values))
    names = [name for name, _, _ in columns]
    if len(set(names)) < len(names):
        duplicates = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(f"two columns of the predictions are called {', '.join(duplicates)}")
    return pa.Table.from_arrays(
        [pa.array(map(_to_list, values), kind) for _, kind, values in columns],
        schema=pa.schema([(name, kind) for name, kind, _ in columns]),
    )


def _to_list(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value
