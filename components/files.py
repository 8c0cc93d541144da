"""Files that are either whole or not there, and digests of content and of code."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Gives a temporary name beside ``path``, renamed to it when the block ends without error."""
    final = Path(path)
    final.parent.mkdir(parents=True, exist_ok=True)
    temporary = final.parent / f".{final.name}.{uuid.uuid4().hex[:8]}.tmp"
    try:
        yield temporary
        if temporary.is_file():
            # Or a loss of power might leave the name with nothing, where the old file was.
            with open(temporary, "rb") as file:
                os.fsync(file.fileno())
        os.replace(temporary, final)
    finally:
        if temporary.is_dir():
            shutil.rmtree(temporary, ignore_errors=True)
        else:
            temporary.unlink(missing_ok=True)


def atomic_write(path: str | os.PathLike[str], content: bytes | str) -> None:
    """Writes a whole file under a temporary name, then renames it."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    with atomic_path(path) as temporary:
        temporary.write_bytes(data)


def sha256_file(path: str | os.PathLike[str]) -> str:
    """The hexadecimal SHA-256 of a file's bytes, read in pieces."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


# What our own folders hold that changes what a component makes.
_SOURCES = frozenset({".py", ".jinja", ".css", ".js", ".svg"})


def source_digest(*roots: str) -> str:
    """A digest of our own code below the given folders, for the keys of TFX's cache.

    Args:
        roots: folders or files relative to the folder that holds the packages, such as
            ``"components/trainer"`` or ``"models"``.
    """
    base = Path(__file__).resolve().parent.parent
    digest = hashlib.sha256()
    for root in sorted(roots):
        start = base / root
        if not start.exists():
            raise FileNotFoundError(f"no source at {root}")
        paths = [start] if start.is_file() else sorted(start.rglob("*"))
        for path in (path for path in paths if path == start or path.suffix in _SOURCES):
            digest.update(path.relative_to(base).as_posix().encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def writable(path: str | os.PathLike[str]) -> bool:
    """Whether a folder can be written, or made where it is not there yet."""
    place = Path(path).absolute()
    while not place.exists():
        place = place.parent
    return place.is_dir() and os.access(place, os.W_OK | os.X_OK)


def replace_dir(temporary: str | os.PathLike[str], final: str | os.PathLike[str]) -> None:
    """Puts a finished folder in the place of another, which goes only then; on one file system."""
    old = f"{temporary}.old"
    if Path(final).exists():
        os.replace(final, old)
    os.replace(temporary, final)
    shutil.rmtree(old, ignore_errors=True)


def write_uri(uri: str, content: bytes | str) -> None:
    """``atomic_write`` for the artifacts of Beam components, which any file system of TFX may hold.

    A runner may make two attempts at once: each has a temporary name of its own.

    Args:
        uri: the file, local or such as ``gs://bucket/path``.
        content: its whole content.
    """
    from tfx.dsl.io import fileio

    fileio.makedirs(os.path.dirname(uri))
    name = f".{os.path.basename(uri)}.{uuid.uuid4().hex[:8]}.tmp"
    temporary = os.path.join(os.path.dirname(uri), name)
    try:
        with fileio.open(temporary, "w" if isinstance(content, str) else "wb") as file:
            file.write(content)
        fileio.rename(temporary, uri, overwrite=True)
    finally:
        if fileio.exists(temporary):
            fileio.remove(temporary)
