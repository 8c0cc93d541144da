"""YAML text to plain values, with the line of every key, and environment variables filled in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from models.settings.base import Path, Problem

_VARIABLE = re.compile(
    r"\$(?:(?P<escaped>\$(?=\{))|\{(?P<name>[A-Za-z_]\w*)(?::-(?P<default>[^}]*))?\})"
)
# Of a path that names spans: what YAML takes for a mapping where it stands first or inside of one.
_PLACEHOLDER = re.compile(r"(?<!\$)\{[A-Z]+(:[0-9]+)?\}")
_MERGE = "tag:yaml.org,2002:merge"


@dataclass
class Document:
    """The values of a YAML file, the line of each key from 1 on, and what is wrong with it."""

    value: Any = None
    lines: dict[Path, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def line(self, path: Path) -> int:
        """The line of the key, or of the nearest one around it that is in the file."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader with the scalars of YAML 1.2: ``1e-3`` is a number, ``no`` a word."""

    yaml_implicit_resolvers: dict[str, Any] = {}


for _tag, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?[0-9]+|0x[0-9a-fA-F]+", list("-+0123456789")),
    (
        "float",
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf)|\.(?:nan|NaN)",
        list("-+0123456789."),
    ),
    ("merge", r"<<", ["<"]),
):
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), _first
    )


def parse(text: str, variables: Mapping[str, str]) -> Document:
    """Reads YAML text; what is wrong with it is in the document's problems, not raised."""
    document = Document()
    loader = None
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is not None:
            document.value = _Reader(loader, document, variables).read(node, ())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = ", ".join(part for part in (error.context, error.problem) if part)
        line = mark.line + 1 if mark else None
        if line and any(map(_PLACEHOLDER.search, text.splitlines()[line - 1 : line])):
            what += "; a path with {...} must stand in quotes here"
        document.problems.append(Problem((), f"this is not YAML: {what}", line))
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        what = f"the character U+{error.character:04X} may not stand in YAML"
        document.problems.append(Problem((), what, line))
    finally:
        if loader is not None:
            loader.dispose()
    return document


class _Reader:
    def __init__(self, loader: _Loader, document: Document, variables: Mapping[str, str]):
        self.loader = loader
        self.document = document
        self.variables = variables
        self.open: list[yaml.Node] = []

    def read(self, node: yaml.Node, path: Path) -> Any:
        if any(node is outer for outer in self.open):
            self.fail(path, node, "the alias stands inside of what it names")
            return None
        self.document.lines.setdefault(path, node.start_mark.line + 1)
        self.open.append(node)
        try:
            if isinstance(node, yaml.MappingNode):
                return self.mapping(node, path)
            if isinstance(node, yaml.SequenceNode):
                return [self.read(item, (*path, i)) for i, item in enumerate(node.value)]
            assert isinstance(node, yaml.ScalarNode)
            return self.scalar(node, path)
        finally:
            self.open.pop()

    def mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        seen: dict[str, int] = {}
        merged: dict[str, Any] = {}
        own: dict[str, Any] = {}
        for key, item in node.value:
            line = key.start_mark.line + 1
            if key.tag == _MERGE:
                for part in item.value if isinstance(item, yaml.SequenceNode) else [item]:
                    value = self.read(part, path)
                    merged = {**value, **merged} if isinstance(value, dict) else merged
                continue
            if not isinstance(key, yaml.ScalarNode):
                self.fail(path, key, "a key must be a word")
                continue
            name = str(key.value)
            if name in seen:
                self.fail((*path, name), key, f"given twice, first in line {seen[name]}")
                continue
            seen[name] = line
            self.document.lines[(*path, name)] = line
            own[name] = self.read(item, (*path, name))
        return {**merged, **own}

    def scalar(self, node: yaml.ScalarNode, path: Path) -> Any:
        if "${" in node.value:
            text = _VARIABLE.sub(lambda match: self.variable(match, node, path), node.value)
            # A plain ${STEPS} becomes the number that the variable holds, a quoted one stays text.
            tag = node.tag
            if node.style is None:
                tag = self.loader.resolve(yaml.ScalarNode, text, (True, False))
            node = yaml.ScalarNode(tag, text, node.start_mark, node.end_mark, node.style)
        try:
            return self.loader.construct_object(node)
        except (yaml.constructor.ConstructorError, ValueError):
            self.fail(path, node, f"{node.value!r} is not a {node.tag.split(':', 2)[-1]}")
            return None

    def variable(self, match: re.Match[str], node: yaml.Node, path: Path) -> str:
        if match["escaped"]:
            return "$"
        name, default = match["name"], match["default"]
        # As in a shell, ":-" also stands in for a variable that is empty.
        value = self.variables.get(name)
        if default is not None and not value:
            return default
        if value is None:
            self.fail(
                path,
                node,
                f"the environment variable {name} is not set; set it (export {name}=...) or give "
                f"a default: ${{{name}:-...}}",
            )
            return ""
        return value

    def fail(self, path: Path, node: yaml.Node, message: str) -> None:
        self.document.problems.append(Problem(path, message, node.start_mark.line + 1))
