"""The answers to a batch, as a file of their own until all are there.

A part is Parquet and holds some rows of the table; how they were answered stands in its metadata.
It is renamed into its place when it is whole, so that a part that is there is done: whoever wants
to know how far the work is counts them, and a batch that a runner gives out twice does no harm.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from components.errors import UserError
from components.files import atomic_path, atomic_write
from serving.saved_model import SavedModelError, SourceRefused

if TYPE_CHECKING:
    import pyarrow as pa

_SUFFIX = ".parquet"
_TOLD = b"told"
_FAILURE = "failure.json"
# Errors that stay what they are.
_KNOWN = {kind.__name__: kind for kind in (UserError, SavedModelError, SourceRefused)}


class WorkerError(RuntimeError):
    """What went wrong where the model was asked: the kind of the error, and its message."""


@dataclasses.dataclass(frozen=True)
class Told:
    """How a batch was answered.

    Attributes:
        rows: how many.
        seconds: what the model took.
        worker: who asked it; no two of one name work at the same time.
        load_seconds: what this one waited for the model to be loaded.
        device: where TensorFlow computed, ``CPU`` or ``GPU``.
        cut_rows: how many rows were not read to their end.
        cut_pieces: how much of them was not read.
    """

    rows: int
    seconds: float
    worker: str
    load_seconds: float
    device: str
    cut_rows: int
    cut_pieces: int


def path(folder: Path, batch: int) -> Path:
    """The file of a batch."""
    return folder / f"{batch:08d}{_SUFFIX}"


def write(folder: Path, batch: int, table: pa.Table, told: Told) -> None:
    """Writes a part as a whole, or not at all."""
    import pyarrow.parquet as pq

    with atomic_path(path(folder, batch)) as temporary:
        metadata = {_TOLD: json.dumps(dataclasses.asdict(told))}
        pq.write_table(table.replace_schema_metadata(metadata), temporary, compression="lz4")


def done(folder: Path, known: dict[int, Told]) -> dict[int, Told]:
    """Of each batch that is done how it was answered; of those not ``known`` it is read."""
    import pyarrow.parquet as pq

    there = {int(file.stem): file for file in folder.glob(f"[!.]*{_SUFFIX}")}
    new = sorted(there.keys() - known.keys())
    read = {batch: json.loads(pq.read_schema(there[batch]).metadata[_TOLD]) for batch in new}
    return {**known, **{batch: Told(**told) for batch, told in read.items()}}


@contextlib.contextmanager
def failing(folder: Path) -> Iterator[None]:
    """Leaves word of what goes wrong, for runners hand on no more than a traceback's text."""
    try:
        yield
    except Exception as error:
        told = list(error.args) if isinstance(error, UserError) else [str(error)]
        content = {"kind": type(error).__name__, "told": told}
        with contextlib.suppress(OSError):  # on a full disk the error itself matters more
            atomic_write(folder / _FAILURE, json.dumps(content))
        raise


def failure(folder: Path) -> Exception | None:
    """What went wrong, as the error that a worker raised; None where none left word."""
    file = folder / _FAILURE
    if not file.exists():
        return None
    content = json.loads(file.read_text(encoding="utf-8"))
    kind, told = content["kind"], content["told"]
    if kind in _KNOWN:
        return _KNOWN[kind](*told)
    return WorkerError(f"{kind}: {told[0]}")
