"""What the makers of data sets share: counts, files, and how trouble is told to the user."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from components.errors import UserError
from components.files import atomic_write

Progress = Callable[[str, float], None]
"""Called with a text and the share done, 0 to 1."""


@dataclass(frozen=True)
class Summary:
    """A data set that now lies in ``directory``.

    Attributes:
        name: the data set.
        directory: where its files are.
        files: every file of it, in a fixed order.
        rows: split -> number of pairs.
        made: how many of the files this call wrote (the others were there and right already).
    """

    name: str
    directory: Path
    files: tuple[Path, ...]
    rows: dict[str, int] = field(default_factory=dict)
    made: int = 0


@contextlib.contextmanager
def disk_errors(directory: Path, instead: str = "Name another one with --out.") -> Iterator[None]:
    """Turns a full disk or a directory that cannot be written into a ``UserError``.

    Args:
        instead: how the user names another directory.
    """
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            message, remedy = "no space left on the disk", "Free some space and run it again."
        elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            message, remedy = "the directory cannot be written", instead
        elif error.errno in (errno.ENOTDIR, errno.EEXIST):
            message, remedy = "there is a file in the way", instead
        else:
            raise
        raise UserError(message, where=str(directory), remedy=remedy) from error


def shared_out(rows: int, shares: Mapping[str, float]) -> dict[str, int]:
    """How many rows each split gets: its share, and ``train`` what is left.

    Raises:
        UserError: there are fewer than 20.
    """
    if rows < 20:
        raise UserError(f"{rows} rows are too few", remedy="Ask for 20 or more.")
    counts = {split: int(rows * share) for split, share in shares.items()}
    return {"train": rows - sum(counts.values()), **counts}


def write(
    name: str, directory: Path, content: Mapping[str, bytes | str], rows: dict[str, int]
) -> Summary:
    """Writes the files of a data set, each whole or not at all, and says what there is now.

    Args:
        name: the data set.
        directory: made if absent; files of an earlier call are replaced.
        content: of each file, by its name in the directory.
        rows: the number of rows of each split.
    """
    with disk_errors(directory):
        for file, data in content.items():
            atomic_write(directory / file, data)
    files = tuple(directory / file for file in content)
    return Summary(name, directory, files, rows, made=len(files))
