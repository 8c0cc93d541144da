"""Object storage (``s3://``, ``gs://`` and other schemes of fsspec) behind local copies.

Readers need local files, so an object is copied below ``$REGARD_HOME/cache`` once. A copy is
written under a temporary name, checked, and renamed. Its modification time is a digest of the
store's version of the object (ETag or generation), so a copy is current if size and time agree.
"""

import contextlib
import errno
import hashlib
import os
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

from regard.core.errors import EnvironmentFault, UserError
from regard.core.files import atomic_path, atomic_write

HOME_VARIABLE, DEFAULT_HOME = "REGARD_HOME", "workspace"
SOURCE = ".source"  # the file in a local copy of a folder that holds its URI
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
_VERSION_KEYS = ("ETag", "etag", "generation", "created", "mtime", "LastModified")
_FULL_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
_PATTERN = frozenset("*?[]\\")
_ATTEMPTS, _THREADS = 4, 8
_VERSION_BITS = 56  # of the version of an object
_MAX_NAME = 230  # file systems allow 255 bytes, with the suffix of a temporary name
_REMEDY = (
    "Check the bucket's name, the credentials (for S3 AWS_PROFILE or AWS_ACCESS_KEY_ID, for "
    "Google Cloud GOOGLE_APPLICATION_CREDENTIALS), their permissions, and AWS_ENDPOINT_URL."
)


class _ChangedError(Exception):
    """An object was replaced while it was read."""


class ObjectState(NamedTuple):
    """The size of an object in bytes, and its version as a time in nanoseconds."""

    size: int
    version: int


def is_uri(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is a URI, also after ``pathlib`` has merged its slashes."""
    return _URI.match(os.fspath(path)) is not None


def refuse_uri(path: str | os.PathLike[str], where: str) -> None:
    """Raise a UserError if the path of a local file or folder is a URI."""
    if is_uri(path):
        raise UserError(
            f"{os.fspath(path)!r} is a URI, and a local path is needed here.",
            where,
            "Give a folder of a local or shared file system. Only the files of the section `data` "
            "and the registry can be in object storage.",
        )


def refuse_pattern(path: str | os.PathLike[str], where: str) -> None:
    """Raise a UserError if TensorFlow or Beam would take the path of a folder for a pattern."""
    if names := " ".join(sorted(_PATTERN.intersection(os.fspath(path)))):
        raise UserError(
            f"The path contains {names}, so TensorFlow and Beam would read it as a pattern.",
            f"{where}: {os.fspath(path)}",
            f"Set {where} to a folder whose path contains none of {' '.join(sorted(_PATTERN))}",
        )


def local_copy(uri: str) -> Path:
    """Return the path of the local copy of an object or a folder, whether or not it exists."""
    scheme, _, path = uri.partition("://")
    _check_name(path, uri)
    home = Path(os.environ.get(HOME_VARIABLE) or DEFAULT_HOME).expanduser().absolute()
    return home / "cache" / scheme / path


def registry_folder(path: str | os.PathLike[str]) -> Path:
    """Return the folder of a registry; of a URI the folder of its local copy, with the source."""
    if "://" not in (uri := os.fspath(path)):
        return Path(uri)
    folder = local_copy(uri := uri.rstrip("/"))
    if not (folder / SOURCE).is_file():
        atomic_write(folder / SOURCE, uri)
    return folder


class ObjectStore:
    """A folder in object storage.

    Args:
        uri: the folder.
        key: the key of the configuration, for errors.

    Raises:
        UserError: the scheme is not known, or its package is not installed. All methods raise it
            if the store cannot be used.
    """

    def __init__(self, uri: str, key: str):
        self.uri, self._key, self._root = uri.rstrip("/"), key, uri.rstrip("/")
        self._fs, self._root = self._call(_file_system, "")

    def find(self, folder: str = "") -> dict[str, ObjectState]:
        """Return the objects below a folder, or the object itself, by their relative names."""
        base = self._path(folder)
        listing = self._call(lambda path: self._fs.find(path, detail=True), folder)
        return {
            name.removeprefix(base).lstrip("/"): _state(info)
            for name, info in listing.items()
            if info["type"] == "file" and not name.endswith("/")
        }

    def download(self, objects: Mapping[str, ObjectState], folder: Path, below: str = "") -> None:
        """Copy objects of ``find(below)`` into a folder; current copies stay.

        Raises:
            UserError: an object changes again and again while it is read, or its name cannot be
                that of a file.
            OSError: the folder cannot be written.
        """
        for name in filter(None, objects):
            _check_name(name, f"{self.uri}/{below}")
        self._in_threads(
            lambda name: self._download(f"{below}/{name}".strip("/"), folder / name, objects[name]),
            (name for name, state in objects.items() if local_state(folder / name) != state),
        )

    def upload(self, folder: Path, target: str) -> list[str]:
        """Copy the files of a local folder, and return their relative names, sorted."""
        names = [p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()]
        self._in_threads(
            lambda name: self._call(
                lambda path: self._fs.put_file(str(folder / name), path), f"{target}/{name}"
            ),
            names,
        )
        return sorted(names)

    def create(self, name: str, content: bytes) -> bool:
        """Write an object if there is none of that name, and return whether it was written."""
        try:
            self._call(lambda path: self._fs.pipe_file(path, content, mode="create"), name)
        except FileExistsError:
            return False
        return True

    def age(self, name: str) -> float:
        """Return the seconds since an object was written."""
        modified: datetime = self._call(self._fs.modified, name)
        return (datetime.now(timezone.utc) - modified.astimezone()).total_seconds()

    def copy(self, source: str, target: str) -> None:
        """Copy an object within the store."""
        self._call(lambda path: self._fs.cp_file(path, self._path(target)), source)

    def remove(self, name: str) -> None:
        """Remove an object, or everything below a folder, as far as it exists."""
        if self._call(self._fs.find, name):
            self._call(lambda path: self._fs.rm(path, recursive=True), name)

    def _download(self, name: str, path: Path, state: ObjectState) -> None:
        for _ in range(_ATTEMPTS):
            with contextlib.suppress(_ChangedError), atomic_path(path) as temporary:
                self._call(lambda path: self._fs.get_file(path, str(temporary)), name)
                os.utime(temporary, ns=(state.version, state.version))
                latest = _state(self._call(self._fs.info, name))
                if not local_state(temporary) == state == latest:
                    raise _ChangedError
                return
            state = latest
        raise EnvironmentFault("The object changes while it is read.", f"{self.uri}/{name}")

    def _in_threads(self, function: Callable[[str], None], names: Iterable[str]) -> None:
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(_THREADS) as pool:
            list(pool.map(function, names))  # raises the first error

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}".rstrip("/")

    def _call(self, method: Callable[[str], Any], name: str) -> Any:
        """Call a method of the file system; the packages of S3 and GCS repeat failed requests."""
        try:
            return method(self._path(name))
        except (FileExistsError, TypeError, AttributeError):  # the last two are bugs
            raise
        except Exception as error:
            if getattr(error, "errno", None) in _FULL_DISK:
                raise
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            remedy = _REMEDY
            if isinstance(error, ImportError):
                remedy = 'Install the package of the store: pip install "regard[s3]" or [gcs].'
            where = f"{self._key}: {self.uri}/{name}".rstrip("/")
            raise EnvironmentFault(f"The object store reports: {reason}", where, remedy) from error


def _file_system(uri: str) -> tuple[Any, str]:
    import fsspec

    # A later listing must show what other processes have written.
    return fsspec.url_to_fs(uri, use_listings_cache=False)


def _state(info: Mapping[str, Any]) -> ObjectState:
    version = next((info[key] for key in _VERSION_KEYS if info.get(key)), "")
    # The list and the object itself may have the time in different types.
    version = version.timestamp() if isinstance(version, datetime) else version
    digest = hashlib.sha256(str(version).encode()).digest()
    return ObjectState(int(info["size"]), int.from_bytes(digest[: _VERSION_BITS // 8], "big"))


def local_state(path: Path) -> ObjectState | None:
    """Return the state of the object that a local file is a copy of; None without the file."""
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return ObjectState(status.st_size, status.st_mtime_ns)


def is_copy(path: Path) -> bool:
    """Return whether a local file is a copy of an object: its time is a version, in 1970 to 1972.

    The time was set before the copy got its name, so a file of anyone else has another one.
    """
    time = path.lstat().st_mtime_ns
    return path.is_file() and 0 < time < 1 << _VERSION_BITS and time % 1_000_000_000 != 0


def _check_name(name: str, uri: str) -> None:
    """Refuse names that are not those of a file below a folder."""
    for part in name.rstrip("/").split("/"):
        if part in ("", ".", "..") or "\0" in part or len(part.encode()) > _MAX_NAME:
            message = f"The name {name!r} in object storage cannot be that of a file."
            remedy = f"Rename it without `.`, `..`, empty parts, and parts over {_MAX_NAME} bytes."
            raise UserError(message, uri, remedy)
