"""Versions of a model: as folders, as a request names them, and as the server tracks them."""

import asyncio
import contextlib
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from grpc import StatusCode

from regard.core.locks import Lock, acquire_existing
from regard.serving.contract import MODEL_FILE
from regard.serving.server.batching import Batcher
from regard.serving.server.errors import ServingError
from regard.serving.server.loading import LoadAttempts
from regard.serving.server.servable import Servable

START, LOADING, AVAILABLE, UNLOADING, END = "START", "LOADING", "AVAILABLE", "UNLOADING", "END"
_LOCK_SECONDS = 10.0
_MAX_VERSION = 2**63 - 1
log = logging.getLogger("regard.serve")


@dataclass(frozen=True)
class ModelSpec:
    """How a request names a version of a model.

    Attributes:
        model: the model's name.
        version: the version's number; None for the newest.
        label: the version's label, instead of its number.
    """

    model: str
    version: int | None = None
    label: str = ""


@dataclass
class Version:
    """One version of a model and its life cycle in the server.

    Attributes:
        number: the name of its folder.
        state: ``START``, ``LOADING``, ``AVAILABLE``, ``UNLOADING`` or ``END``.
        error: why loading failed.
        servable: the loaded model, while the version is available.
        attempts: failed attempts to load it.
        requests: requests in progress.
        batchers: the batchers by signature and by whether their requests are small, created on
            demand.
        model_lock: the lock on its model file, while it is loaded.
    """

    number: int
    state: str = START
    error: ServingError | None = None
    servable: Servable | None = None
    attempts: LoadAttempts = field(default_factory=LoadAttempts)
    requests: int = 0
    batchers: dict[tuple[str, bool], Batcher] = field(default_factory=dict)
    model_lock: Lock | None = None

    @property
    def loaded(self) -> Servable:
        """The servable of an available version."""
        assert self.servable is not None
        return self.servable

    @contextlib.contextmanager
    def hold(self) -> Iterator[Servable]:
        """Keep the version loaded during a request."""
        self.requests += 1
        try:
            yield self.loaded
        finally:
            self.requests -= 1

    async def unload(self) -> None:
        """Free the model after the last request."""
        while self.requests:
            await asyncio.sleep(0.01)
        for batcher in self.batchers.values():
            await batcher.close()
        self.batchers.clear()
        self.loaded.close()
        self.servable = None
        self.unlock()
        self.state = END
        log.info("unloaded version %s", self.number)

    def lock(self, path: Path) -> None:
        """Take a shared lock on the version's model file, so that `registry prune` keeps it.

        A folder that is mounted read-only can be locked, too. The kernel releases the lock when the
        process dies. On a file system without locks the version is served unlocked.

        Raises:
            ServingError: another process holds the lock, for example to remove the version.
        """
        try:
            self.model_lock = acquire_existing(path / MODEL_FILE, _LOCK_SECONDS, shared=True)
        except BlockingIOError:
            message = f"Version {path.name} is locked by another process."
            raise ServingError(StatusCode.UNAVAILABLE, message) from None
        except OSError:
            pass

    def unlock(self) -> None:
        """Release the lock on the model file."""
        if self.model_lock is not None:
            self.model_lock.release()
            self.model_lock = None


def list_versions(base_path: Path) -> Mapping[int, Path]:
    """Return the version folders, whose names are whole numbers; ``00012`` is version 12."""
    try:
        names = sorted(entry.name for entry in base_path.iterdir() if entry.is_dir())
    except OSError as error:
        log.error("%s: %s", base_path, error.strerror)
        return {}
    numbers = {name: int(name) for name in names if name.isascii() and name.isdecimal()}
    return {number: base_path / name for name, number in numbers.items() if number <= _MAX_VERSION}


@dataclass(frozen=True)
class PredictResult:
    """The outputs of one request.

    Attributes:
        version: the number of the version that computed them.
        signature: the name of the signature.
        outputs: arrays by name.
    """

    version: int
    signature: str
    outputs: Mapping[str, np.ndarray]
