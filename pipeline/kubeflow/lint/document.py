"""The documents of a YAML or JSON file, with the line of every key."""

from __future__ import annotations

import dataclasses
from typing import Any

import yaml

from pipeline.kubeflow.lint.fault import Fault

Path = tuple[str | int, ...]


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
    found = []
    loader = yaml.SafeLoader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            if node is None:
                continue
            document = Document(loader.construct_document(node))
            _note_lines(node, (), document.lines)
            if document.value is not None:
                found.append(document)
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        what = getattr(error, "problem", None) or str(error)
        fault = Fault("yaml", (), f"this is not YAML: {what}", "Compile the pipeline again.")
        found.append(Document(None, {(): mark.line + 1 if mark else 1}, fault))
    finally:
        loader.dispose()
    if not found:
        fault = Fault("empty", (), "the file is empty", "Compile the pipeline again.")
        found.append(Document(None, {(): 1}, fault))
    return found


def mapping_at(value: Any, *keys: str) -> dict[str, Any]:
    """The mapping below the given keys; an empty one where something else stands, or nothing."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _note_lines(node: yaml.Node, path: Path, lines: dict[Path, int]) -> None:
    lines.setdefault(path, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            inner = (*path, str(key.value))
            lines[inner] = key.start_mark.line + 1
            _note_lines(value, inner, lines)
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            _note_lines(item, (*path, index), lines)
