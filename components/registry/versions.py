"""Which models and versions there are, by name, number and path."""

from __future__ import annotations

import difflib
import os
from pathlib import Path
from typing import Any

from components.errors import UserError
from components.registry.records import read_record

PROFILE = "assets.extra/profile.json"  # of the data that the version has learned from
# An empty file beside a pinned model: it is there or not, whoever is killed, and goes with it.
PIN = "regard.pinned"
MODEL_FILE = "saved_model.pb"
MODEL_FOLDER_OF_TRAINER = "Format-Serving"
_MOST = 2**63 - 1  # what a model server can count to


class Registry:
    """Finds pushed models by name and version.

    Args:
        root: the registry's folder; it need not exist yet.
    """

    def __init__(self, root: str | os.PathLike[str]):
        self.root = Path(root)

    def names(self) -> list[str]:
        """The names that have at least one version, sorted."""
        if not self.root.is_dir():
            return []
        return sorted(entry.name for entry in self.root.iterdir() if self.versions(entry.name))

    def versions(self, name: str) -> list[int]:
        """The versions of ``name`` that hold a SavedModel, oldest first; empty if none.

        A name is that of a folder of the registry, and no path.
        """
        if not _is_name(name):
            return []
        folder = self.root / name
        while True:
            there = numbered(folder)
            found = [n for n in there if (folder / str(n) / MODEL_FILE).is_file()]
            # What was pruned since the look may have been superseded by what it has not seen.
            if all(os.path.lexists(folder / str(n)) for n in there):
                return found

    def latest(self, name: str) -> int | None:
        """The newest version of ``name``, or None where there is none."""
        return max(self.versions(name), default=None)

    def path(self, name: str, version: int) -> Path:
        """The folder of one version, whether or not it exists."""
        return self.root / name / str(version)

    def resolve(self, text: str | os.PathLike[str]) -> Path:
        """The SavedModel folder that ``NAME``, ``NAME@VERSION`` or a path stands for.

        A path may be a SavedModel, a folder of versions (the newest is taken), or a model
        artifact of the pipeline.

        Raises:
            UserError: if there is no such model; it names what there is.
        """
        given = os.fspath(text)
        name, _, version = given.partition("@")
        if os.sep not in given and self.versions(name):
            return self.path(name, self.number(name, version))
        path = Path(given).expanduser()
        if given and path.is_dir():
            return _saved_model(path)
        if os.sep in given:
            raise UserError(
                f"there is no folder {given!r}",
                remedy="Give a SavedModel folder, or NAME or NAME@VERSION of the registry.",
            )
        raise self._unknown(name)

    def number(self, name: str, version: int | str | None = None) -> int:
        """The number of a version that is there; of the newest where none is given.

        Raises:
            UserError: there is no such model or version; it names what there is.
        """
        there = self.versions(name)
        if not there:
            raise self._unknown(name)
        text = "" if version is None else str(version)
        if not text:
            return there[-1]
        if text in map(str, there):
            return int(text)
        raise UserError(
            f"model {name!r} has no version {text!r}",
            where=str(self.root / name),
            remedy=f"Its versions: {', '.join(map(str, there))}.",
        )

    def record(self, name: str, version: int) -> dict[str, Any]:
        """What ``regard.json`` says about a version; empty where there is no such file.

        Raises:
            UserError: if the version does not exist or its record cannot be read.
        """
        return read_record(self.path(name, self.number(name, version)))

    def _unknown(self, name: str) -> UserError:
        names = self.names()
        if not names:
            remedy = "The registry has no model yet; `regard run CONFIG` trains and pushes one."
        else:
            close = difflib.get_close_matches(name, names, n=1)
            remedy = f"Did you mean {close[0]!r}? " if close else ""
            remedy += f"Models there: {', '.join(names)}."
        return UserError(f"there is no model {name!r}", where=str(self.root), remedy=remedy)


def numbered(folder: Path) -> list[int]:
    """The whole numbers that entries of ``folder`` are named by, sorted; leading zeros not."""
    names = (entry.name for entry in folder.iterdir()) if folder.is_dir() else ()
    return sorted(n for name in names if (n := number_of(name)) is not None and name == str(n))


def number_of(name: str) -> int | None:
    """The number that a model server takes the name of a folder for; ``0012`` is 12."""
    digits = name.lstrip("0") or name[-1:]
    if not (digits.isascii() and digits.isdecimal()) or len(digits) > len(str(_MOST)):
        return None
    number = int(digits)
    return number if number <= _MOST else None


def _is_name(name: str) -> bool:
    return bool(name) and not name.startswith(".") and os.sep not in name


def _saved_model(path: Path) -> Path:
    for candidate in (path, path / MODEL_FOLDER_OF_TRAINER):
        if (candidate / MODEL_FILE).is_file():
            return candidate
    versions = [n for n in numbered(path) if (path / str(n) / MODEL_FILE).is_file()]
    if versions:
        return path / str(versions[-1])
    raise UserError(
        f"{str(path)!r} holds no SavedModel (no {MODEL_FILE})",
        remedy="Give the folder that holds saved_model.pb, or a name of the registry.",
    )
