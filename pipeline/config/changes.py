"""Given values, which replace or complete those of a file: ``--set``, and `Config.with_values`."""

import dataclasses
import functools
import json
from collections.abc import Callable
from typing import Any

from regard.components.common.references import References, restore_references
from regard.core.errors import UserError
from regard.core.formatting import format_count
from regard.models.settings.base import Problem
from regard.pipeline.config.document import Document, KeyPath
from regard.pipeline.config.located import LocatedMapping, Source, leaves, mask_references, merge

OPTION = "--set"
_REPLACED = object()  # nothing of a value counts any more


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
    mapping: LocatedMapping,
    key: str,
    text: str,
    parse: Callable[[str, KeyPath], Document],
    option: str = "",
) -> LocatedMapping:
    """Return a mapping with another value at one key; see `merge`.

    What the value replaces in values that were given before is removed from their assignments,
    because they are recorded, and it may be a password that was given by mistake.

    Args:
        mapping: The mapping, which is not modified.
        key: Such as ``training.max_epochs``; ``model.encoder.0.units`` is in the first item of a
            list.
        text: The value as YAML, or as JSON, which is YAML.
        parse: Parses the text as the value of a key.
        option: The option that gives the value, for messages; empty in Python.

    Raises:
        UserError: The list has no such item, or the text is not YAML.
    """
    where = f"{option} {key}".strip()
    path = _path_of(mapping.value, key, where)
    document = parse(text, path)
    references: References = {(*path, *p): names for p, names in document.references.items()}
    if document.problems:
        first = document.problems[0]
        message = mask_references(Problem((*path, *first.path), first.message), references)
        raise UserError(message, f"{where}={text}")
    nested: Any = functools.reduce(lambda value, name: {name: value}, path[::-1], document.value)
    keys: dict[KeyPath, KeyPath] = {}
    for leaf, _ in leaves(nested):
        for size in range(1, len(leaf) + 1):
            # A section that the file has keeps its line.
            if size >= len(path) or not mapping.has(leaf[:size]):
                keys[leaf[:size]] = leaf[:size]
    source = Source(Document(nested), option, (), keys, f"{key}={text}")
    merged = merge(mapping, LocatedMapping(nested, (source,), references))
    earlier = (_without(one, nested, merged.references) for one in mapping.sources)
    return dataclasses.replace(merged, sources=(*filter(None, earlier), source))


def _without(source: Source, change: Any, references: References) -> Source | None:
    """Return a source with only what still counts after a change; None if nothing does.

    Args:
        source: A file, which remains as it is, or a given value.
        change: Nested values, given later.
        references: The variables that the values refer to.
    """
    value = source.document.value
    rest = _remainder(value, change) if source.assignment else value
    if rest == value:
        return source
    if rest is _REPLACED:
        return None
    key = source.assignment.partition("=")[0]
    recorded = restore_references(rest, references)
    for part in key.split("."):
        recorded = recorded[part if part in recorded else int(part)]  # the item of a list
    text = json.dumps(recorded, ensure_ascii=False, default=str)
    return dataclasses.replace(source, document=Document(rest), assignment=f"{key}={text}")


def _remainder(value: Any, change: Any) -> Any:
    """Return what counts of a value if a change is merged into it later, as `merge` does.

    Merging the remainder and then the change has the same result as merging the value and then the
    change.
    """
    if not isinstance(change, dict):
        return _REPLACED
    if isinstance(value, list) and change and set(change) <= set(range(len(value))):
        items = [_remainder(v, change[i]) if i in change else v for i, v in enumerate(value)]
        return [None if item is _REPLACED else item for item in items]
    if not isinstance(value, dict):
        return None  # which replaces the section before the change completes it
    rest = {}
    for key, item in value.items():
        is_other_type = key == "type" and change.get(key, item) != item  # replaces the section
        left = _remainder(item, change[key]) if key in change and not is_other_type else item
        if left is not _REPLACED:
            rest[key] = left
    return rest if rest or not value else _REPLACED


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
