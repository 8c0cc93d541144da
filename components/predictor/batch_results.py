"""The results of single batches as files, and the progress that they show.

A file is Parquet with some rows of the table and with statistics in its metadata. It is renamed to
its final name when it is complete, so that counting files gives the progress, and a batch that a
runner processes twice does no harm.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import pickle
import threading
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from apache_beam.utils.shared import Shared

from regard.core import events
from regard.core.errors import pickle_error
from regard.core.files import atomic_path, atomic_write

if TYPE_CHECKING:
    import pyarrow as pa

NODE = "Predictor"
POLL_SECONDS = 0.5
_SUFFIX = ".parquet"
_STATS = b"stats"
_FAILURE = "failure.pickle"


@dataclasses.dataclass(frozen=True)
class BatchStats:
    """How a batch was decoded.

    Attributes:
        rows: the number of rows.
        seconds: the time of the model.
        worker: the id of the worker; batches with the same id ran one after another.
        load_seconds: the worker's time to load the model.
        device: TensorFlow's device, ``CPU`` or ``GPU``.
        truncated_rows: the number of truncated inputs.
        truncated_tokens: the number of tokens that were cut off; of very long inputs at least.
    """

    rows: int
    seconds: float
    worker: str
    load_seconds: float
    device: str
    truncated_rows: int
    truncated_tokens: int


def batch_path(folder: Path, batch: int) -> Path:
    """Return the file of a batch."""
    return folder / f"{batch:08d}{_SUFFIX}"


def write_batch(folder: Path, batch: int, table: pa.Table, stats: BatchStats) -> None:
    """Write the file of a batch atomically."""
    import pyarrow.parquet as pq

    with atomic_path(batch_path(folder, batch)) as temporary:
        metadata = {_STATS: json.dumps(dataclasses.asdict(stats))}
        options = {"compression": "lz4", "write_page_checksum": True}
        pq.write_table(table.replace_schema_metadata(metadata), temporary, **options)


def read_stats(folder: Path, known: Mapping[int, BatchStats]) -> dict[int, BatchStats]:
    """Return the statistics of all complete batches; only new files are read."""
    import pyarrow.parquet as pq

    files = {int(file.stem): file for file in folder.glob(f"[!.]*{_SUFFIX}")}
    new = {
        batch: BatchStats(**json.loads(pq.read_schema(files[batch]).metadata[_STATS]))
        for batch in sorted(files.keys() - known.keys())
    }
    return {**known, **new}


@contextlib.contextmanager
def record_failure(folder: Path) -> Iterator[None]:
    """Write errors of the block to a file, because runners pass on only the traceback's text."""
    try:
        yield
    except Exception as error:
        with contextlib.suppress(OSError):  # on a full disk the error itself matters more
            atomic_write(folder / _FAILURE, pickle_error(error))
        raise


def read_failure(folder: Path) -> Exception | None:
    """Return the error that a worker recorded; None if there is none."""
    file = folder / _FAILURE
    return pickle.loads(file.read_bytes()) if file.exists() else None


@contextlib.contextmanager
def raise_failure(folder: Path) -> Iterator[None]:
    """Raise the error that a worker recorded in the block instead of Beam's; release its model."""
    (folder / _FAILURE).unlink(missing_ok=True)  # of a killed run
    try:
        yield
    except Exception as error:
        if (failure := read_failure(folder)) is not None:
            raise failure from error
        raise
    finally:
        # Beam keeps the last shared object of this process alive.
        Shared().acquire(lambda: None)


def decoding_seconds(stats: Collection[BatchStats]) -> float:
    """Return the time of the slowest worker, without loading; workers run in parallel."""
    by_worker: dict[str, float] = {}
    for batch in stats:
        by_worker[batch.worker] = by_worker.get(batch.worker, 0.0) + batch.seconds
    return max(by_worker.values(), default=0.0)


def rows_per_second(stats: Collection[BatchStats]) -> float:
    """Return the speed of all workers together, without loading."""
    seconds = decoding_seconds(stats)
    return sum(batch.rows for batch in stats) / seconds if seconds else 0.0


@dataclasses.dataclass(frozen=True)
class ProgressScope:
    """What progress events describe.

    Attributes:
        label: the model's display name.
        noun: the name of the rows, in the plural.
        rows: the number of rows.
        start: the fraction of the node's progress at the start.
        end: the fraction at the end.
        node: the name of the component.
    """

    label: str
    noun: str
    rows: int
    start: float = 0.0
    end: float = 1.0
    node: str = NODE


@contextlib.contextmanager
def report_progress(folder: Path, scope: ProgressScope) -> Iterator[None]:
    """Emit progress events while the block runs, and a last one if it succeeds.

    The progress is read from files, because workers of a cluster cannot write events.

    Args:
        folder: the folder of the batches' files.
        scope: the subject of the events.
    """
    stopped = threading.Event()
    stats = earlier = read_stats(folder, {})  # of a killed run, whose speed is not that of this one

    def emit_if_changed() -> None:
        nonlocal stats
        count = len(stats)
        stats = read_stats(folder, stats)
        if len(stats) > count:
            new = [stats[batch] for batch in stats if batch not in earlier]
            rows = sum(batch.rows for batch in stats.values())
            _emit(rows, rows_per_second(new), scope)

    def poll() -> None:
        while not stopped.wait(POLL_SECONDS):
            emit_if_changed()

    thread = threading.Thread(target=poll, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()
    emit_if_changed()


def _emit(rows: int, speed: float, scope: ProgressScope) -> None:
    counts = f"{rows:,} of {scope.rows:,} {scope.noun}"
    events.emit(
        "progress",
        node=scope.node,
        text=f"{scope.label}: {counts}, {speed:,.0f} {scope.noun}/s",
        fraction=scope.start + (scope.end - scope.start) * rows / scope.rows,
        sentences_per_second=round(speed, 1),
    )
