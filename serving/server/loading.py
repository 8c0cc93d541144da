"""Load a version of a model, and decide when to try again after a failure.

Others may copy a version file by file, and nothing says when they have finished. So a version is
used only if its files do not change while it is loaded and tried. One that cannot be used is tried
again with a growing pause as long as its files change, and then a few times more.
"""

import time
from dataclasses import dataclass
from pathlib import Path

from grpc import StatusCode

from regard.serving.server.errors import ServingError
from regard.serving.server.options import ManagerOptions
from regard.serving.server.servable import LoadServable, Servable
from regard.serving.whole_model import FolderSnapshot, take_snapshot

_FIRST_PAUSE = 1.0  # seconds
# The first computation of a model is much slower than the later ones. Until it ends, no other
# version is loaded.
_TRY_SECONDS = 600.0


@dataclass
class LoadAttempts:
    """The failed attempts to load a version.

    Attributes:
        failures: how many there were since the files last changed.
        snapshot: the files at the last scan; None if they cannot be read.
        pause: how long to wait after the next failure if the files change, in seconds.
        retry_at: when to try again, in seconds of the monotonic clock.
        retry_changed_at: when to try again if the files change.
    """

    failures: int = 0
    snapshot: FolderSnapshot | None = None
    pause: float = _FIRST_PAUSE
    retry_at: float = 0.0
    retry_changed_at: float = 0.0

    def is_over(self, options: ManagerOptions) -> bool:
        """Whether only changed files are a reason to try again."""
        return self.failures > options.load_retries

    def is_due(self, snapshot: FolderSnapshot | None, options: ManagerOptions) -> bool:
        """Whether to try now.

        Args:
            snapshot: the files now; None if they cannot be read.
            options: pauses, and the number of attempts.
        """
        if snapshot != self.snapshot:
            self.snapshot, self.failures = snapshot, 0
            self.retry_at = min(self.retry_at, self.retry_changed_at)
        return not self.is_over(options) and time.monotonic() >= self.retry_at

    def add_failure(self, options: ManagerOptions) -> None:
        """Count a failed attempt."""
        now = time.monotonic()
        self.failures += 1
        self.pause = _FIRST_PAUSE if self.failures > 1 else self.pause
        self.retry_at = now + options.retry_seconds
        self.retry_changed_at = now + min(self.pause, options.retry_seconds)
        self.pause = min(2 * self.pause, options.retry_seconds)


def snapshot_or_none(path: Path) -> FolderSnapshot | None:
    """Return the state of a version's files; None if they cannot be read."""
    try:
        return take_snapshot(path)
    except OSError:
        return None


def load_servable(load: LoadServable, name: str, path: Path, only: str | None) -> Servable:
    """Load a version, try it on a row, and warm it up.

    Args:
        load: creates the servable.
        name: the model's name.
        path: the version's folder.
        only: the signature to warm up; None: all.

    Raises:
        ServingError: the version cannot be used.
    """
    try:
        snapshot = take_snapshot(path)
    except OSError as error:
        message = f"Version {path.name} of model {name} cannot be read: {error.strerror}."
        raise ServingError(StatusCode.UNAVAILABLE, message) from None
    servable = load(name, path)
    try:
        servable.try_one_row(_TRY_SECONDS)
        servable.warm_up(only)
        check_unchanged(name, path, snapshot)
    except BaseException:
        servable.close()
        raise
    return servable


def check_unchanged(name: str, path: Path, snapshot: FolderSnapshot | None) -> None:
    """Check that nobody has changed the files of a version.

    Args:
        name: the model's name.
        path: the version's folder.
        snapshot: its files earlier.

    Raises:
        ServingError: they have changed.
    """
    if snapshot_or_none(path) != snapshot:
        message = f"Version {path.name} of model {name} is still being written."
        raise ServingError(StatusCode.UNAVAILABLE, message)
