"""Merging of YAML mappings that know in which file and line each key was written."""

import copy
import dataclasses
import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from regard.pipeline.config.document import Document, KeyPath


@dataclasses.dataclass(frozen=True)
class Source:
    """A mapping in a file: its path in there, and how each of its keys was written."""

    document: Document
    file: str
    root: KeyPath
    keys: dict[KeyPath, KeyPath]


@dataclasses.dataclass(frozen=True)
class LocatedMapping:
    """A nested mapping and the sources of its keys; later ones take precedence."""

    value: dict[str, JsonValue]
    sources: tuple[Source, ...]

    def location(self, path: KeyPath) -> str:
        """Return file, line and key of a path, for the beginning of an error message.

        A key that was not written has the line of the nearest enclosing one.
        """
        source, size = self._find(path)
        line = source.document.line((*source.root, *source.keys[path[:size]], *path[size:]))
        key = ".".join(map(str, (*source.root, *path)))
        return f"{source.file}:{line}: {f'{key}: ' if key else ''}"

    def folder(self, *path: str) -> Path:
        """Return the folder of the file in which a key was written."""
        return Path(os.path.abspath(self._find(path)[0].file)).parent

    def _find(self, path: KeyPath) -> tuple[Source, int]:
        """Return the source of the longest beginning of a path that was written, and its length."""
        for size in range(len(path), 0, -1):
            for source in reversed(self.sources):
                if path[:size] in source.keys:
                    return source, size
        return self.sources[0], 0


def located(document: Document, file: str, root: KeyPath = ()) -> tuple[LocatedMapping, list[str]]:
    """Return the mapping at a path of a document, with dotted keys nested.

    ``a.b: 1`` becomes ``a: {b: 1}``.

    Returns:
        The mapping, and an error message for each key that occurs twice.
    """
    mapping: Any = document.value
    for key in root:
        mapping = mapping[key]
    nested: dict[str, JsonValue] = {}
    source = Source(document, file, root, {(): ()})
    leaves: list[KeyPath] = []
    duplicates = []
    for key_path, leaf in _leaves(mapping or {}):
        path = _split(key_path)
        other = next((p for p in leaves if _overlap(p, path)), None)
        if other is not None:
            first = document.line(root + source.keys[other])
            location = f"{file}:{document.line(root + key_path)}: {'.'.join(map(str, root + path))}"
            duplicates.append(f"{location}: duplicate key, first in line {first}")
            continue
        leaves.append(path)
        for size in range(1, len(key_path) + 1):
            for depth in range(1, len(_split(key_path[:size])) + 1):
                source.keys.setdefault(path[:depth], key_path[:size])
        parent: Any = nested
        for name in path[:-1]:
            parent = parent.setdefault(name, {})
        parent[path[-1]] = leaf
    return LocatedMapping(nested, (source,)), duplicates


def merge(base: LocatedMapping, change: LocatedMapping) -> LocatedMapping:
    """Return the base with changes; neither argument is modified.

    Mappings are merged key by key, other values replaced. A mapping whose ``type`` changes is
    replaced as well, because another type has other keys.
    """
    value = copy.deepcopy(_merge_values(base.value, change.value))
    return LocatedMapping(value, base.sources + change.sources)


def _merge_values(base: Any, change: Any) -> Any:
    if not isinstance(base, dict) or not isinstance(change, dict):
        return change
    if "type" in base and base["type"] != change.get("type", base["type"]):
        return change
    return base | {key: _merge_values(base.get(key), value) for key, value in change.items()}


def _overlap(first: KeyPath, second: KeyPath) -> bool:
    """Whether two paths are equal, or one is a section that contains the other."""
    size = min(len(first), len(second))
    return first[:size] == second[:size]


def _split(path: KeyPath) -> KeyPath:
    """Return a path whose dotted keys are several keys."""
    return tuple(itertools.chain.from_iterable(str(key).split(".") for key in path))


def _leaves(value: dict[str, JsonValue], path: KeyPath = ()) -> Iterator[tuple[KeyPath, JsonValue]]:
    """Yield every key whose value is not a mapping, or an empty one, in the order of the file."""
    for key, item in value.items():
        if isinstance(item, dict) and item:
            yield from _leaves(item, (*path, key))
        else:
            yield (*path, key), item
