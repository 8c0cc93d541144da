"""The SQLite file of ML Metadata: checked before a run, and restored from its copy if damaged."""

import contextlib
import json
import os
import shutil
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path

from regard.core import events, owned_folders
from regard.core.errors import EnvironmentFault
from regard.core.files import atomic_path
from regard.pipeline.workspace import output_folders

REMOVED = ".removed"  # the end of the name of an output that is being removed
_BUSY_SECONDS = 60.0
# The executions of runs, and those whose outputs they used: MLMD's OUTPUT is 4, COMPLETE is 3.
_NEEDED = """
WITH RECURSIVE needed(id) AS (
    SELECT execution_id FROM Association JOIN Context ON Context.id = context_id
    WHERE Context.name IN (SELECT value FROM json_each(?))
    UNION SELECT made.execution_id FROM needed JOIN Event AS used ON used.execution_id = needed.id
    JOIN Event AS made ON made.artifact_id = used.artifact_id AND made.type = 4
    JOIN Execution ON Execution.id = made.execution_id AND last_known_state = 3
) SELECT id FROM needed
"""
# The executions of all nodes, whose contexts are named "<pipeline>.<node>".
_NODES = """
SELECT Context.name, execution_id FROM Association JOIN Context ON Context.id = context_id
JOIN Type ON Type.id = type_id WHERE Type.name = 'node'
"""
# The number of pipelines of other names.
_OTHERS = """
SELECT count(*) FROM Context JOIN Type ON Type.id = type_id
WHERE Type.name = 'pipeline' AND Context.name != ?
"""
# Tables, and which of their rows stay; `kept` has the ids of executions.
_KEPT_ROWS = {
    "Execution": "id IN kept",
    "ExecutionProperty": "execution_id IN kept",
    "Association": "execution_id IN kept",
    "Event": "execution_id IN kept",
    "EventPath": "event_id IN (SELECT id FROM Event)",
    "Artifact": "id IN (SELECT artifact_id FROM Event)",
    "ArtifactProperty": "artifact_id IN (SELECT id FROM Artifact)",
    "Context": "id IN (SELECT context_id FROM Association)",
    "ContextProperty": "context_id IN (SELECT id FROM Context)",
    "ParentContext": "context_id IN (SELECT id FROM Context)",
    "Attribution": "artifact_id IN (SELECT id FROM Artifact) "
    "AND context_id IN (SELECT id FROM Context)",
}


def check(path: Path) -> None:
    """Check the structure of the database; replace a damaged one by the copy of the last run.

    Outputs that the copy does not know are made again. The damaged file stays next to it.

    Args:
        path: the file, which may be missing. The caller holds the lock of the pipeline.

    Raises:
        UserError: it is damaged, and there is no intact copy.
    """
    if not path.exists():
        return
    copy, damaged = _copy_of(path), path.with_name(f"{path.name}.damaged")
    try:
        schema, expected = _schema(path), _schema(copy) if copy.exists() else None
    except sqlite3.OperationalError:  # it cannot be opened, such as without permission
        return
    if schema is not None and expected in (None, schema):
        return
    if expected is None:
        remedy = "Remove the file. All nodes run again; a training resumes from its checkpoint."
        raise EnvironmentFault(
            "The database of the pipeline's metadata is damaged.", str(path), remedy
        )
    journal = path.with_name(f"{path.name}-journal")
    if journal.exists():  # first: SQLite would write its pages into the copy
        os.replace(journal, path.with_name(f"{damaged.name}-journal"))
    shutil.copyfile(path, damaged)
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


def needed_executions(path: Path, runs: Iterable[str]) -> set[int] | None:
    """Return the ids of the executions of runs, and of those that made what they used.

    Args:
        path: the file.
        runs: the ids of the runs.

    Returns:
        None if there is no file.

    Raises:
        UserError: the file cannot be read.
    """
    if not path.exists():
        return None
    with _open(path) as database:
        return {row[0] for row in database.execute(_NEEDED, (json.dumps([*runs]),))}


def own_outputs(artifacts: Path, metadata: Path | None, name: str) -> list[Path]:
    """Return the folders of outputs that the pipeline's runs created.

    All of them are, if the pipeline root carries Regard's mark. Earlier versions of Regard wrote
    none; of their outputs, those that the metadata names are returned.

    Args:
        artifacts: TFX's pipeline root.
        metadata: the file, which may be missing, and may have nodes of other pipelines; None for
            another database.
        name: the pipeline.

    Raises:
        UserError: the file cannot be read.
    """
    folders = output_folders(artifacts)
    if owned_folders.is_owned(artifacts.resolve(), owned_folders.ARTIFACTS):
        return folders
    if not folders or metadata is None or not metadata.exists():
        return []
    with _open(metadata) as database:
        recorded = {
            (context.removeprefix(f"{name}."), str(execution))
            for context, execution in database.execute(_NODES)
            if context.startswith(f"{name}.")
        }
    nodes = {node for node, _ in recorded}

    def is_own(path: Path) -> bool:
        node, output, *_, name = path.relative_to(artifacts).parts
        if output == ".system" or name.endswith(REMOVED):
            return node in nodes
        return (node, name) in recorded

    return [path for path in folders if is_own(path)]


def has_other_pipelines(path: Path, name: str) -> bool:
    """Return whether pipelines of other names recorded runs in the file, which may be missing.

    Raises:
        UserError: the file cannot be read.
    """
    if not path.exists():
        return False
    with _open(path) as database:
        return database.execute(_OTHERS, (name,)).fetchone()[0] > 0


def keep_executions(path: Path, executions: Iterable[int] | None) -> int:
    """Remove all other executions with their artifacts, and return the bytes that this frees.

    Args:
        path: the file; its copy shrinks as well. The caller holds the lock of the pipeline.
        executions: the ids; None removes nothing.

    Raises:
        UserError: the file cannot be changed.
    """
    if executions is None:
        return 0
    before = path.stat().st_size
    with _open(path) as database:
        values = json.dumps([*executions])
        database.execute("CREATE TEMP TABLE kept AS SELECT value FROM json_each(?)", (values,))
        with database:  # one transaction
            count = sum(
                database.execute(f"DELETE FROM {table} WHERE NOT ({rows})").rowcount
                for table, rows in _KEPT_ROWS.items()
            )
        if count:
            with contextlib.suppress(sqlite3.OperationalError):  # on a full disk
                database.execute("VACUUM")
                if _copy_of(path).exists():
                    store_copy(path)
    return before - path.stat().st_size


@contextlib.contextmanager
def _open(path: Path) -> Iterator[sqlite3.Connection]:
    try:
        with contextlib.closing(sqlite3.connect(path, _BUSY_SECONDS)) as database:
            yield database
    except sqlite3.DatabaseError as error:
        message = f"The database of the pipeline's metadata cannot be used: {error}."
        remedy = "Free some disk space, or end the process that uses the file."
        raise EnvironmentFault(message, str(path), remedy) from error


def _copy_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.copy")


def _schema(path: Path) -> list[tuple[bytes, bytes]] | None:
    """Return the definitions of all tables and indices; None if the file is damaged."""
    # Not read-only: the journal of a killed process has to be rolled back first.
    database = sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True)
    database.text_factory = bytes  # damaged text may not be UTF-8
    with contextlib.closing(database):
        try:
            if database.execute("PRAGMA integrity_check(1)").fetchone() != (b"ok",):
                return None
            return database.execute("SELECT name, sql FROM sqlite_schema ORDER BY name").fetchall()
        except sqlite3.OperationalError:
            raise
        except (sqlite3.DatabaseError, UnicodeDecodeError):
            return None
