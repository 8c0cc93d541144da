"""Read a log while another process writes it."""

import contextlib
from collections.abc import Iterator
from pathlib import Path


class LogLines:
    """The lines of a log that grows.

    Args:
        path: The log, which may not exist yet.
    """

    def __init__(self, path: Path):
        self._path = path
        self._offset = 0

    def new(self, to_end: bool = False) -> Iterator[str]:
        """Yield the lines since the last call, without the line feed and spaces at their ends.

        Args:
            to_end: Whether to yield a last line without a line feed, which may be in progress.
        """
        with contextlib.suppress(FileNotFoundError), self._path.open("rb") as file:
            file.seek(self._offset)
            for line in file:
                if not line.endswith(b"\n") and not to_end:
                    break
                self._offset += len(line)
                yield line.decode("utf-8", "replace").rstrip()
