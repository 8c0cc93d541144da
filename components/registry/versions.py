"""Which models and versions there are, by name, number and path."""

from __future__ import annotations

import difflib
import json
import os
from pathlib import Path
from typing import Any

from components.errors import UserError

RECORD = "regard.json"
PROFILE = "assets.extra/profile.json"  # of the data that the version has learned from
# An empty file beside a pinned model: it is there or not, whoever is killed, and goes with it.
PIN = "regard.pinned"
MODEL_FILE = "saved_model.pb"
MODEL_FOLDER_OF_TRAINER = "Format-Serving"


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
        found = (entry.name for entry in self.root.iterdir() if not entry.name.startswith("."))
        return sorted(name for name in found if self.versions(name))

    def versions(self, name: str) -> list[int]:
        """The versions of ``name`` that hold a SavedModel, oldest first; empty if none."""
        folder = self.root / name
        return [n for n in numbered(folder) if (folder / str(n) / MODEL_FILE).is_file()]

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
        is_name = bool(name.strip(".")) and os.sep not in given
        if is_name and self.versions(name):
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
        if text.isdecimal() and int(text) in there:
            return int(text)
        raise UserError(
            f"model {name!r} has no version {text!r}",
            where=str(self.root / name),
            remedy=f"Its versions: {', '.join(map(str, there))}.",
        )

    def record(self, name: str, version: int) -> dict[str, Any]:
        """What ``regard.json`` says about a version; empty where there is no such file.

        Raises:
            UserError: if the version does not exist or its record is not JSON.
        """
        path = self.path(name, self.number(name, version)) / RECORD
        return read_record(path.parent)

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
    if not folder.is_dir():
        return []
    names = (entry.name for entry in folder.iterdir())
    return sorted(int(name) for name in names if name.isdecimal() and name == str(int(name)))


def read_record(version: Path) -> dict[str, Any]:
    """The ``regard.json`` of a version's folder; empty where there is none."""
    path = version / RECORD
    if not path.is_file():
        return {}
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError(f"not valid JSON: {error}", where=str(path)) from error
    if not isinstance(record, dict):
        raise UserError("not a JSON object", where=str(path))
    return record


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
