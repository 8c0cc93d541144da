"""A log of requests: a JSON line for each sampled row, and for each sampled request that failed.

Lines are written by a thread of their own. If they cannot be written, or not quickly enough, they
are counted and dropped: the log never delays or fails a request.
"""

import contextlib
import errno
import json
import logging
import math
import os
import random
import threading
import time
from collections import deque
from collections.abc import Mapping
from datetime import datetime, timezone
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler, WatchedFileHandler
from pathlib import Path
from typing import Any

from regard.serving.server.batching import Tensors, count_rows
from regard.serving.server.metrics import Metrics
from regard.serving.server.options import RequestLogOptions

COUNTER = "request_log_count"
_MAX_TEXT = 4096  # characters of all texts of a row
_MAX_WAITING = 8192  # lines
# Waking the thread for each line added 10% to the processor time of a request.
_WRITE_SECONDS, _MAX_LINES = 0.05, 1000
# Without O_NONBLOCK, a FIFO that nobody reads would block the thread for ever.
_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK
_LINE_START = b'{"time": '
_NO_LOG = "The file exists, and is no request log"
log = logging.getLogger("regard.serve")


class _LogFile(RotatingFileHandler, WatchedFileHandler):
    """A rotated file that only its owner may read. Errors are raised, not printed.

    Files that are no request logs are neither extended nor replaced.
    """

    dev = ino = -1  # of the open file

    def _open(self) -> TextIOWrapper:
        stream = os.fdopen(os.open(self.baseFilename, _FLAGS, 0o600), "a", encoding="ascii")
        size = os.fstat(stream.fileno()).st_size
        if size and not _LINE_START.startswith(os.pread(stream.fileno(), len(_LINE_START), 0)):
            stream.close()
            raise FileExistsError(errno.EEXIST, _NO_LOG, self.baseFilename)
        # A process that was killed, or a full disk, may have left a part of a line.
        if size and os.pread(stream.fileno(), 1, size - 1) != b"\n":
            stream.write("\n")
        return stream

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, to a new file if the current one was moved or removed."""
        self.reopenIfNeeded()
        super().emit(record)

    def doRollover(self) -> None:
        """Rename the files, unless one of the names is taken by a file of someone else."""
        for number in range(1, self.backupCount + 1):
            path = Path(f"{self.baseFilename}.{number}")
            if os.path.lexists(path) and not _is_request_log(path):
                raise FileExistsError(errno.EEXIST, _NO_LOG, str(path))
        super().doRollover()

    def handleError(self, record: logging.LogRecord) -> None:
        """Raise the error that is being handled."""
        raise


def _is_request_log(path: Path) -> bool:
    """Return whether a path is a file, not a link, that is empty or begins like a request log."""
    if path.is_symlink() or not path.is_file():
        return False
    with open(path, "rb") as file:
        return _LINE_START.startswith(file.read(len(_LINE_START)))


class RequestLog:
    """Logs a random sample of the rows of requests.

    Args:
        options: what is logged, and where.
        metrics: receives the number of lines by result.

    Raises:
        OSError: the file cannot be opened.
    """

    def __init__(self, options: RequestLogOptions, metrics: Metrics):
        self._options, self._metrics, self._is_reported = options, metrics, False
        # The target of a link is rotated, not the link, which may be /dev/stdout.
        path = options.file.resolve() if options.file.is_file() else options.file
        self._file = _LogFile(path, maxBytes=options.max_bytes, backupCount=options.files - 1)
        self._lines, self._closing = deque[str](), threading.Event()
        for result in ("written", "failed", "dropped"):
            self._count(result, 0)
        self._thread = threading.Thread(target=self._write, name="request-log", daemon=True)
        self._thread.start()

    def add(
        self, started: float, request: Mapping[str, Any], inputs: Tensors, outputs: Tensors
    ) -> None:
        """Log the sampled rows of a request.

        Args:
            started: its time of the monotonic clock.
            request: what all rows share.
            inputs: arrays by name; none for a request that failed.
            outputs: arrays by name.
        """
        now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        milliseconds = round(1000 * (time.monotonic() - started), 3)
        head = {"time": now, **request, "milliseconds": milliseconds}
        for row in range(max(count_rows(inputs), 1)):
            if random.random() >= self._options.sample:
                continue
            if len(self._lines) >= _MAX_WAITING:
                self._count("dropped", 1, "lines arrive faster than the disk takes them")
                continue
            self._lines.append(json.dumps({**head, **self._describe(row, inputs, outputs)}))

    def close(self) -> None:
        """Write the waiting lines, for a few seconds at most."""
        self._closing.set()
        self._thread.join(timeout=5.0)

    def _describe(self, row: int, inputs: Tensors, outputs: Tensors) -> dict[str, Any]:
        """Return the lengths of a row's texts, its numbers, and its texts if they are logged."""
        fields: dict[str, Any] = {"inputs": {}, "outputs": {}}
        texts: dict[str, str] = {}
        # Other numbers tell what a row contains, as texts do.
        numbers = {"inputs": ("_length",), "outputs": ("score", "confidence", "cut", "length")}
        for side, tensors in (("inputs", inputs), ("outputs", outputs)):
            for name, tensor in tensors.items():
                value = tensor.item(row) if tensor.ndim == 1 and row < len(tensor) else None
                if isinstance(value, bytes):
                    with contextlib.suppress(UnicodeDecodeError):  # an image
                        texts[name] = value.decode()
                        fields[side][name] = len(texts[name])
                elif name.endswith(numbers[side]) and isinstance(value, int | float):
                    fields[name] = value if math.isfinite(value) else None
        if self._options.texts and sum(map(len, texts.values())) <= _MAX_TEXT:
            fields["texts"] = texts
        return fields

    def _write(self) -> None:
        while not self._closing.wait(_WRITE_SECONDS) or self._lines:
            lines = [self._lines.popleft() for _ in range(min(len(self._lines), _MAX_LINES))]
            if not lines:
                continue
            try:
                self._file.emit(logging.makeLogRecord({"msg": "\n".join(lines)}))
                self._count("written", len(lines))
            except Exception as error:
                with contextlib.suppress(OSError):
                    self._file.close()  # opened again for the next lines
                self._count("failed", len(lines), str(error))
        self._file.close()

    def _count(self, result: str, lines: int, error: str = "") -> None:
        self._metrics.count(COUNTER, lines, status=result)
        if error and not self._is_reported:
            self._is_reported = True
            log.error("The request log loses lines, which the metrics count: %s", error)
