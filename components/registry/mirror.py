"""A registry in object storage, behind a local copy of its folder.

The layout in the store is that of a local registry, so TensorFlow Serving can read it as well. A
store has no rename. A push therefore uploads the model under a hidden name, claims a number by
creating its record on condition that there is none, copies the files within the store, and writes
``saved_model.pb`` last: Regard ignores a version without it, and TensorFlow Serving cannot load it.

The local copy holds the small files of every version. The others are copied when they are needed.
"""

from __future__ import annotations

import contextlib
import math
import re
import shutil
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

from regard.components.registry.records import (
    RECORD,
    VersionRecord,
    next_version,
    parse_number,
)
from regard.core.errors import EnvironmentFault, UserError
from regard.core.locks import acquire
from regard.core.owned_folders import has_mark
from regard.core.storage import SOURCE, ObjectState, ObjectStore, is_copy, local_state
from regard.serving.contract import MODEL_FILE, PIN, PROFILE

STAGING = ".pushing-"
MAX_AGE_SECONDS = 24 * 3600.0  # of the newest file of a push of another host
_SMALL = (RECORD, PIN, PROFILE, MODEL_FILE)
_VERSION = re.compile(r"(?P<version>[^./][^/]*/[0-9]+)/(?P<file>.+)", re.DOTALL)
_MAX_ATTEMPTS, _MAX_PULLS = 100, 3
REFRESH_SECONDS = 10.0


def open_mirror(folder: Path) -> RegistryMirror | None:
    """Return the mirror in a registry's folder; None if the folder is the registry itself."""
    return RegistryMirror(folder) if (folder / SOURCE).is_file() else None


class RegistryMirror:
    """The local copy of a registry, from ``registry_folder``.

    Args:
        folder: the local copy.

    Attributes:
        folder: the local copy.
        uri: the registry's folder in the store.

    Raises:
        UserError: the store cannot be used, as for all methods.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self.uri = (folder / SOURCE).read_text(encoding="utf-8")
        self._store = ObjectStore(self.uri, "registry")
        self._objects: dict[str, dict[str, ObjectState]] = {}
        self._linked = -math.inf

    def pull(self) -> None:
        """Copy the small files of new versions, and remove the copies of removed versions."""
        for attempt in range(1, _MAX_PULLS + 1):
            try:
                self._pull()
                return
            except UserError as error:  # a version may have been pruned since it was listed
                if not isinstance(error.__cause__, FileNotFoundError) or attempt == _MAX_PULLS:
                    raise

    def _pull(self) -> None:
        # Otherwise a process with an older list could remove a version that another one copies.
        with acquire(self.folder / ".pull-lock", timeout=None):
            self._objects = {}
            for name, state in self._store.find().items():
                if match := _VERSION.fullmatch(name):
                    self._objects.setdefault(match["version"], {})[match["file"]] = state
            whole = {name: files for name, files in self._objects.items() if MODEL_FILE in files}
            for path in self.folder.glob(f"[!.]*/[!.]*/{MODEL_FILE}"):
                files = whole.get(path.parent.relative_to(self.folder).as_posix(), {})
                if files.get(MODEL_FILE) != local_state(path):
                    if is_copy(path) or has_mark(path.parent, RECORD):
                        path.unlink()  # first, so that nobody sees the version in part
                        shutil.rmtree(path.parent, ignore_errors=True)
                elif PIN not in files:
                    (path.parent / PIN).unlink(missing_ok=True)
            for is_model in (False, True):
                small = {
                    f"{version}/{file}": files[file]
                    for version, files in whole.items()
                    for file in _SMALL
                    if file in files and (file == MODEL_FILE) == is_model
                }
                self._store.download(small, self.folder)

    def complete(self, version: Path) -> None:
        """Copy the files of a version that are not copied yet."""
        name = self._name(version)
        self._store.download(self._objects.get(name, {}), version, name)

    def size(self, version: Path) -> int:
        """Return the bytes of a version's files."""
        return sum(state.size for state in self._objects.get(self._name(version), {}).values())

    def link(self, name: str, select: Callable[[Sequence[int]], Sequence[int]]) -> Path:
        """Return a folder with links to complete copies of the selected versions of a model.

        A server calls it often, but the store is listed only every ``REFRESH_SECONDS``.
        """
        folder = self.folder / ".served" / name
        if time.monotonic() - self._linked < REFRESH_SECONDS:
            return folder
        self._linked = time.monotonic()
        self.pull()
        folder.mkdir(parents=True, exist_ok=True)
        for number in select(self._numbers(name)):
            version = self.folder / name / str(number)
            self.complete(version)
            with contextlib.suppress(FileExistsError):
                (folder / version.name).symlink_to(version)
        return folder

    def push(
        self, staging: Path, name: str, make_record: Callable[[int | None, int], VersionRecord]
    ) -> VersionRecord:
        """Publish a model, copy it back, and return its record.

        Args:
            staging: the model.
            name: its name.
            make_record: a function that returns the record, given the newest version and the new
                number; its errors pass.
        """
        source = f"{name}/{STAGING}{uuid.uuid4().hex}"
        try:
            # First: it tells what a killed push leaves from the folders of others.
            self._store.create(f"{source}/{RECORD}", b"")
            files = self._store.upload(staging, source)
            # The record in the staging folder is only its lock.
            parts = [file for file in files if file not in (RECORD, MODEL_FILE)], [MODEL_FILE]
            for _ in range(_MAX_ATTEMPTS):
                self.pull()
                newest = max(self._numbers(name), default=None)
                record = make_record(newest, next_version(self._names(name), self.uri))
                target = f"{name}/{record.version}"
                if not self._store.create(f"{target}/{RECORD}", record.to_json().encode()):
                    continue
                try:
                    for part in parts:
                        for file in part:
                            self._store.copy(f"{source}/{file}", f"{target}/{file}")
                        self.pull()
                        others = {*self._numbers(name)} - {record.version}
                        if max(others, default=None) != newest:
                            break
                    else:
                        break
                except BaseException:
                    with contextlib.suppress(UserError):
                        self.remove(self.folder / target)
                    raise
                # Another push was faster, and the record is out of date.
                if part == [MODEL_FILE]:  # servers may have seen the number: do not free it
                    self._store.remove(f"{target}/{MODEL_FILE}")
                else:
                    self.remove(self.folder / target)
            else:
                message = f"{name} cannot be pushed, because other processes push it all the time."
                raise EnvironmentFault(message, self.uri, "Push it again later.")
        finally:
            with contextlib.suppress(UserError):  # the next push or prune removes it after a day
                self._store.remove(source)
        self.complete(self.folder / target)
        return record

    def remove(self, version: Path) -> None:
        """Remove a version from the store, or what a failed push has written of it."""
        name = self._name(version)
        self._store.remove(f"{name}/{MODEL_FILE}")  # first, so that nobody sees it in part
        self._store.remove(name)

    def remove_leftovers(self, name: str) -> None:
        """Remove what killed pushes of a model have left, after a day."""
        objects = self._store.find(name)
        # Of each folder, the age of any file counts.
        files = {path.partition("/")[0]: path for path in objects}
        for folder, file in files.items():
            # Without a record, the files are not those of a push.
            has_record = f"{folder}/{RECORD}" in objects
            is_part = folder.isdecimal() and f"{folder}/{MODEL_FILE}" not in objects
            is_probe = folder in objects and not objects[folder].size
            is_staging = folder.startswith(STAGING)
            if (has_record and (is_part or is_staging)) or (is_staging and is_probe):
                # A push that still runs may have removed the object meanwhile.
                with contextlib.suppress(UserError):
                    if self._store.age(f"{name}/{file}") > MAX_AGE_SECONDS:
                        self._store.remove(f"{name}/{folder}")

    def pin(self, version: Path, is_pinned: bool) -> None:
        """Write or remove the pin of a version."""
        pin = f"{self._name(version)}/{PIN}"
        if is_pinned:
            self._store.create(pin, b"")
        else:
            self._store.remove(pin)

    def check_writable(self, name: str) -> None:
        """Write and remove an object, so that a run does not fail only when it publishes."""
        probe = f"{name}/{STAGING}{uuid.uuid4().hex}"
        self._store.create(probe, b"")
        self._store.remove(probe)

    def _name(self, version: Path) -> str:
        return version.relative_to(self.folder).as_posix()

    def _names(self, name: str) -> list[str]:
        """Return the numbered folders of a model, also those that are not whole."""
        versions = (version.rpartition("/") for version in self._objects)
        return [number for parent, _, number in versions if parent == name]

    def _numbers(self, name: str) -> list[int]:
        """Return the versions of a model."""
        numbers = {number: parse_number(number) for number in self._names(name)}
        return [
            version
            for number, version in numbers.items()
            if version is not None
            and number == str(version)
            and MODEL_FILE in self._objects[f"{name}/{number}"]
        ]
