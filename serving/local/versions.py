"""The versions of a model: as folders, and as what becomes of them in a server."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from serving.local.batching import Batcher
from serving.local.model_config import Batching
from serving.local.servable import Servable
from serving.local.status import ServingError

START, LOADING, AVAILABLE, UNLOADING, END = "START", "LOADING", "AVAILABLE", "UNLOADING", "END"
log = logging.getLogger("regard.serve")


@dataclass
class Version:
    """One version of a model, from the moment it is wanted on.

    Attributes:
        number: the name of its folder.
        state: one of ``START``, ``LOADING``, ``AVAILABLE``, ``UNLOADING`` and ``END``.
        error: why it ended, if it could not be loaded.
        servable: what answers, while it is available.
        batching: how requests to it are put together; None: each is answered alone.
        descriptor: of its folder, while it is held.
    """

    number: int
    state: str = START
    error: ServingError | None = None
    servable: Servable | None = None
    batching: Batching | None = None
    failures: int = 0
    retry_at: float = 0.0
    users: int = 0
    batchers: dict[str, Batcher] = field(default_factory=dict)
    descriptor: int | None = None

    def hold(self, path: Path) -> None:
        """Shares the lock of the version's folder, by which others know that it is in use.

        The kernel gives it back when the process dies. Where a file system has no locks, the
        version is served all the same.
        """
        with contextlib.suppress(OSError):
            self.descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
            fcntl.flock(self.descriptor, fcntl.LOCK_SH)

    def release(self) -> None:
        """Lets go of the folder."""
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None


def versions_in(base_path: Path) -> Mapping[int, Path]:
    """The folders of versions: those whose names are whole numbers; ``00012`` is 12."""
    try:
        names = sorted(entry.name for entry in base_path.iterdir() if entry.is_dir())
    except OSError as error:
        log.error("%s: %s", base_path, error.strerror)
        return {}
    return {int(name): base_path / name for name in names if name.isascii() and name.isdecimal()}
