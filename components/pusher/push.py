"""Puts a model folder into the registry so that no one ever sees a part of it.

The copy is made under a hidden name beside the versions, brought to the disk, and renamed to the
next number. A push that is killed leaves only a hidden folder, which the next push removes.
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
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from components.files import sha256_file
from components.registry import RECORD, Registry, numbered, read_record
from serving import warmup
from serving.saved_model import IDENTIFIER, IN_MEMORY, TRAINING

PREFIX = ".pushing-"
_EXTRA = (IDENTIFIER, IN_MEMORY, TRAINING, warmup.FILE)
# TensorFlow writes a random identifier into the first, so that no two exports are ever the same;
# the others say nothing of what the model answers.
NOT_CONTENT = ("fingerprint.pb", RECORD, *(Path(file).name for file in _EXTRA))


def push(
    model: Path,
    registry: Path,
    name: str,
    record: dict[str, Any],
    code: str = "",
    extra: Mapping[str, bytes] | None = None,
) -> tuple[int, bool]:
    """Copies a SavedModel to the next version, unless the newest version is the same model.

    Several processes may push at once: each gets a version of its own.

    Args:
        model: the SavedModel's folder.
        registry: the registry's folder; made if it is not there.
        name: the model's name.
        record: what ``regard.json`` says beside the name, version, time and digest.
        code: a digest of the pushing code, for ``regard.json``.
        extra: what is put beside the model, by path.

    Returns:
        The version, and whether it is new.
    """
    folder = registry / name
    folder.mkdir(parents=True, exist_ok=True)
    remove_leftovers(folder)
    digest = content_digest(model)
    newest = Registry(registry).latest(name)
    if newest is not None and digest_of(folder / str(newest)) == digest:
        return newest, False
    with _workplace(folder) as temporary:
        _copy(model, temporary)
        for path, content in (extra or {}).items():
            (temporary / path).parent.mkdir(parents=True, exist_ok=True)
            (temporary / path).write_bytes(content)
        while True:
            # Every number counts here, even that of a folder that holds no model.
            version = max(numbered(folder), default=0) + 1
            full = {
                "name": name,
                "version": version,
                "created": datetime.now(timezone.utc).isoformat(timespec="seconds"),
                **record,
                "digest": digest,
            }
            full.setdefault("code", code)
            text = json.dumps(full, indent=2, ensure_ascii=False) + "\n"
            (temporary / RECORD).write_text(text, encoding="utf-8")
            _sync(temporary)
            try:
                os.rename(temporary, folder / str(version))
            except OSError as error:
                # Another push took the number in the meantime.
                if error.errno in (errno.EEXIST, errno.ENOTEMPTY):
                    continue
                raise
            _sync_folder(folder)
            return version, True


def content_digest(model: Path) -> str:
    """A digest of everything in a SavedModel that it answers by: graph, variables, assets."""
    digest = hashlib.sha256()
    for path in sorted(path for path in model.rglob("*") if path.is_file()):
        if path.name not in NOT_CONTENT:
            digest.update(f"{path.relative_to(model).as_posix()}\0{sha256_file(path)}\n".encode())
    return digest.hexdigest()


def remove_leftovers(folder: Path) -> None:
    """Removes what killed pushes left; a push that goes on holds a lock and is let alone."""
    for path in folder.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError), _locked(path):
            shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def _workplace(folder: Path) -> Iterator[Path]:
    """A hidden, locked folder, removed if it is still there at the end.

    The kernel gives the lock back when the process dies, however it dies.
    """
    while True:
        path = folder / f"{PREFIX}{uuid.uuid4().hex[:12]}"
        path.mkdir()
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(_locked(path))
                path.stat()
            except (BlockingIOError, FileNotFoundError):
                # Another push took it for a leftover between the two calls.
                continue
            try:
                yield path
            finally:
                shutil.rmtree(path, ignore_errors=True)
            return


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def _copy(model: Path, temporary: Path) -> None:
    # copyfile: the new files get the modes of new files, which a server of another user can
    # read. Not hard links: a version must not change with the folder it was made from.
    for path in sorted(model.rglob("*")):
        target = temporary / path.relative_to(model)
        if path.is_dir():
            target.mkdir()
        else:
            shutil.copyfile(path, target)


def digest_of(version: Path) -> str:
    """The digest of a version's content, as its record or else its files tell it."""
    return read_record(version).get("digest") or content_digest(version)


def _sync(folder: Path) -> None:
    """Waits until all files and folders below are on the disk."""
    for path in folder.rglob("*"):
        if path.is_dir():
            _sync_folder(path)
        else:
            with open(path, "rb") as file:
                os.fsync(file.fileno())
    _sync_folder(folder)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
