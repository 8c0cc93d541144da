"""Puts a version into the registry so that no one ever sees a part of it.

It is made under a hidden name beside the versions, brought to the disk, and renamed to the next
number. Who is killed meanwhile leaves only a hidden folder, which the next one removes.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from components.errors import UserError
from components.files import sha256_file
from components.registry.records import RECORD, known_of, read_record
from components.registry.versions import PIN, PROFILE, Registry, number_of
from serving import warmup
from serving.saved_model import IDENTIFIER, IN_MEMORY, TRAINING

WORK, REMOVED = ".pushing-", ".removed-"
_EXTRA = (IDENTIFIER, IN_MEMORY, PROFILE, TRAINING, warmup.FILE)
# TensorFlow writes a random identifier into the first, so that no two exports are ever the same;
# the others say nothing of what the model answers.
NOT_CONTENT = ("fingerprint.pb", RECORD, PIN, *(Path(file).name for file in _EXTRA))


class Withdrawn(Exception):
    """The model is that of ``version``, which production was rolled back from."""

    def __init__(self, version: int):
        super().__init__(version)
        self.version = version


def publish(
    folder: Path, temporary: Path, make_record: Callable[[int | None], dict[str, Any]]
) -> int:
    """Gives a whole model in a ``workplace`` the next number; returns it.

    Which models were withdrawn stands in the newest version's record, and goes from there into
    the next one's.

    Args:
        folder: of the model's versions.
        temporary: the workplace.
        make_record: makes what ``regard.json`` says beside the name, the version and the time;
            asked with the number of the newest version, again where another is published in
            between. What it raises ends the matter.

    Raises:
        UserError: no higher number can be served.
    """
    _sync(temporary)  # before the lock, since it takes longest
    while True:
        # No version is pruned between the look for the highest number and the new name: its
        # number would be given twice.
        with locked(folder.parent, wait=True):
            version = _next(folder)
            newest = Registry(folder.parent).latest(folder.name)
            record = {
                "name": folder.name,
                "version": version,
                "created": datetime.now(timezone.utc).isoformat(timespec="seconds"),
                "withdrawn": withdrawn(folder / str(newest)) if newest is not None else [],
                **make_record(newest),
            }
            if not record["withdrawn"]:
                del record["withdrawn"]
            text = json.dumps(record, indent=2, ensure_ascii=False) + "\n"
            (temporary / RECORD).write_text(text, encoding="utf-8")
            _sync_file(temporary / RECORD)
            sync_folder(temporary)
            try:
                os.rename(temporary, folder / str(version))
            except OSError as error:
                # One that knows no such lock took the number in the meantime.
                if error.errno in (errno.EEXIST, errno.ENOTEMPTY):
                    continue
                raise
            sync_folder(folder)
            return version


def _next(folder: Path) -> int:
    """The next number: higher than any, of a folder without a model or with zeros before it too."""
    numbers = (number_of(entry.name) for entry in folder.iterdir())
    version = max((number for number in numbers if number is not None), default=0) + 1
    if number_of(str(version)) is None:
        raise UserError(
            f"a model server can count no further than version {version - 1}, which is there",
            where=str(folder),
            remedy="Push under another name.",
        )
    return version


def withdrawn(version: Path) -> list[dict[str, Any]]:
    """The models that production was rolled back from, as a version knows it: number and digest."""
    return read_record(version).get("withdrawn", [])


def content_digest(model: Path) -> str:
    """A digest of everything in a SavedModel that it answers by: graph, variables, assets."""
    digest = hashlib.sha256()
    for path in _below(model):
        if path.is_file() and path.name not in NOT_CONTENT:
            digest.update(f"{path.relative_to(model).as_posix()}\0{sha256_file(path)}\n".encode())
    return digest.hexdigest()


def _below(folder: Path) -> list[Path]:
    """The folders and files below a folder, behind links too, sorted; none where it is gone."""

    def refuse(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            raise error

    return sorted(
        Path(parent, name)
        for parent, folders, files in os.walk(folder, onerror=refuse, followlinks=True)
        for name in (*folders, *files)
    )


def digest_of(version: Path) -> str:
    """The digest of a version's model, as it was pushed.

    One of other hands has no record, and is read, and so is one whose record cannot be.
    """
    return known_of(version).get("digest") or content_digest(version)


def remove_leftovers(folder: Path) -> None:
    """Removes what was killed half-way; work that goes on holds a lock and is let alone."""
    for path in (*folder.glob(f"{WORK}*"), *folder.glob(f"{REMOVED}*")):
        with contextlib.suppress(OSError), locked(path):
            discard(path)


def discard(path: Path) -> None:
    """Removes a folder, or the link to one, as far as that can be done."""
    with contextlib.suppress(OSError):
        if path.is_symlink():
            path.unlink()
        else:
            shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def workplace(folder: Path) -> Iterator[Path]:
    """A hidden, locked folder, removed if it is still there at the end.

    The kernel gives the lock back when the process dies, however it dies.
    """
    while True:
        path = folder / f"{WORK}{uuid.uuid4().hex[:12]}"
        path.mkdir()
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(locked(path))
                path.stat()
            except (BlockingIOError, FileNotFoundError):
                # Another one took it for a leftover between the two calls.
                continue
            try:
                yield path
            finally:
                shutil.rmtree(path, ignore_errors=True)
            return


@contextlib.contextmanager
def locked(path: Path, wait: bool = False) -> Iterator[None]:
    """Holds a folder's lock.

    Raises:
        BlockingIOError: another process holds it, and ``wait`` is false.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield
    finally:
        os.close(descriptor)


def copy(model: Path, temporary: Path) -> None:
    """Copies a model into a workplace, without what is told of a version."""
    # copyfile: the new files get the modes of new files, which a server of another user can
    # read. Not hard links: a version must not change with the folder it was made from.
    for path in _below(model):
        target = temporary / path.relative_to(model)
        if path.is_dir():
            target.mkdir()
        elif path.relative_to(model).as_posix() not in (RECORD, PIN):
            shutil.copyfile(path, target)


def sync_folder(folder: Path) -> None:
    """Waits until the names in a folder are on the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync(folder: Path) -> None:
    """Waits until all files and folders below are on the disk."""
    for path in folder.rglob("*"):
        if path.is_dir():
            sync_folder(path)
        else:
            _sync_file(path)
    sync_folder(folder)


def _sync_file(path: Path) -> None:
    with open(path, "rb") as file:
        os.fsync(file.fileno())
