"""Given values, which replace or complete those of a file: ``--set``, and `Config.with_values`."""

import functools
from collections.abc import Callable
from typing import Any

from regard.components.common.references import References
from regard.core.errors import UserError
from regard.core.formatting import format_count
from regard.pipeline.config.document import Document, KeyPath
from regard.pipeline.config.located import LocatedMapping, Source, leaves, mask_references, merge

OPTION = "--set"


def split_option(text: str) -> tuple[str, str]:
    """Return key and value of ``KEY=VALUE``.

    Raises:
        UserError: The text has no key or no equals sign.
    """
    key, separator, value = text.partition("=")
    if not key.strip() or not separator:
        remedy = f"Write for example {OPTION} training.max_epochs=3."
        raise UserError(f"{text!r} is not KEY=VALUE.", OPTION, remedy)
    return key.strip(), value


def with_value(
    mapping: LocatedMapping, key: str, text: str, parse: Callable[[str], Document], option: str = ""
) -> LocatedMapping:
    """Return a mapping with another value at one key; see `merge`.

    Args:
        mapping: The mapping, which is not modified.
        key: Such as ``training.max_epochs``; ``model.encoder.0.units`` is in the first item of a
            list.
        text: The value as YAML, or as JSON, which is YAML.
        parse: Parses the text.
        option: The option that gives the value, for messages; empty in Python.

    Raises:
        UserError: The list has no such item, or the text is not YAML.
    """
    where = f"{option} {key}".strip()
    path = _path_of(mapping.value, key, where)
    document = parse(text)
    if document.problems:
        message = mask_references(document.problems[0], document.references)
        raise UserError(message, f"{where}={text}")
    nested: Any = functools.reduce(lambda value, name: {name: value}, path[::-1], document.value)
    keys: dict[KeyPath, KeyPath] = {}
    for leaf, _ in leaves(nested):
        for size in range(1, len(leaf) + 1):
            # A section that the file has keeps its line.
            if size >= len(path) or not mapping.has(leaf[:size]):
                keys[leaf[:size]] = leaf[:size]
    references: References = {(*path, *p): names for p, names in document.references.items()}
    source = Source(Document(nested), option, (), keys, f"{key}={text}")
    return merge(mapping, LocatedMapping(nested, (source,), references))


def _path_of(value: Any, key: str, where: str) -> KeyPath:
    """Return the path of a key with dots; in a list, its part is the number of an item."""
    path: KeyPath = ()
    for part in key.split("."):
        name: str | int = part
        if isinstance(value, list):
            if not part.isdecimal() or int(part) >= len(value):
                message = f"{part!r} is no item of a list of {format_count(len(value), 'item')}."
                raise UserError(message, where, "Items are counted from 0.")
            name = int(part)
            value = value[name]
        else:
            value = value.get(part) if isinstance(value, dict) else None
        path = (*path, name)
    return path
