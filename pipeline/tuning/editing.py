"""A YAML file with other values at some keys, and everything else as it was written."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import yaml

# Text that is text without quotes in any YAML.
_WORD = re.compile(r"(?!(?:null|true|false|yes|no|on|off|y|n)$)[A-Za-z][\w-]*", re.IGNORECASE)


def edited(text: str, values: Mapping[str, Any]) -> str:
    """The text with the values put in; comments and layout stay.

    A key that the text has not is added at the beginning of its section, above what is said about
    the key that was the first; a section at the end.

    Args:
        text: a mapping in YAML.
        values: by key, such as ``training.learning_rate``.
    """
    for key, value in values.items():
        text = _edited(text, key.split("."), value)
    return text


def in_yaml(value: Any) -> str:
    """A value on one line, as a configuration is read."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {in_yaml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(in_yaml, value)) + "]"
    if isinstance(value, str) and _WORD.fullmatch(value):
        return value
    return json.dumps(value, ensure_ascii=False).replace("${", "$${")


def _edited(text: str, names: list[str], value: Any) -> str:
    node: Any = yaml.compose(text)
    for depth, name in enumerate(names):
        found = [(key, item) for key, item in node.value if key.value == name]
        if not found:
            nested = value
            for inner in reversed(names[depth + 1 :]):
                nested = {inner: nested}
            line = f"{name}: {in_yaml(nested)}"
            if depth == 0 and not node.flow_style:
                return f"{text.rstrip()}\n\n{line}\n"
            return _with_key(text, node, line)
        ((key, inner),) = found
        if depth == len(names) - 1 or not isinstance(inner, yaml.MappingNode):
            for last in reversed(names[depth + 1 :]):
                value = {last: value}
            start, end = max(inner.start_mark.index, key.end_mark.index), _end(inner)
            space = "" if text[start - 1 : start].isspace() else " "
            return text[:start] + space + in_yaml(value) + text[end:]
        node = inner
    return text


def _with_key(text: str, section: yaml.MappingNode, line: str) -> str:
    """The text with a key more, which comes first in its section."""
    if section.flow_style:
        start = section.start_mark.index + 1  # behind the brace
        return text[:start] + line + (", " if section.value else "") + text[start:]
    first = section.value[0][0].start_mark
    start = first.index - first.column
    while (above := text[:start].splitlines(keepends=True)[-1:]) and above[0].lstrip()[:1] == "#":
        start -= len(above[0])
    return text[:start] + f"{' ' * first.column}{line}\n" + text[start:]


def _end(node: yaml.Node) -> int:
    """Where a node ends; PyYAML takes what follows a block, comments too, for a part of it."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end(last[1] if isinstance(last, tuple) else last)
    return int(node.end_mark.index)
