"""From what a configuration says of files to the files that are there."""

from __future__ import annotations

import difflib
import glob
import os
from collections.abc import Mapping
from typing import Any

from components.corpus_gen.patterns import meant
from components.errors import UserError


def root_of(data: Mapping[str, Any]) -> str:
    """The folder that the paths of a ``data`` section are relative to."""
    return data.get("root") or "."


def items_of(value: Any) -> list[str]:
    """A path or a list of paths as a list."""
    return [str(item) for item in (value if isinstance(value, list | tuple) else [value])]


def expand(root: str, item: str, key: str) -> list[str]:
    """The files that a path or a glob names, sorted.

    Raises:
        UserError: there is none, one is a folder, or one may not be read.
    """
    path = os.path.join(root, os.path.expanduser(item))
    if os.path.exists(path):
        check(path, key)
        return [path]
    if glob.has_magic(item):
        # The root is a folder's name, not a pattern, whatever signs are in it.
        pattern = os.path.join(glob.escape(root), os.path.expanduser(item))
        matches = sorted(p for p in glob.glob(pattern, recursive=True) if os.path.isfile(p))
        if not matches:
            raise UserError(f"no file matches {path}", where=key, remedy=listing(path))
        for match in matches:
            check(match, key)
        return matches
    raise UserError(f"no such file: {path}", where=key, remedy=meant(item) or listing(path))


def check(path: str, key: str) -> None:
    """Refuses what is no file that may be read."""
    if os.path.isdir(path):
        raise UserError(
            f"{path} is a folder", where=key, remedy="Name its files, such as `folder/*.tsv`."
        )
    if not os.access(path, os.R_OK):
        raise UserError(
            f"{path} may not be read", where=key, remedy="Give yourself the right: `chmod u+r`."
        )


def check_folder(path: str, key: str) -> None:
    """Refuses what is no folder."""
    if os.path.isdir(path):
        return
    told = f"{path} is no folder" if os.path.exists(path) else f"no such folder: {path}"
    raise UserError(told, where=key, remedy=listing(path))


def listing(path: str) -> str:
    """What the user may have meant: near names, or the folder that is not there."""
    folder, name = os.path.split(path)
    folder = folder or "."
    if not os.path.isdir(folder):
        while folder and not os.path.isdir(os.path.dirname(folder) or "."):
            folder = os.path.dirname(folder)
        return f"There is no folder {folder}: check `data.root`."
    names = sorted(os.listdir(folder))
    near = difflib.get_close_matches(name, names, 3, 0.6)
    if near:
        return f"Did you mean {' or '.join(near)}?"
    if not names:
        return f"The folder {folder} is empty."
    shown = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
    return f"The folder {folder} has: {shown}."
