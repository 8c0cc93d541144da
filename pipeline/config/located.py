"""Nested mappings that know in which file and line each key was written, and given values."""

import copy
import dataclasses
import itertools
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from regard.components.common.references import References
from regard.core.errors import ConfigError, LocatedMessage
from regard.models.settings.base import Problem
from regard.pipeline.config.document import Document, KeyPath

_MIN_SECRET = 8  # characters; what is shorter, such as a number, helps to understand an error
_MIN_PART = 4  # characters of a value that a message truncates


@dataclasses.dataclass(frozen=True)
class Source:
    """A mapping in a file, or one given value.

    Attributes:
        document: What was parsed.
        file: The file, the option of a given value, or empty for a value in Python.
        root: The path of the mapping in the file.
        keys: How each key of the mapping was written.
        assignment: ``KEY=VALUE`` for a given value, which has no lines.
        folder: The folder that relative paths refer to.
    """

    document: Document
    file: str
    root: KeyPath
    keys: dict[KeyPath, KeyPath]
    assignment: str = ""
    folder: Path = dataclasses.field(default_factory=Path.cwd)


@dataclasses.dataclass(frozen=True)
class LocatedMapping:
    """A nested mapping and the sources of its keys; later ones take precedence.

    Attributes:
        value: The values.
        sources: The sources.
        references: The environment variables that the values refer to.
        unset: The keys whose values refer to variables that are not set.
    """

    value: dict[str, JsonValue]
    sources: tuple[Source, ...]
    references: References = dataclasses.field(default_factory=dict)
    unset: frozenset[KeyPath] = frozenset()

    def location(self, path: KeyPath) -> str:
        """Return file, line and key of a path, for the beginning of an error message.

        A key that was not written has the line of the nearest enclosing one.
        """
        return self._place(Problem(path, ""))[1]

    def error(self, problems: Iterable[Problem], remedy: str) -> ConfigError:
        """Return an error that lists problems with their file, line and key.

        Args:
            problems: The problems.
            remedy: The remedy for all of them.
        """
        rows = []
        for problem in problems:
            message = mask_references(problem, self.references)
            located, label = self._place(problem)
            rows.append((f"{label}{message}", dataclasses.replace(located, text=message)))
        rows.sort(key=lambda row: row[1].line or 0)
        error = ConfigError("\n".join(text for text, _ in rows), remedy=remedy)
        error.problems = tuple(located for _, located in rows)
        return error

    def has(self, path: KeyPath) -> bool:
        """Return whether a key was written."""
        return any(path in source.keys for source in self.sources)

    def folder(self, *path: str) -> Path:
        """Return the folder that a relative path under a key refers to."""
        return self._find(path)[0].folder

    def _place(self, problem: Problem) -> tuple[LocatedMessage, str]:
        """Return where a problem is, and the beginning of its message."""
        path = problem.path
        source, size = self._find(path)
        key = ".".join(map(str, (*source.root, *path)))
        label = f"{key}: " if key else ""
        if source.assignment:
            return LocatedMessage("", key=key), f"{source.file} {label}".lstrip()
        inner = (*source.root, *source.keys[path[:size]], *path[size:])
        line = problem.line or source.document.line(inner)
        if not source.file:
            return LocatedMessage("", key=key), label
        return LocatedMessage("", source.file, line, key), f"{source.file}:{line}: {label}"

    def _find(self, path: KeyPath) -> tuple[Source, int]:
        """Return the source of the longest beginning of a path that was written, and its length."""
        for size in range(len(path), 0, -1):
            for source in reversed(self.sources):
                if path[:size] in source.keys:
                    return source, size
        return self.sources[0], 0


def mask_references(problem: Problem, references: References) -> str:
    """Return the message of a problem with references in place of the values of variables.

    Args:
        problem: The problem. Its message may show the value of the key or of one around it, and
            may truncate it within the value of a variable.
        references: The variables that the values refer to.
    """
    message = problem.message
    names = {
        value: f"${{{name}}}"
        for place, variables in references.items()
        if _overlap(place, problem.path)
        for name, value in variables.items()
        if len(value) >= _MIN_SECRET
    }
    for value in sorted(names, key=len, reverse=True):
        # As it is, and as Python escapes it; if the text has both quotes, the single ones too.
        for text in (value, repr(value)[1:-1], repr(f"{value}'\"")[1:-4]):
            message = message.replace(text, names[value])
            parts = (text[:size] for size in range(len(text) - 1, _MIN_PART - 1, -1))
            for part, mark in itertools.product(parts, ("...", "…")):
                message = message.replace(part + mark, names[value] + mark)
    return message


def whole(document: Document, file: str = "") -> LocatedMapping:
    """Return the mapping of a document, whose keys may contain dots; empty if it is none."""
    value = document.value if isinstance(document.value, dict) else {}
    keys: dict[KeyPath, KeyPath] = {(): ()}
    for path, _ in leaves(value):
        keys |= {path[:size]: path[:size] for size in range(1, len(path) + 1)}
    source = Source(document, file, (), keys, folder=_folder_of(file))
    return LocatedMapping(value, (source,), document.references, frozenset(document.unset))


def _folder_of(file: str) -> Path:
    return Path(os.path.abspath(file)).parent if file else Path.cwd()


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
    source = Source(document, file, root, {(): ()}, folder=_folder_of(file))
    paths: list[KeyPath] = []
    references: References = {}
    duplicates = []
    for key_path, leaf in leaves(mapping or {}):
        path = _split(key_path)
        other = next((p for p in paths if _overlap(p, path)), None)
        if other is not None:
            first = document.line(root + source.keys[other])
            location = f"{file}:{document.line(root + key_path)}: {'.'.join(map(str, root + path))}"
            duplicates.append(f"{location}: duplicate key, first in line {first}")
            continue
        paths.append(path)
        for size in range(1, len(key_path) + 1):
            for depth in range(1, len(_split(key_path[:size])) + 1):
                source.keys.setdefault(path[:depth], key_path[:size])
        parent: Any = nested
        for name in path[:-1]:
            parent = parent.setdefault(name, {})
        parent[path[-1]] = leaf
        full_path = root + key_path
        for place, names in document.references.items():
            if place[: len(full_path)] == full_path:
                references[path + place[len(full_path) :]] = names
    return LocatedMapping(nested, (source,), references), duplicates


def merge(base: LocatedMapping, change: LocatedMapping) -> LocatedMapping:
    """Return the base with changes; neither argument is modified.

    Mappings are merged key by key, other values replaced. A mapping whose ``type`` changes is
    replaced as well, because another type has other keys. Whole numbers as keys change items of a
    list.
    """
    replaced: list[KeyPath] = []
    value = copy.deepcopy(_merge_values(base.value, change.value, (), replaced))

    def remains(place: KeyPath) -> bool:
        return not any(place[: len(path)] == path for path in replaced)

    references = {place: names for place, names in base.references.items() if remains(place)}
    unset = frozenset(filter(remains, base.unset))
    sources = base.sources + change.sources
    return LocatedMapping(value, sources, references | change.references, unset | change.unset)


def _merge_values(base: Any, change: Any, path: KeyPath, replaced: list[KeyPath]) -> Any:
    """Return the base with changes, and add the paths of values that do not come from the base."""
    is_item = isinstance(base, list) and isinstance(change, dict) and change
    if is_item and set(change) <= set(range(len(base))):
        return [
            _merge_values(item, change[i], (*path, i), replaced) if i in change else item
            for i, item in enumerate(base)
        ]
    are_mappings = isinstance(base, dict) and isinstance(change, dict)
    if not are_mappings or ("type" in base and base["type"] != change.get("type", base["type"])):
        replaced.append(path)
        return change
    return base | {
        key: _merge_values(base.get(key), value, (*path, key), replaced)
        for key, value in change.items()
    }


def _overlap(first: KeyPath, second: KeyPath) -> bool:
    """Whether two paths are equal, or one is a section that contains the other."""
    size = min(len(first), len(second))
    return first[:size] == second[:size]


def _split(path: KeyPath) -> KeyPath:
    """Return a path whose dotted keys are several keys."""
    return tuple(itertools.chain.from_iterable(str(key).split(".") for key in path))


def leaves(value: dict[str, JsonValue], path: KeyPath = ()) -> Iterator[tuple[KeyPath, JsonValue]]:
    """Yield every key whose value is not a mapping, or an empty one, in the order of the file."""
    for key, item in value.items():
        if isinstance(item, dict) and item:
            yield from leaves(item, (*path, key))
        else:
            yield (*path, key), item
