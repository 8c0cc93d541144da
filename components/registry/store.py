"""The model registry: the folder ``<root>/<name>/<version>/`` that models are pushed to.

There is no server and no database. A version is a folder with an integer as its name that holds a
SavedModel, with the record ``regard.json`` next to it. TensorFlow Serving watches the same folder
and serves the highest version of each model.

Version numbers only rise, and a published version never changes. Every change of what is served,
also a rollback, publishes a new version with one rename, so a server always sees whole versions.
"""

import contextlib
import os
from pathlib import Path

from regard.components.registry.mirror import open_mirror
from regard.components.registry.records import VersionRecord, parse_number, read_record
from regard.core.errors import NotFoundError, UserError
from regard.core.storage import registry_folder
from regard.core.suggestions import suggest
from regard.serving.contract import MODEL_FILE, PIN

LATEST = "latest"
_SERVING_FOLDER = "Format-Serving"  # in the model artifact of the Trainer


class Registry:
    """Finds pushed models by name and version.

    Args:
        root: the registry's folder, which need not exist; or its URI in object storage, or the
            folder of its local copy, which is then brought up to date.

    Attributes:
        root: the folder.
        mirror: the object storage behind the folder, if any.

    Raises:
        UserError: the object storage cannot be read.
    """

    def __init__(self, root: str | os.PathLike[str]):
        self.root = registry_folder(root)
        self.mirror = open_mirror(self.root)
        if self.mirror is not None:
            self.mirror.pull()

    def location(self, *parts: str) -> str:
        """Return the path or the URI of the registry, or of something in it, for the user."""
        return "/".join((str(self.root) if self.mirror is None else self.mirror.uri, *parts))

    def names(self) -> list[str]:
        """Return the names with at least one version, sorted."""
        if not self.root.is_dir():
            return []
        return sorted(entry.name for entry in self.root.iterdir() if self.versions(entry.name))

    def versions(self, name: str) -> list[int]:
        """Return the versions of ``name`` that hold a SavedModel, oldest first.

        ``name`` is the name of a folder of the registry, not a path.
        """
        if not name or name.startswith(".") or os.sep in name:
            return []
        folder = self.root / name
        while True:
            numbers = numbered(folder)
            versions = [n for n in numbers if (folder / str(n) / MODEL_FILE).is_file()]
            # If a version was pruned meanwhile, a newer one that is not listed may replace it.
            if all(os.path.lexists(folder / str(n)) for n in numbers):
                return versions

    def latest(self, name: str) -> int | None:
        """Return the newest version of ``name``; None if there is none."""
        return max(self.versions(name), default=None)

    def path(self, name: str, version: int) -> Path:
        """Return the folder of a version, whether or not it exists."""
        return self.root / name / str(version)

    def complete(self, version: Path) -> Path:
        """Return the folder of a version, with all files: object storage may still have some."""
        if self.mirror is not None and version.is_relative_to(self.root):
            self.mirror.complete(version)
        return version

    def size(self, version: Path) -> int:
        """Return the bytes of a version's files."""
        return size_of(version) if self.mirror is None else self.mirror.size(version)

    def resolve(self, text: str | os.PathLike[str]) -> Path:
        """Return the SavedModel folder for ``NAME``, ``NAME@VERSION`` or a path.

        A path may be a SavedModel, a folder of versions (the newest is used), or a model artifact
        of the pipeline.

        Raises:
            UserError: there is no such model; the message lists the available ones.
        """
        model = os.fspath(text)
        name, _, version = model.partition("@")
        if os.sep not in model and self.versions(name):
            return self.complete(self.path(name, self.number(name, version)))
        path = Path(model).expanduser()
        if model and path.is_dir():
            return _saved_model(path)
        if os.sep in model:
            remedy = "Give a SavedModel folder, or NAME or NAME@VERSION of the registry."
            raise NotFoundError(f"There is no folder {model!r}", remedy=remedy)
        raise self._unknown(name)

    def number(self, name: str, version: int | str | None = None) -> int:
        """Return the number of an existing version, by default the newest.

        Raises:
            UserError: there is no such model or version; the message lists the available ones.
        """
        versions = self.versions(name)
        if not versions:
            raise self._unknown(name)
        text = "" if version is None else str(version)
        if not text:
            return versions[-1]
        if text in map(str, versions):
            return int(text)
        message = f"Model {name!r} has no version {text!r}"
        remedy = f"Its versions: {', '.join(map(str, versions))}."
        raise NotFoundError(message, self.location(name), remedy)

    def record(self, name: str, version: int) -> VersionRecord:
        """Return the record of a version; an empty one if it has none.

        Raises:
            UserError: the version does not exist, or its record is not valid.
        """
        return read_record(self.path(name, self.number(name, version)))

    def _unknown(self, name: str) -> UserError:
        names = self.names()
        if not names:
            remedy = "The registry is empty. `regard run CONFIG` trains and pushes a model."
        else:
            remedy = f"{suggest(name, names)}."
        return NotFoundError(f"There is no model {name!r}", where=self.location(), remedy=remedy)


def production_baseline(production: str, version: str) -> tuple[str, str]:
    """Return the folder and number of the version to compare with; empty if there is none.

    Args:
        production: its folder, or empty; with ``LATEST`` the folder of all versions.
        version: its number; or ``LATEST`` for the newest version at this moment.
    """
    if version != LATEST:
        return production, version
    root, name = os.path.split(production)
    registry = Registry(root)
    newest = registry.latest(name)
    if newest is None:
        return "", ""
    return str(registry.complete(registry.path(name, newest))), str(newest)


def is_pinned(version: Path) -> bool:
    """Return whether the version in this folder is pinned."""
    return (version / PIN).exists()


def size_of(version: Path) -> int:
    """Return the bytes of a version's files; 0 for a link or a removed version."""
    total = 0
    with contextlib.suppress(FileNotFoundError):  # it may be pruned at this moment
        for file in () if version.is_symlink() else version.rglob("*"):
            total += file.lstat().st_size if file.is_file() else 0
    return total


def numbered(folder: Path) -> list[int]:
    """Return the entries of ``folder`` named by integers without leading zeros, sorted."""
    names = (entry.name for entry in folder.iterdir()) if folder.is_dir() else ()
    return sorted(n for name in names if (n := parse_number(name)) is not None and name == str(n))


def _saved_model(path: Path) -> Path:
    for candidate in (path, path / _SERVING_FOLDER):
        if (candidate / MODEL_FILE).is_file():
            return candidate
    versions = [n for n in numbered(path) if (path / str(n) / MODEL_FILE).is_file()]
    if versions:
        return path / str(versions[-1])
    remedy = "Give the folder that holds saved_model.pb, or a name of the registry."
    raise NotFoundError(f"{str(path)!r} holds no SavedModel (no {MODEL_FILE})", remedy=remedy)
