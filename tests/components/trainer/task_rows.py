"""Transformed rows of every kind of batch, as Preprocess writes them, with random content."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from regard.components.common.row_files import LENGTHS, write_rows

VOCABULARY_SIZE = 12
# The largest length of a training row.
MAX_LENGTH = 10
_FLOATS = ("points", "target")


def write_splits(folder: Path, task: str) -> dict[str, list[str]]:
    """Write the splits of a task, and return the arguments of ``TrainingData`` for their files."""
    random = np.random.default_rng(0)
    files = {}
    for split, count in (("train", 70), ("eval", 20)):
        rows = [_ROWS[task](random, 2 + number % (MAX_LENGTH - 2)) for number in range(count)]
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        kinds = {name: pa.float32() if name in _FLOATS else pa.int64() for name in columns}
        schema = pa.schema({name: pa.large_list(kind) for name, kind in kinds.items()})
        path = folder / f"{split}.arrow"
        write_rows(path, schema, [pa.RecordBatch.from_pydict(columns, schema)])
        files[f"{split}_files"] = [str(path)]
    return files


def _ids(random: Any, length: int) -> list[int]:
    return random.integers(4, VOCABULARY_SIZE, length).tolist()


def _translation(random: Any, length: int) -> dict[str, list[Any]]:
    """Return a row whose target is its source, with links between equal positions."""
    ids = _ids(random, length)
    units = list(range(length))
    return {
        "source_ids": ids,
        "target_ids": ids,
        "target_lengths": [length],
        "source_units": units,
        "target_units": units,
        "links": np.repeat(units, 2).tolist(),
        LENGTHS: [length + 1],
    }


def _pointer(random: Any, length: int) -> dict[str, list[Any]]:
    """Return points, and their order from left to right."""
    points = random.uniform(-1, 1, (length, 2)).astype("float32")
    return {
        "points": points.ravel().tolist(),
        "points_length": [length],
        "answer_ids": (4 + points[:, 0].argsort()).tolist(),
        LENGTHS: [length + 1],
    }


def _similarity(random: Any, length: int) -> dict[str, list[Any]]:
    """Return two texts and a number."""
    first, second = _ids(random, length), _ids(random, int(random.integers(1, length + 1)))
    score = len({*first} & {*second}) / len({*first} | {*second})
    return {"first_ids": first, "second_ids": second, "target": [score], LENGTHS: [length]}


def _span(random: Any, length: int) -> dict[str, list[Any]]:
    """Return a passage, a question, and the first and last token of an answer."""
    first, last = sorted(random.integers(0, length, 2).tolist())
    return {
        "passage_ids": _ids(random, length),
        "question_ids": _ids(random, 3),
        "answer_tokens": [first, last],
        LENGTHS: [length],
    }


_ROWS = {
    "translation": _translation,
    "pointer": _pointer,
    "similarity": _similarity,
    "span": _span,
}
