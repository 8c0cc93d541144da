"""Open files of other people: regular ones only, because opening others may never end."""

import errno
import os
import stat
from pathlib import Path

_SPECIAL_FILES = {
    stat.S_IFDIR: "folder",
    stat.S_IFIFO: "FIFO",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
}


def open_regular(path: str | os.PathLike[str], flags: int = os.O_RDONLY, mode: int = 0o666) -> int:
    """Open a regular file, and return its descriptor.

    A file that may be created here (``O_CREAT``) must not be a symbolic link: whoever can write to
    the folder could otherwise redirect the write. The type is that of the open file, so the path
    cannot change between the check and its use.

    Args:
        path: the file.
        flags: the flags of ``os.open``.
        mode: permissions of a new file.

    Raises:
        OSError: the path is not a regular file, or cannot be opened.
    """
    if flags & os.O_CREAT:
        flags |= os.O_NOFOLLOW
    try:
        # Without O_NONBLOCK, opening a FIFO waits for its other end.
        descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY, mode)
    except OSError as error:
        if error.errno == errno.ELOOP and os.path.islink(path):
            message = "it is a symbolic link, not a regular file"
            raise OSError(errno.ELOOP, message, os.fspath(path)) from None
        if error.errno == errno.ENXIO:  # a socket, or a FIFO that nobody reads
            message = "it is not a regular file"
            raise OSError(errno.EINVAL, message, os.fspath(path)) from None
        raise
    try:
        _check(os.fstat(descriptor), path)
        os.set_blocking(descriptor, True)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def check_regular(path: str | os.PathLike[str]) -> None:
    """Check that a path, links followed, is a regular file, for a library that opens it itself.

    Raises:
        OSError: it is not, or it does not exist.
    """
    _check(os.stat(path), path)


def read_regular(path: str | os.PathLike[str], max_bytes: int) -> bytes:
    """Return the content of a regular file.

    Args:
        path: the file.
        max_bytes: limit for its size.

    Raises:
        OSError: it is not a regular file, it is larger, or it cannot be read.
    """
    with os.fdopen(open_regular(path), "rb") as file:
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise OSError(errno.EFBIG, f"it has more than {max_bytes:,} bytes", os.fspath(path))
    return content


def _check(status: os.stat_result, path: str | os.PathLike[str]) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = _SPECIAL_FILES.get(stat.S_IFMT(status.st_mode), "special file")
        code = errno.EISDIR if stat.S_ISDIR(status.st_mode) else errno.EINVAL
        raise OSError(code, f"it is a {kind}, not a regular file", str(Path(path)))
