"""Check that all files of a SavedModel are there, before TensorFlow loads it.

TensorFlow loads a model without ``variables.index`` as one without variables, so that a version
that is still being copied would only fail when it runs.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from regard.core.regular_files import check_regular, read_regular
from regard.serving.checkpoint_index import shard_sizes
from regard.serving.contract import (
    CONTRACT,
    IN_MEMORY,
    MODEL_FILE,
    RECORD,
    TRAINING,
    SavedModelError,
    read_contract,
)
from regard.serving.protobuf import message_class

_INDEX, _SHARD = "variables/variables.index", "variables/variables.data-{:05d}-of-{:05d}"
_ASSETS = "assets"
# Operations whose values the variables' files restore.
_VARIABLE_OPS = frozenset(("VarHandleOp", "VariableV2", "Variable"))
_MAX_MODEL_BYTES = 1 << 31  # of a protocol buffer
_MAX_INDEX_BYTES = 1 << 28
_MAX_FILES = 100_000

# The path, size and times of every file, in nanoseconds. Without inodes: some network file systems
# give a file another one at each look.
FolderSnapshot = tuple[tuple[str, int, int, int], ...]


class IncompleteModelError(SavedModelError):
    """A file of the SavedModel is missing, incomplete, or of another kind."""


def check_whole(path: Path) -> None:
    """Check that a folder holds a whole SavedModel.

    Raises:
        IncompleteModelError: the model file, the variables, an asset or the contract is missing or
            incomplete, or there is something else than folders and regular files.
    """
    from google.protobuf.message import DecodeError

    try:
        for file in _files(path):
            with contextlib.suppress(FileNotFoundError):  # a broken link, or a temporary file
                check_regular(file)
        content = read_regular(path / MODEL_FILE, _MAX_MODEL_BYTES)
        graphs = message_class("SavedModelFiles").FromString(content).meta_graphs
    except DecodeError:
        raise IncompleteModelError(f"{MODEL_FILE} is incomplete or damaged.") from None
    except OSError as error:
        raise _from_os_error(error, path) from None
    served = [graph for graph in graphs if {*graph.meta_info_def.tags} == {"serve"}]
    if not served:
        raise IncompleteModelError(f"{MODEL_FILE} has no graph with the tag `serve`.")
    if any(map(_has_variables, served)) or (path / _INDEX).exists():
        _check_variables(path)
    for asset in (asset for graph in served for asset in graph.asset_file_def):
        if not (path / _ASSETS / asset.filename).is_file():
            raise IncompleteModelError(f"{_ASSETS}/{asset.filename} is missing.")
    # A model of another program has none of these files.
    if any((path / file).exists() for file in (CONTRACT, RECORD, IN_MEMORY, TRAINING)):
        try:
            read_contract(path)
        except SavedModelError as error:
            raise IncompleteModelError(str(error)) from None


def take_snapshot(path: Path) -> FolderSnapshot:
    """Return what identifies the state of a folder's files.

    Raises:
        OSError: the folder or a file cannot be read, or there are too many.
    """
    snapshot = []
    for file in _files(path):
        try:
            status = file.stat()
        except OSError:  # a temporary file that is gone, or a broken link
            snapshot.append((str(file), -1, 0, 0))
            continue
        snapshot.append((str(file), status.st_size, status.st_mtime_ns, status.st_ctime_ns))
    return tuple(sorted(snapshot))


def _has_variables(graph: Any) -> bool:
    """Whether a graph restores variables from files."""
    functions = graph.graph_def.library.function
    nodes = (graph.graph_def.node, *(function.node_def for function in functions))
    return bool(graph.saver_def.restore_op_name) and any(
        node.op in _VARIABLE_OPS for part in nodes for node in part
    )


def _check_variables(path: Path) -> None:
    try:
        sizes = shard_sizes(read_regular(path / _INDEX, _MAX_INDEX_BYTES))
    except ValueError as error:
        raise IncompleteModelError(f"{_INDEX} is incomplete or damaged: {error}.") from None
    except OSError as error:
        raise _from_os_error(error, path) from None
    for number, size in enumerate(sizes):
        name = _SHARD.format(number, len(sizes))
        try:
            check_regular(path / name)
            actual = (path / name).stat().st_size
        except OSError as error:
            raise _from_os_error(error, path) from None
        if actual < size:
            raise IncompleteModelError(f"{name} has {actual:,} of {size:,} bytes.")


def _files(path: Path) -> Iterator[Path]:
    """Yield everything below a folder that is not a folder, links to folders followed.

    Raises:
        OSError: a folder cannot be read, or there are too many files.
    """

    def fail(error: OSError) -> None:
        raise error

    count = 0
    for parent, folders, names in os.walk(path, onerror=fail, followlinks=True):
        count += len(names) + len(folders)
        if count > _MAX_FILES:
            raise OSError(errno.EFBIG, f"it has more than {_MAX_FILES:,} files", os.fspath(path))
        yield from (Path(parent, name) for name in names)


def _from_os_error(error: OSError, path: Path) -> IncompleteModelError:
    """Describe an error without the path of the folder."""
    name = "The folder"
    if error.filename is not None and Path(error.filename) != path:
        name = os.path.relpath(error.filename, path)
    if isinstance(error, FileNotFoundError):
        return IncompleteModelError(f"{name} is missing.")
    return IncompleteModelError(f"{name} cannot be read: {error.strerror}.")
