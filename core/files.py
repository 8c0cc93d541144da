"""Atomic writes of files and folders, and digests of files."""

import contextlib
import errno
import hashlib
import json
import os
import re
import shutil
import stat
import time
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from regard.core.errors import UserError

# The end of the names of temporary files. No other program uses it, so they can be removed.
_TEMPORARY = ".regard.tmp"
# SQLite adds the name of its journal.
_TEMPORARY_NAME = re.compile(rf"\..+\.[0-9a-f]{{8}}{re.escape(_TEMPORARY)}(-journal)?", re.DOTALL)
# The resolution of times in nanoseconds: Linux's clock ticks, and whole seconds of FAT.
_TICK_NS, _COARSE_NS = 20_000_000, 2_000_000_000
_SPECIAL_FILES = {
    stat.S_IFIFO: "FIFO",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
}


def temporary_name(name: str) -> str:
    """Return an unused hidden name for a file that will be renamed to ``name``."""
    return f".{name}.{uuid.uuid4().hex[:8]}{_TEMPORARY}"


def remove_temporary_files(folder: Path) -> None:
    """Remove the temporary files that killed processes left in a folder."""
    for path in folder.iterdir() if folder.is_dir() else ():
        if _TEMPORARY_NAME.fullmatch(path.name) and not path.is_dir():
            path.unlink(missing_ok=True)


@contextlib.contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path in the same folder; rename it to ``path`` if the block succeeds."""
    final = Path(path)
    final.parent.mkdir(parents=True, exist_ok=True)
    temporary = final.with_name(temporary_name(final.name))
    try:
        yield temporary
        if temporary.is_file():
            # Otherwise a power failure could leave an empty file in place of the old one.
            with open(temporary, "rb") as file:
                os.fsync(file.fileno())
        os.replace(temporary, final)
    finally:
        if temporary.is_dir():
            shutil.rmtree(temporary, ignore_errors=True)
        else:
            temporary.unlink(missing_ok=True)


def atomic_write(path: str | os.PathLike[str], content: bytes | str, private: bool = False) -> None:
    """Write a file under a temporary name, then rename it.

    Args:
        path: the file.
        content: all of it.
        private: whether only its owner may read it.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    with atomic_path(path) as temporary:
        temporary.touch(mode=0o600 if private else 0o666)
        temporary.write_bytes(data)


def write_json(path: str | os.PathLike[str], value: object) -> None:
    """Write a value as indented JSON atomically."""
    atomic_write(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def read_json_object(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the JSON object in a file; empty if the file is missing or holds something else."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def check_no_special_file(path: str | os.PathLike[str]) -> None:
    """Check that a path is a file or a folder; opening anything else may never end.

    Raises:
        OSError: It is a FIFO, a device or a socket, or it does not exist.
    """
    if (kind := _SPECIAL_FILES.get(stat.S_IFMT(os.stat(path).st_mode))) is not None:
        raise OSError(errno.EINVAL, f"it is a {kind}, not a regular file", os.fspath(path))


# Size in bytes, times of modification and change in nanoseconds, and inode of a file.
FileState = tuple[int, int, int, int]


def file_state(path: str | os.PathLike[str]) -> FileState:
    """Return what changes when the content of a file or its path changes.

    Size and modification time are not enough: tools such as ``touch -r`` and ``cp -p`` set the
    time. Nobody can set the time of change and the inode.

    Raises:
        OSError: it is a FIFO, a device or a socket, or it does not exist.
    """
    check_no_special_file(path)
    status = os.stat(path)
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def may_be_cached(state: FileState) -> bool:
    """Return whether the next change of a file will change its state.

    File systems store times with a limited resolution, so a file that has just been changed may
    change once more within the same unit of time.
    """
    changed = state[2]
    resolution = _COARSE_NS if changed % 1_000_000_000 == 0 else _TICK_NS
    return changed + resolution < time.time_ns()


def sha256_file(path: str | os.PathLike[str]) -> str:
    """Return the hexadecimal SHA-256 of a regular file."""
    check_no_special_file(path)
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def files_digest(folder: Path, files: Iterable[Path]) -> str:
    """Return the SHA-256 of the relative names and the contents of files in a folder."""
    digest = hashlib.sha256()
    for path in files:
        digest.update(f"{path.relative_to(folder).as_posix()}\0{sha256_file(path)}\n".encode())
    return digest.hexdigest()


def folder_digest(folder: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of the names and contents of all files below a folder."""
    root = Path(folder)
    return files_digest(root, (path for path in sorted(root.rglob("*")) if not path.is_dir()))


def is_writable(path: str | os.PathLike[str]) -> bool:
    """Return whether a folder can be written, or created if it does not exist."""
    folder = Path(path).absolute()
    while not folder.exists():
        folder = folder.parent
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)


def replace_dir(
    temporary: str | os.PathLike[str], final: str | os.PathLike[str], mark: str
) -> None:
    """Replace a folder by a finished one on the same file system; remove the old one last.

    Args:
        temporary: the finished folder.
        final: the folder to replace, which may be missing or empty.
        mark: a file that every folder of this kind contains.

    Raises:
        UserError: the folder to replace is a link, or contains something else.
    """
    old, target = f"{temporary}.old", Path(final)
    if os.path.lexists(target):
        is_folder = target.is_dir() and not target.is_symlink()
        if not is_folder or not ((target / mark).is_file() or not any(target.iterdir())):
            message = "The path exists, and Regard did not create it."
            raise UserError(message, str(final), "Move it to another place, or remove it.")
        os.replace(final, old)
    os.replace(temporary, final)
    shutil.rmtree(old, ignore_errors=True)
