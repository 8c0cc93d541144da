"""Plain values that know where in which file each key was written, and how one changes another."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator
from typing import Any

from pipeline.config.document import Document, Path, Problem


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a key stands: the file, the line from 1 on, and the keys as they are written there."""

    file: str
    line: int
    key: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {f'{self.key}: ' if self.key else ''}"


@dataclasses.dataclass
class Tree:
    """A mapping with the place of each of its keys; the empty path is the mapping itself."""

    value: dict[str, Any]
    places: dict[Path, Place]

    def place(self, path: Path) -> Place:
        """Where the key stands, or the nearest one around it that was written somewhere.

        Where a part of the path was not written, its keys are told all the same.
        """
        inner = path
        while inner and inner not in self.places:
            inner = inner[:-1]
        found = self.places[inner]
        missing = ".".join(str(part) for part in path[len(inner) :])
        key = ".".join(part for part in (found.key, missing) if part)
        return dataclasses.replace(found, key=key)


def part(document: Document, file: str, at: Path = ()) -> Tree:
    """The mapping below a path of a document, with its places in the file."""
    value: Any = document.value
    for key in at:
        value = value[key]
    places = {
        path[len(at) :]: Place(file, line, ".".join(str(key) for key in path))
        for path, line in document.lines.items()
        if path[: len(at)] == at
    }
    places.setdefault((), Place(file, document.line(at), ".".join(str(key) for key in at)))
    return Tree(dict(value or {}), places)


def expanded(given: Tree) -> tuple[Tree, list[Problem]]:
    """A tree whose dotted keys are nested ones: ``a.b: 1`` and ``a: {b: 1}`` are the same.

    Returns:
        The tree, and what is given twice, as problems with paths of the tree that was given.
    """
    root = given.places[()]
    result = Tree({}, {(): root})
    first: dict[Path, Place] = {}
    found = []

    def put(path: Path, place: Place) -> None:
        key = ".".join(map(str, filter(None, (root.key, *path))))
        result.places.setdefault(path, dataclasses.replace(place, key=key))

    for written, value in _leaves(given.value):
        path = tuple(name for key in written for name in str(key).split("."))
        place = given.place(written)
        taken = next((p for p in first if p == path[: len(p)] or path == p[: len(path)]), None)
        if taken is not None:
            message = f"given twice, first in line {first[taken].line}"
            found.append(Problem(written, message))
            continue
        first[path] = place
        into = result.value
        for depth, name in enumerate(path[:-1], start=1):
            into = into.setdefault(name, {})
            put(path[:depth], place)
        into[path[-1]] = copy.deepcopy(value)
        put(path, place)
    for written, place in given.places.items():  # the line of a mapping is that of its own key
        path = tuple(name for key in written for name in str(key).split("."))
        if path in result.places:
            result.places[path] = dataclasses.replace(result.places[path], line=place.line)
    return result, found


def merged(base: Tree, change: Tree) -> Tree:
    """The base with a change laid over it; neither is touched.

    Mappings are changed key by key, everything else is replaced as a whole: so is a mapping whose
    ``type`` changes, since the keys of one type are not those of another.
    """
    result = Tree(copy.deepcopy(base.value), dict(base.places))
    for key, value in change.value.items():
        _lay(result, change, (key,), value)
    return result


def _lay(result: Tree, change: Tree, path: Path, value: Any) -> None:
    into: Any = result.value
    for key in path[:-1]:
        into = into[key]
    old = into.get(path[-1])
    if isinstance(old, dict) and isinstance(value, dict) and not _other_type(old, value):
        for key, item in value.items():
            _lay(result, change, (*path, key), item)
        return
    into[path[-1]] = copy.deepcopy(value)
    for old_path in [p for p in result.places if p[: len(path)] == path]:
        del result.places[old_path]
    result.places.update({p: w for p, w in change.places.items() if p[: len(path)] == path})


def _other_type(old: dict[str, Any], new: dict[str, Any]) -> bool:
    return "type" in old and "type" in new and old["type"] != new["type"]


def _leaves(value: dict[str, Any], path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every key that holds no mapping, or an empty one, in the order of the file."""
    for key, item in value.items():
        if isinstance(item, dict) and item:
            yield from _leaves(item, (*path, key))
        else:
            yield (*path, key), item
