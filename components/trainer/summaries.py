"""Scalars for TensorBoard, written without TensorFlow."""

import itertools
import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

_numbers = itertools.count()


class SummaryWriter:
    """Writes scalars into one event file; TensorBoard reads it while it grows.

    The file is created with the first scalar.

    Args:
        folder: the folder of the run; None: nothing is written.
    """

    def __init__(self, folder: str | Path | None):
        self._folder = Path(folder) if folder is not None else None
        self._records: RecordWriter | None = None

    def write(self, group: str, scalars: Mapping[str, float], step: int) -> None:
        """Write scalars as ``<group>/<name>`` of a step."""
        if self._folder is None:
            return
        if self._records is None:
            self._records = self._open(self._folder)
        values = [
            Summary.Value(tag=f"{group}/{name}", simple_value=value)
            for name, value in scalars.items()
        ]
        self._append(Event(step=step, summary=Summary(value=values)))

    def flush(self) -> None:
        """Write what is buffered into the file."""
        if self._records is not None:
            self._records.flush()

    def close(self) -> None:
        """Close the file."""
        if self._records is not None:
            self._records.close()
            self._records = None

    def _open(self, folder: Path) -> RecordWriter:
        folder.mkdir(parents=True, exist_ok=True)
        # TensorBoard knows event files by this name, and reads those of a folder in its order.
        name = f"events.out.tfevents.{int(time.time()):010}.{socket.gethostname()}"
        path = folder / f"{name}.{os.getpid()}.{next(_numbers)}"
        self._records = RecordWriter(path.open("wb"))
        self._append(Event(file_version="brain.Event:2"))
        return self._records

    def _append(self, event: Event) -> None:
        assert self._records is not None
        event.wall_time = time.time()
        self._records.write(event.SerializeToString())
