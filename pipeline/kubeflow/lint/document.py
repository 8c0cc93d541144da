"""The documents of a YAML or JSON file, as the server reads them, with the line of every key."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator
from typing import Any

import yaml

from pipeline.kubeflow.lint.fault import Fault

Path = tuple[str | int, ...]

_AGAIN = "Compile the pipeline again."
FLOAT = "tag:yaml.org,2002:float"
# A number in YAML 1.2, which the server reads, and a text in YAML 1.1, which PyYAML reads.
NEWER_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)[eE][-+]?[0-9]+\Z")
FLOAT_BEGINS = "-+.0123456789"
# More is no pipeline, and may be meant to break what reads it.
_DEEPEST = 200
_MOST_VALUES = 1_000_000


class _Loader(yaml.CSafeLoader):
    """Reads numbers as the server does."""


_Loader.add_implicit_resolver(FLOAT, NEWER_FLOAT, list(FLOAT_BEGINS))


class _Unread(ValueError):
    """What is no document, and its line."""

    def __init__(self, message: str, line: int):
        super().__init__(message)
        self.line = line


@dataclasses.dataclass
class Document:
    """One document: its value, the line of each key from 1 on, and why it could not be read."""

    value: Any = None
    lines: dict[Path, int] = dataclasses.field(default_factory=dict)
    fault: Fault | None = None

    def line(self, path: Path) -> int:
        """The line of a key, or of the nearest one around it that is in the file."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


def documents(text: str) -> list[Document]:
    """The documents of a file that hold anything; a file without any gives one with a fault."""
    found: list[Document] = []
    text = _without_tabs(text)
    try:
        for document in _read(text):
            if document.value is not None:
                found.append(document)
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        what = getattr(error, "problem", None) or str(error).partition("\n")[0]
        line = mark.line + 1 if mark else getattr(error, "line", 1)
        fault = Fault("yaml", (), f"this is not YAML that the server reads: {what}", _AGAIN)
        found.append(Document(None, {(): line}, fault))
    if not found:
        fault = Fault("empty", (), "the file is empty", _AGAIN)
        found.append(Document(None, {(): 1}, fault))
    return found


def mapping_at(value: Any, *keys: str) -> dict[str, Any]:
    """The mapping below the given keys; an empty one where something else stands, or nothing."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _without_tabs(text: str) -> str:
    """JSON without its tabs, which are never a part of its texts, and which YAML refuses."""
    if "\t" not in text or not text.lstrip().startswith("{"):
        return text
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return text
    return text.replace("\t", " ")


def _read(text: str) -> Iterator[Document]:
    _check_depth(text)
    loader = _Loader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            if node is None:
                continue
            _values(node, {})
            document = Document()
            _note_lines(node, (), document.lines, set())
            document.value = loader.construct_document(node)
            yield document
    finally:
        loader.dispose()


def _check_depth(text: str) -> None:
    """Refuses what is nested so deeply that it would break the reader, and not with an error."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _DEEPEST:
                message = f"more than {_DEEPEST} values are inside of each other"
                raise _Unread(message, _line(event))
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _values(node: yaml.Node, known: dict[int, int]) -> int:
    """How many values a node stands for, with its aliases written out; ``known`` by identity."""
    if id(node) in known:
        if not known[id(node)]:
            raise _Unread("an alias stands inside of what it names", _line(node))
        return known[id(node)]
    known[id(node)] = 0  # begun
    count = 1
    if isinstance(node, yaml.MappingNode):
        count += sum(_values(value, known) for _, value in node.value)
    elif isinstance(node, yaml.SequenceNode):
        count += sum(_values(item, known) for item in node.value)
    if count > _MOST_VALUES:
        message = f"its aliases stand for more than {_MOST_VALUES:,} values"
        raise _Unread(message, _line(node))
    known[id(node)] = count
    return count


def _note_lines(node: yaml.Node, path: Path, lines: dict[Path, int], seen: set[int]) -> None:
    """Notes the line of every key; a node that has several names is gone through once."""
    lines.setdefault(path, _line(node))
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        names: set[str] = set()
        for key, value in node.value:
            name, line = str(key.value), _line(key)
            if name in names:
                raise _Unread(f"the key {name!r} is there twice", line)
            names.add(name)
            lines[(*path, name)] = line
            _note_lines(value, (*path, name), lines, seen)
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            _note_lines(item, (*path, index), lines, seen)


def _line(part: yaml.Node | yaml.Event) -> int:
    return part.start_mark.line + 1 if part.start_mark else 1
