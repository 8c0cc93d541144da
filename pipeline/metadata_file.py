"""The SQLite file of ML Metadata: checked before a run, and restored from its copy if damaged."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
from pathlib import Path

from regard.components.common import events
from regard.components.common.errors import UserError
from regard.components.common.files import atomic_path


def check(path: Path) -> None:
    """Check the structure of the database; replace a damaged one by the copy of the last run.

    Outputs that the copy does not know are made again. The damaged file stays next to it.

    Args:
        path: the file, which may be missing. The caller holds the lock of the pipeline.

    Raises:
        UserError: it is damaged, and there is no intact copy.
    """
    if not path.exists() or _is_intact(path):
        return
    copy, damaged = _copy_of(path), path.with_name(f"{path.name}.damaged")
    if not copy.exists() or not _is_intact(copy):
        remedy = "Remove the file. All nodes run again; a training resumes from its checkpoint."
        raise UserError("The database of the pipeline's metadata is damaged.", str(path), remedy)
    os.replace(path, damaged)
    with atomic_path(path) as temporary:
        shutil.copyfile(copy, temporary)
    text = f"{path} is damaged and was replaced by the copy of the last successful run"
    events.emit_if_possible("warning", node="", text=text)


def store_copy(path: Path) -> None:
    """Copy the database after a successful run."""
    with (
        atomic_path(_copy_of(path)) as temporary,
        contextlib.closing(sqlite3.connect(path)) as source,
        contextlib.closing(sqlite3.connect(temporary)) as target,
    ):
        source.backup(target)


def _copy_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.copy")


def _is_intact(path: Path) -> bool:
    try:
        with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as database:
            return database.execute("PRAGMA integrity_check(1)").fetchone() == ("ok",)
    except sqlite3.OperationalError:  # it cannot be opened, such as without permission
        return True
    except sqlite3.DatabaseError:
        return False
