"""Folders that Regard created, and may therefore remove.

Each contains a mark, a file that holds the name of the folder. The mark is written before anything
else, and removed after everything else, so a process may be killed at any moment. A folder that
existed before, also an empty one, gets no mark, and is never removed; nor is a copy with another
name, which has the mark of the original.
"""

import os
import re
import shutil
import uuid
from pathlib import Path

from regard.core import events

# The kinds of folders. A folder of one kind is not removed as one of another kind.
ARTIFACTS = "artifacts"
CHECKPOINTS = "checkpoints"
SCRATCH = "scratch"
SEARCH = "search"
# The start of the name of a folder that is being removed, and the random digits at its end.
_HIDDEN = ".removed-"
_RANDOM_DIGITS = 8


def mark_name(kind: str) -> str:
    """Return the name of the file that marks folders of a kind."""
    return f".regard-{kind}"


def create(folder: str | os.PathLike[str], kind: str) -> bool:
    """Create a folder with its mark, unless it exists.

    Args:
        folder: the folder; its parents are created as well, without marks.
        kind: one of the kinds above.

    Returns:
        Whether the folder has the mark.

    Raises:
        FileExistsError: the path is a file.
    """
    path = Path(folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.mkdir()
    except FileExistsError:
        if not path.is_dir():
            raise
    else:
        mark(path, kind)
    return is_owned(path, kind)


def mark(folder: str | os.PathLike[str], kind: str) -> None:
    """Write the mark of a folder that the caller has just created."""
    path = Path(folder)
    (path / mark_name(kind)).write_text(path.name, encoding="utf-8")


def is_owned(folder: str | os.PathLike[str], kind: str) -> bool:
    """Return whether Regard created a folder of this kind; links and copies are not owned."""
    path = Path(folder)
    if not has_mark(path, mark_name(kind)):
        return False
    name = (path / mark_name(kind)).read_text(encoding="utf-8", errors="replace")
    return bool(name) and (path.name == name or _is_hidden_name(path.name, name))


def has_mark(folder: str | os.PathLike[str], mark: str) -> bool:
    """Return whether a path is a folder, not a link, that contains a file of this name."""
    path = Path(folder)
    is_file = (path / mark).is_file() and not (path / mark).is_symlink()
    return is_file and not path.is_symlink()


def hide(folder: str | os.PathLike[str], kind: str) -> Path | None:
    """Give a folder that Regard created a hidden name, so that nobody finds a part of it.

    Returns:
        The hidden folder, for `remove_content`; None if the folder has no mark.

    Raises:
        OSError: it cannot be renamed.
    """
    path = Path(folder)
    if not is_owned(path, kind):
        return None
    if is_hidden(path):
        return path
    hidden = path.with_name(f"{_HIDDEN}{path.name}-{uuid.uuid4().hex[:_RANDOM_DIGITS]}")
    os.rename(path, hidden)
    return hidden


def is_hidden(folder: Path) -> bool:
    """Return whether the name of a folder is that of one which is being removed."""
    return folder.name.startswith(_HIDDEN)


def _is_hidden_name(hidden: str, name: str) -> bool:
    """Return whether `hide` can have given this name to a folder."""
    start, end = f"{_HIDDEN}{name}-", hidden[-_RANDOM_DIGITS:]
    return hidden == start + end and re.fullmatch("[0-9a-f]+", end) is not None


def remove(folder: str | os.PathLike[str], kind: str) -> bool:
    """Remove a folder that Regard created; what a killed process leaves of it has the mark.

    Returns:
        Whether the folder has been removed; otherwise it has no mark.

    Raises:
        OSError: something in it cannot be removed.
    """
    hidden = hide(folder, kind)
    if hidden is not None:
        remove_content(hidden, mark_name(kind))
    return hidden is not None


def discard(folder: str | os.PathLike[str], kind: str) -> None:
    """Remove a folder that Regard created; rename any other one, so that it is not used.

    Raises:
        OSError: it cannot be removed or renamed.
    """
    path = Path(folder)
    if not os.path.lexists(path) or remove(path, kind):
        return
    renamed = path.with_name(f"{path.name}.unused-{uuid.uuid4().hex[:8]}")
    os.rename(path, renamed)
    text = f"{path} has no mark of this version of Regard. It is not used, but renamed to {renamed}"
    events.emit_if_possible("warning", node="", text=text)


def remove_content(folder: Path, mark: str) -> None:
    """Remove a folder, and its file ``mark`` last.

    Raises:
        OSError: something in it cannot be removed; the mark and the rest stay.
    """
    with os.scandir(folder) as entries:
        others = [entry for entry in entries if entry.name != mark]
    for entry in others:
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        else:
            os.unlink(entry.path)
    os.unlink(folder / mark)
    os.rmdir(folder)
