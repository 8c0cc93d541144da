"""Publishes versions atomically.

A version is written to a hidden folder next to the others, synced to the disk, renamed to the next
number, and verified. A killed process leaves only a hidden folder. Another process removes it once
its owner is dead, which is known on the owner's host only; on other hosts, after `MAX_AGE_SECONDS`.
"""

import contextlib
import errno
import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path

from regard.components.registry.mirror import MAX_AGE_SECONDS, STAGING, open_mirror
from regard.components.registry.records import (
    RECORD,
    VersionRecord,
    next_version,
    read_record,
    read_record_or_empty,
)
from regard.components.registry.store import Registry
from regard.core.errors import UserError
from regard.core.locks import Lock, acquire, acquire_existing, host_id
from regard.core.owned_folders import has_mark, remove_content
from regard.serving.content_digest import content_digest, model_tree
from regard.serving.contract import MODEL_FILE, PIN

REMOVED = ".removed-"


class _VersionError(Exception):
    def __init__(self, version: int):
        super().__init__(version)
        self.version = version


class WithdrawnModelError(_VersionError):
    """The model is that of ``version``, which production was rolled back from."""


class _AlreadyPublished(_VersionError):
    """The newest version is this same model."""


def push(
    model: Path,
    registry: Path,
    name: str,
    record: VersionRecord,
    extra_files: Mapping[str, bytes] | None = None,
) -> tuple[int, bool]:
    """Copy a SavedModel to the next version, unless the newest version is the same model.

    Concurrent pushes get different versions.

    Args:
        model: the SavedModel's folder.
        registry: the registry's folder; created if it is missing.
        name: the model's name.
        record: the record, without name, version, time and digest.
        extra_files: files to add to the version, by path.

    Returns:
        The version, and whether it is new.

    Raises:
        WithdrawnModelError: production was rolled back from this model.
        UserError: the newest version's record is not valid, or the model changes meanwhile.
    """
    folder = registry / name
    folder.mkdir(parents=True, exist_ok=True)
    remove_leftovers(folder)
    digest = content_digest(model)
    newest = Registry(registry).latest(name)
    if newest is not None and recorded_digest(folder / str(newest)) == digest:
        return newest, False

    def make_record(newest: int | None) -> VersionRecord:
        fields: dict[str, object] = {"digest": digest}
        if newest is not None:
            if recorded_digest(folder / str(newest)) == digest:  # by a concurrent push
                raise _AlreadyPublished(newest)
            withdrawn = read_record(folder / str(newest)).withdrawn
            for entry in withdrawn:
                if entry.digest == digest:
                    raise WithdrawnModelError(entry.version)
            if withdrawn:
                fields["withdrawn"] = withdrawn
        return record.model_copy(update=fields)

    with staging_folder(folder) as staging:
        copy_model(model, staging)
        if content_digest(staging) != digest:
            remedy = "Nothing was published. Push it again when no process writes it."
            raise UserError("The model has changed while it was copied", str(model), remedy)
        for path, content in (extra_files or {}).items():
            (staging / path).parent.mkdir(parents=True, exist_ok=True)
            (staging / path).write_bytes(content)
        try:
            return publish(folder, staging, make_record).version, True
        except _AlreadyPublished as error:
            return error.version, False


def publish(
    folder: Path, staging: Path, make_record: Callable[[int | None], VersionRecord]
) -> VersionRecord:
    """Give a complete model in a staging folder the next number, and return its record.

    Args:
        folder: the folder of the model's versions.
        staging: the staging folder.
        make_record: a function that returns the record without name, version and time, given the
            newest version; its errors pass.

    Raises:
        UserError: there is no higher number that can be served, or the version was damaged.
    """

    def numbered_record(newest: int | None, version: int) -> VersionRecord:
        created = datetime.now(timezone.utc).isoformat(timespec="seconds")
        fields = {"name": folder.name, "version": version, "created": created}
        return make_record(newest).model_copy(update=fields)

    for path in (*staging.rglob("*"), staging):  # before the lock, because it takes longest
        sync(path)
    # As a server does, so that the version is not pruned before it is verified.
    with acquire_existing(staging / MODEL_FILE, timeout=None, shared=True):
        if mirror := open_mirror(folder.parent):
            record = mirror.push(staging, folder.name, numbered_record)
        else:
            record = _rename(folder, staging, numbered_record)
        version = folder / str(record.version)
        if not record.digest or content_digest(version) == record.digest:
            return record
        with number_lock(folder):
            hidden = hide(version)
    remove_tree(hidden)
    message = f"The files of {folder.name}@{record.version} were damaged while it was published"
    remedy = "It is not in the registry any more. Check the disk, and push the model again."
    raise UserError(message, str(folder), remedy)


def _rename(
    folder: Path, staging: Path, make_record: Callable[[int | None, int], VersionRecord]
) -> VersionRecord:
    """Rename a staging folder to the next number."""
    # The lock keeps others from taking the number, and from pruning the highest version before the
    # new one has its number, which would then be used twice.
    with number_lock(folder):
        os.utime(folder)  # an NFS client then lists it again, with the versions of other hosts
        version = next_version((entry.name for entry in folder.iterdir()), str(folder))
        newest = Registry(folder.parent).latest(folder.name)
        record = make_record(newest, version)
        (staging / RECORD).write_text(record.to_json(), encoding="utf-8")
        sync(staging / RECORD)
        sync(staging)
        try:
            os.rename(staging, folder / str(record.version))
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        else:
            sync(folder)
            return record
    # Locks of this file system hold on one host only, and another host has taken the number.
    return _rename(folder, staging, make_record)


def change_lock(folder: Path) -> Lock:
    """Wait for the lock under which versions of a model are pinned, pruned or copied."""
    return acquire(folder.parent / f".{folder.name}.change-lock", timeout=None)


def number_lock(folder: Path) -> Lock:
    """Wait for the lock under which a version of a model gets its number, or loses it."""
    return acquire(folder.parent / f".{folder.name}.number-lock", timeout=None)


def check_content(version: Path) -> None:
    """Check the files of a version against its record; a folder without a record passes.

    Raises:
        UserError: they were changed or damaged.
    """
    digest = read_record_or_empty(version).digest
    if digest and content_digest(version) != digest:
        raise UserError(
            "The files of this version were changed or damaged after it was published",
            where=str(version),
            remedy=f"Remove the folder, or use another version: `regard registry list "
            f"{version.parent.name}`.",
        )


def recorded_digest(version: Path) -> str:
    """Return the digest of a version's model from its record, otherwise from its content."""
    return read_record_or_empty(version).digest or content_digest(version)


def remove_leftovers(folder: Path) -> None:
    """Remove the hidden folders of removed versions and of pushes that do not run any more.

    Each has a record, which is written first and removed last; any other folder is not touched.
    """
    if mirror := open_mirror(folder.parent):
        mirror.remove_leftovers(folder.name)
    for path in folder.glob(f"{REMOVED}*"):
        if has_mark(path, RECORD):
            remove_tree(path)
        else:  # if it is empty, a removal was killed after it had removed the record
            with contextlib.suppress(OSError):
                path.rmdir()
    for path in folder.glob(f"{STAGING}*"):
        # Otherwise the folder is in use, or another process has just removed it.
        with contextlib.suppress(OSError):
            if not has_mark(path, RECORD):
                path.rmdir()  # if it is empty, a push was killed before it wrote the record
                continue
            files = [path, *path.rglob("*")]
            age = time.time() - max(file.lstat().st_mtime for file in files)
            is_own = bool(host_id()) and path.name.startswith(f"{STAGING}{host_id()}.")
            if is_own or age > MAX_AGE_SECONDS:
                with _lock_staging(path):
                    hidden = hide(path)
                remove_tree(hidden)


def hide(path: Path) -> Path:
    """Give a folder a hidden name, and return it, so that nobody sees the folder in part.

    A push that still writes to the folder cannot publish it any more.
    """
    hidden = path.with_name(f"{REMOVED}{path.name.strip('.')}-{uuid.uuid4().hex[:8]}")
    os.rename(path, hidden)
    sync(path.parent)  # otherwise a power failure could restore a part of it under the old name
    # Last, because others remove the local copy as soon as the store does not have the version.
    if mirror := open_mirror(path.parent.parent):
        mirror.remove(path)
    return hidden


def remove_tree(path: Path) -> None:
    """Remove a folder with a record as far as possible; nothing else."""
    with contextlib.suppress(OSError):
        if has_mark(path, RECORD):
            remove_content(path, RECORD)


@contextlib.contextmanager
def staging_folder(folder: Path) -> Iterator[Path]:
    """Create a hidden folder with a locked record, and remove it at the end if it still exists.

    The folder's name starts with the host, and the kernel releases the lock when the process dies.
    """
    while True:
        path = folder / f"{STAGING}{host_id()}.{uuid.uuid4().hex[:12]}"
        path.mkdir()
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(_lock_staging(path))
            except (BlockingIOError, FileNotFoundError):
                # Another process took the folder for a leftover before it was locked.
                continue
            try:
                yield path
            finally:
                stack.close()  # first, because NFS keeps the name of an open file
                shutil.rmtree(path, ignore_errors=True)
            return


def _lock_staging(path: Path) -> Lock:
    """Lock the record in a staging folder; the process that was killed may not have created it."""
    (path / RECORD).touch()
    return acquire_existing(path / RECORD)


def copy_model(model: Path, target: Path) -> None:
    """Copy a model into an existing folder, without its record and pin."""
    # copyfile gives new files the default mode, readable by a server of another user. Hard links
    # would let a version change with the folder that it was made from.
    for path in model_tree(model):
        copy = target / path.relative_to(model)
        if path.is_dir():
            copy.mkdir()
        elif path.relative_to(model).as_posix() not in (RECORD, PIN):
            shutil.copyfile(path, copy)


def sync(path: Path) -> None:
    """Wait until a file, or the entries of a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
