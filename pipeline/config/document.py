"""YAML files: plain values with the line of every key, and environment variables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.constructor import ConstructorError
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError

from regard.models.settings.base import Path, Problem

_VARIABLE = re.compile(
    r"\$(?:(?P<escaped>\$(?=\{))|\{(?P<name>[A-Za-z_]\w*)(?::-(?P<default>[^}]*))?\})"
)
# A span placeholder in a path: unquoted, YAML reads it as a mapping.
_PLACEHOLDER = re.compile(r"(?<!\$)\{[A-Z]+(:[0-9]+)?\}")
_MERGE = "tag:yaml.org,2002:merge"
_TIMESTAMP = "tag:yaml.org,2002:timestamp"
_TEXT = "tag:yaml.org,2002:str"
# Aliases multiply: a small file may stand for billions of values.
_MAX_CHARACTERS = 200_000
_MAX_VALUES = 100_000


@dataclass
class Document:
    """A parsed YAML file.

    Attributes:
        value: Plain values: mappings, lists, texts, numbers, booleans, None.
        lines: The line of each key, from 1; the empty path is the file.
        problems: Everything that is wrong with the file.
    """

    value: Any = None
    lines: dict[Path, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def line(self, path: Path) -> int:
        """Return the line of a key, or of the closest section around it that is in the file."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


def parse(text: str, variables: Mapping[str, str]) -> Document:
    """Parse YAML 1.2 text.

    Args:
        text: One YAML document.
        variables: The values of ``${NAME}`` and ``${NAME:-default}``; ``$${`` is a literal ``${``.

    Returns:
        The document. Syntax errors are among its ``problems``; nothing is raised.
    """
    document = Document()
    if len(text) > _MAX_CHARACTERS:
        message = f"the file has {len(text):,} characters; at most {_MAX_CHARACTERS:,} are allowed"
        document.problems.append(Problem((), message, 1))
        return document
    yaml = YAML(typ="safe", pure=True)
    try:
        node = yaml.compose(text)
        if node is not None:
            document.value = _Reader(yaml, document, variables).read(node, ())
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = ", ".join(part for part in (error.context, error.problem) if part)
        line = mark.line + 1 if mark else None
        if line and any(map(_PLACEHOLDER.search, text.splitlines()[line - 1 : line])):
            what += ". Put a path with {...} in quotes"
        document.problems.append(Problem((), f"invalid YAML: {what}", line))
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        what = f"the character U+{error.character:04X} is not allowed in YAML"
        document.problems.append(Problem((), what, line))
    except (RecursionError, _TooManyValues):
        message = (
            f"the file is nested too deeply, or aliases make over {_MAX_VALUES:,} values of it"
        )
        document.value = None
        document.problems.append(Problem((), message, 1))
    return document


class _TooManyValues(Exception):
    """A file has more values than any configuration needs."""


class _Reader:
    """Converts YAML nodes to plain values, and records lines and problems."""

    def __init__(self, yaml: YAML, document: Document, variables: Mapping[str, str]):
        self.yaml = yaml
        self.document = document
        self.variables = variables
        self.parents: list[Node] = []
        self.count = 0

    def read(self, node: Node, path: Path) -> Any:
        if any(node is parent for parent in self.parents):
            self.add_problem(path, node, "the alias refers to a section that contains it")
            return None
        self.count += 1
        if self.count > _MAX_VALUES:
            raise _TooManyValues
        self.document.lines.setdefault(path, node.start_mark.line + 1)
        self.parents.append(node)
        try:
            if isinstance(node, MappingNode):
                return self.read_mapping(node, path)
            if isinstance(node, SequenceNode):
                return [self.read(item, (*path, i)) for i, item in enumerate(node.value)]
            assert isinstance(node, ScalarNode)
            return self.read_scalar(node, path)
        finally:
            self.parents.pop()

    def read_mapping(self, node: MappingNode, path: Path) -> dict[str, Any]:
        first_lines: dict[str, int] = {}
        merged: dict[str, Any] = {}
        own: dict[str, Any] = {}
        for key, item in node.value:
            line = key.start_mark.line + 1
            if key.tag == _MERGE:
                for part in item.value if isinstance(item, SequenceNode) else [item]:
                    value = self.read(part, path)
                    merged = {**value, **merged} if isinstance(value, dict) else merged
                continue
            if not isinstance(key, ScalarNode):
                self.add_problem(path, key, "a key must be a text")
                continue
            name = str(key.value)
            if name in first_lines:
                message = f"duplicate key, first given in line {first_lines[name]}"
                self.add_problem((*path, name), key, message)
                continue
            first_lines[name] = line
            self.document.lines[(*path, name)] = line
            own[name] = self.read(item, (*path, name))
        return {**merged, **own}

    def read_scalar(self, node: ScalarNode, path: Path) -> Any:
        tag = _tag(node.tag)
        if "${" in node.value:
            text = _VARIABLE.sub(lambda match: self.variable(match, node, path), node.value)
            # A plain ${STEPS} becomes the number in the variable; a quoted one stays a text.
            if node.style is None:
                tag = _tag(self.yaml.resolver.resolve(ScalarNode, text, (True, False)))
            node = ScalarNode(tag, text, node.start_mark, node.end_mark, node.style)
        if tag == _TIMESTAMP:  # no key is a date; the text says which one
            return node.value
        try:
            return self.yaml.constructor.construct_object(node)
        except (ConstructorError, ValueError):
            name = tag.split(":", 2)[-1]
            self.add_problem(path, node, f"{node.value!r} is not a valid {name}")
            return None

    def variable(self, match: re.Match[str], node: Node, path: Path) -> str:
        if match["escaped"]:
            return "$"
        name, default = match["name"], match["default"]
        # As in a shell, ":-" also replaces an empty variable.
        value = self.variables.get(name)
        if default is not None and not value:
            return default
        if value is None:
            message = f"the environment variable {name} is not set. Set it (export {name}=...), or "
            message += f"write ${{{name}:-DEFAULT}}"
            self.add_problem(path, node, message)
            return ""
        return value

    def add_problem(self, path: Path, node: Node, message: str) -> None:
        self.document.problems.append(Problem(path, message, node.start_mark.line + 1))


def _tag(tag: object) -> str:
    return _TEXT if tag is None else str(tag)
