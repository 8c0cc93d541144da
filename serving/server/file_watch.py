"""Read the files of a server, such as certificates, and use them while it runs when they change."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from regard.core.errors import NotFoundError, UserError
from regard.core.regular_files import read_regular

# Changed files are used when two successive checks find the same contents, and an error is logged
# when two find it: before that, a program may still be replacing the files.
_CHECK_SECONDS = 10.0
log = logging.getLogger("regard.serve")
Contents = TypeVar("Contents")


class FileWatch(Generic[Contents]):
    """Checks files regularly, and uses their contents when they change.

    If changed files cannot be used, the earlier contents stay in use, and the reason is logged.

    Args:
        subject: what the files contain, in the plural, for the log.
        contents: the contents in use.
        read: reads the contents.
        use: begins to use changed contents, and returns those that are in use then. After an error,
            the next check calls it again.
    """

    def __init__(
        self,
        subject: str,
        contents: Contents,
        read: Callable[[], Contents],
        use: Callable[[Contents], Contents],
    ):
        self._subject, self._read, self._use = subject, read, use
        self._current_contents = self._last_contents = contents
        self._last_error, self._checks_with_error = "", 0
        self._closing = threading.Event()

    def start(self) -> None:
        """Check the files regularly, in a thread that may end with the process."""
        threading.Thread(target=self._keep_checking, name=self._subject, daemon=True).start()

    def close(self) -> None:
        """End the checks."""
        self._closing.set()

    def check(self) -> None:
        """Check the files once."""
        try:
            self._use_changed_files()
            error = ""
        except Exception as raised:  # the next check may find files that can be used
            error = " ".join(str(raised).split())
        is_repeated, self._last_error = error == self._last_error, error
        self._checks_with_error = self._checks_with_error + 1 if is_repeated else 1
        if error and self._checks_with_error == 2:
            log.error("The earlier %s stay in use: %s", self._subject, error)

    def _keep_checking(self) -> None:
        while not self._closing.wait(_CHECK_SECONDS):
            self.check()

    def _use_changed_files(self) -> None:
        contents = self._read()
        is_complete, self._last_contents = contents == self._last_contents, contents
        if is_complete and contents != self._current_contents:
            self._current_contents = self._use(contents)
            log.info("The changed %s are in use.", self._subject)


def read_file(file: Path, max_bytes: int) -> bytes:
    """Return the content of a file.

    Raises:
        UserError: it cannot be read, or is larger than ``max_bytes``.
    """
    try:
        return read_regular(file, max_bytes)
    except FileNotFoundError:
        raise NotFoundError("The file does not exist.", str(file), "Correct the path.") from None
    except OSError as error:
        message = f"The file cannot be read: {error.strerror}."
        remedy = "Give the path of a file that the server may read."
        raise UserError(message, str(file), remedy) from None
