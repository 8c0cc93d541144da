"""YAML files: plain values with the line of every key, and environment variables."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import JsonValue
from ruamel.yaml import YAML
from ruamel.yaml.constructor import ConstructorError
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError

from regard.components.common.references import REFERENCE, References
from regard.core.formatting import truncate
from regard.core.yaml_text import find_excess
from regard.models.settings.base import KeyPath, Problem
from regard.models.settings.secrets import is_secret

# A span placeholder in a path: unquoted, YAML reads it as a mapping.
_PLACEHOLDER = re.compile(r"(?<!\$)\{[A-Z]+(:[0-9]+)?\}")
_MERGE = "tag:yaml.org,2002:merge"
MAX_CHARACTERS = 200_000
# A YAML file, or its content.
ConfigSource = str | os.PathLike[str] | Mapping[str, Any]
_TIMESTAMP = "tag:yaml.org,2002:timestamp"
# No file name and no UTF-8 text can contain them; YAML has them as escapes.
_IMPOSSIBLE = re.compile("[\0\ud800-\udfff]")


@dataclass
class Document:
    """A parsed YAML file.

    Attributes:
        value: Plain values: mappings, lists, texts, numbers, booleans, None.
        lines: The line of each key, from 1; the empty path is the file.
        problems: Everything that is wrong with the file.
        references: The variables that the values refer to.
        unset: The keys whose values refer to variables that are not set, each with a problem.
    """

    value: Any = None
    lines: dict[KeyPath, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    references: References = field(default_factory=dict)
    unset: set[KeyPath] = field(default_factory=set)

    def line(self, path: KeyPath) -> int:
        """Return the line of a key, or of the closest section around it that is in the file."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


def parse(text: str, variables: Mapping[str, str], key: KeyPath = ()) -> Document:
    """Parse YAML 1.2 text.

    Args:
        text: One YAML document.
        variables: The values of ``${NAME}`` and ``${NAME:-default}``; ``$${`` is a literal ``${``.
        key: The key whose value the text is; empty for a file. The paths in the document begin
            below it.

    Returns:
        The document. Syntax errors are among its ``problems``; nothing is raised.
    """
    document = Document()
    yaml = YAML(typ="safe", pure=True)
    line = 1
    message = ""
    try:
        if len(text) > MAX_CHARACTERS:
            message = f"the file has more than {MAX_CHARACTERS:,} characters"
        elif excess := find_excess(yaml.parse(text)):
            line, message = excess
        node = yaml.compose(text) if not message else None
        if node is not None:
            document.value = _Reader(yaml, document, variables, key).read(node, ())
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        message = f"invalid YAML: {', '.join(filter(None, (error.context, error.problem)))}"
        if any(map(_PLACEHOLDER.search, text.splitlines()[line - 1 : line])):
            message += ". Put a path with {...} in quotes"
        elif "expected <block end>" in message:
            message += ". Check the indentation of this line"
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        message = f"the character U+{error.character:04X} is not allowed in YAML"
    except ValueError:  # ruamel.yaml does not check the number of an escape
        line = text.count("\n", 0, max(text.find("\\U"), 0)) + 1
        message = "invalid YAML: an escape is not a character"
    if message:
        document.problems.append(Problem((), message, line))
    return document


class _Reader:
    """Converts YAML nodes to plain values, and records lines and problems."""

    def __init__(self, yaml: YAML, document: Document, variables: Mapping[str, str], key: KeyPath):
        self.yaml = yaml
        self.key = key
        self.document = document
        self.variables = variables

    def read(self, node: Node, path: KeyPath) -> JsonValue:
        self.document.lines.setdefault(path, node.start_mark.line + 1)
        if isinstance(node, MappingNode):
            return self.read_mapping(node, path)
        if isinstance(node, SequenceNode):
            return [self.read(item, (*path, i)) for i, item in enumerate(node.value)]
        assert isinstance(node, ScalarNode)
        return self.read_scalar(node, path)

    def read_mapping(self, node: MappingNode, path: KeyPath) -> dict[str, JsonValue]:
        merged: dict[str, JsonValue] = {}
        values: dict[str, JsonValue] = {}
        for key, item in node.value:
            name = str(key.value)
            if key.tag == _MERGE:
                for part in item.value if isinstance(item, SequenceNode) else [item]:
                    value = self.read(part, path)
                    if isinstance(value, dict):
                        merged = {**value, **merged}
            elif not isinstance(key, ScalarNode) or not name.isprintable():
                self.add_problem(path, key, "a key must be a text of printable characters")
            elif name in values:
                line = self.document.lines[(*path, name)]
                message = f"duplicate key, first given in line {line}"
                self.add_problem((*path, name), key, message)
            else:
                self.document.lines[(*path, name)] = key.start_mark.line + 1
                values[name] = self.read(item, (*path, name))
        return {**merged, **values}

    def read_scalar(self, node: ScalarNode, path: KeyPath) -> Any:
        tag = str(node.tag)
        if "${" in node.value:
            text = REFERENCE.sub(lambda match: self.variable(match, node, path), node.value)
            # A plain ${STEPS} becomes the number in the variable; a quoted one, and a password of
            # digits, stays a text.
            if node.style is None and not (text and self.is_secret(path)):
                tag = str(self.yaml.resolver.resolve(ScalarNode, text, (True, False)))
            node = ScalarNode(tag, text, node.start_mark, node.end_mark, node.style)
        if match := _IMPOSSIBLE.search(node.value):
            message = f"the character U+{ord(match[0]):04X} is not allowed"
            self.add_problem(path, node, message)
            return None
        if tag == _TIMESTAMP:  # no key is a date; the text says which one
            return node.value
        try:
            return self.yaml.constructor.construct_object(node)
        except (ConstructorError, ValueError, LookupError):
            name = truncate(tag.split(":", 2)[-1])
            value = "the value" if self.is_secret(path) else repr(truncate(node.value))
            self.add_problem(path, node, f"{value} is not a valid {name}")
            return None

    def variable(self, match: re.Match[str], node: Node, path: KeyPath) -> str:
        name, default = match.groups()
        if name is None:
            return "$"
        value = self.variables.get(name)
        if value is None and default is None:
            alternative = "" if self.is_secret(path) else f", or use ${{{name}:-DEFAULT}}"
            message = f"the environment variable {name} is not set; set it{alternative}"
            self.add_problem(path, node, message)
            self.document.unset.add(path)
        if value:
            self.document.references.setdefault(path, {})[name] = value
        return value or default or ""  # as in a shell, ":-" also replaces an empty variable

    def is_secret(self, path: KeyPath) -> bool:
        return is_secret((*self.key, *path))

    def add_problem(self, path: KeyPath, node: Node, message: str) -> None:
        self.document.problems.append(Problem(path, message, node.start_mark.line + 1))
