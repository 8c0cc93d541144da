"""Merging of YAML mappings that remember in which file and line each key was written."""

from __future__ import annotations

import copy
import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import Any

from pydantic import JsonValue

from regard.pipeline.config.document import Document, Path


@dataclasses.dataclass(frozen=True)
class Origin:
    """Where a key was written: its path in the file, and the path of the mapping in there."""

    document: Document
    file: str
    root: Path
    path: Path


@dataclasses.dataclass(frozen=True)
class LocatedMapping:
    """A mapping as its leaves, and the origins of its keys; the empty path is the mapping."""

    leaves: dict[Path, JsonValue]
    origins: dict[Path, Origin]

    @property
    def value(self) -> dict[str, JsonValue]:
        """The nested mapping."""
        result: dict[str, Any] = {}
        for path, value in self.leaves.items():
            parent = result
            for name in path[:-1]:
                parent = parent.setdefault(str(name), {})
            parent[str(path[-1])] = copy.deepcopy(value)
        return result

    def location(self, path: Path) -> str:
        """Return file, line and key of a path, for the beginning of an error message.

        A key that was not written has the line of the nearest enclosing one.
        """
        size = self._known(path)
        origin = self.origins[path[:size]]
        line = origin.document.line((*origin.path, *path[size:]))
        key = ".".join(map(str, (*origin.root, *path)))
        return f"{origin.file}:{line}: {f'{key}: ' if key else ''}"

    def folder(self, path: Path) -> FilePath:
        """Return the folder of the file in which a key was written."""
        file = self.origins[path[: self._known(path)]].file
        return FilePath(os.path.abspath(file)).parent

    def _known(self, path: Path) -> int:
        """Return the length of the longest beginning of a path that was written."""
        return next(n for n in range(len(path), -1, -1) if path[:n] in self.origins)


def located(document: Document, file: str, root: Path = ()) -> tuple[LocatedMapping, list[str]]:
    """Return the mapping at a path of a document, with dotted keys nested.

    ``a.b: 1`` becomes ``a: {b: 1}``.

    Returns:
        The mapping, and an error message for each key that occurs twice.
    """
    value: Any = document.value
    for key in root:
        value = value[key]
    mapping = LocatedMapping({}, {(): Origin(document, file, root, root)})
    duplicates = []
    for key_path, leaf in _leaves(value or {}):
        for size in range(1, len(key_path) + 1):
            path, origin = (
                _split(key_path[:size]),
                Origin(document, file, root, root + key_path[:size]),
            )
            for depth in range(1, len(path) + 1):
                mapping.origins.setdefault(path[:depth], origin)
        path = _split(key_path)
        other = next((p for p in mapping.leaves if _overlap(p, path)), None)
        if other is None:
            mapping.leaves[path] = leaf
            continue
        first = document.line(mapping.origins[other].path)
        location = f"{file}:{document.line(root + key_path)}: {'.'.join(map(str, root + path))}"
        duplicates.append(f"{location}: duplicate key, first in line {first}")
    return mapping, duplicates


def merge(base: LocatedMapping, change: LocatedMapping) -> LocatedMapping:
    """Return the base with changes; neither argument is modified.

    Mappings are merged key by key, other values replaced. A mapping whose ``type`` changes is
    replaced as well, because another type has other keys.
    """
    leaves, origins = dict(base.leaves), dict(base.origins)
    for path, value in change.leaves.items():
        if path[-1] == "type" and base.leaves.get(path, value) != value:
            section = path[:-1]
            leaves = {p: v for p, v in leaves.items() if p[: len(section)] != section}
            origins = {p: o for p, o in origins.items() if p[: len(section)] != section}
    for path, value in change.leaves.items():
        if value == {} and any(p[: len(path)] == path for p in leaves):
            continue
        for replaced in [p for p in leaves if _overlap(p, path)]:
            del leaves[replaced], origins[replaced]
        leaves[path] = value
        origins[path] = change.origins[path]
    return LocatedMapping(leaves, {**change.origins, **origins})


def _overlap(one: Path, other: Path) -> bool:
    """Whether one path is the other, or one of its sections."""
    size = min(len(one), len(other))
    return one[:size] == other[:size]


def _split(path: Path) -> Path:
    return tuple(name for key in path for name in str(key).split("."))


def _leaves(value: dict[str, JsonValue], path: Path = ()) -> Iterator[tuple[Path, JsonValue]]:
    """Yield every key whose value is not a mapping, or an empty one, in the order of the file."""
    for key, item in value.items():
        if isinstance(item, dict) and item:
            yield from _leaves(item, (*path, key))
        else:
            yield (*path, key), item
