"""Given values, which replace or complete those of a file: ``--set``, and `Config.with_values`."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

from regard.components.common.references import References
from regard.core.errors import UserError
from regard.core.formatting import format_count
from regard.models.settings.base import Problem
from regard.models.settings.secrets import LITERAL, is_secret
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
    mapping: LocatedMapping,
    key: str,
    text: str,
    parse: Callable[[str, KeyPath], Document],
    option: str = "",
) -> LocatedMapping:
    """Return a mapping with another value at one key; see `merge`.

    The assignments are recorded. One whose value does not count any more is removed, and a literal
    secret is refused, also if a later value would replace it.

    Args:
        mapping: The mapping, which is not modified.
        key: Such as ``training.max_epochs``; ``model.encoder.0.units`` is in the first item of a
            list.
        text: The value as YAML, or as JSON, which is YAML.
        parse: Parses the text as the value of a key.
        option: The option that gives the value, for messages; empty in Python.

    Raises:
        UserError: The list has no such item, the text is not YAML, or it has a literal secret.
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
    change = LocatedMapping(nested, (source,), references)
    literals = (leaf for leaf, item in leaves(nested) if item and leaf not in references)
    if problems := [Problem(leaf, LITERAL) for leaf in literals if is_secret(leaf)]:
        raise change.error(problems, "Set the variable, and give the reference in quotes.")
    counted = tuple(
        one
        for one in mapping.sources
        if not (one.assignment and _is_overridden(one.assignment, key, document.value))
    )
    earlier = dataclasses.replace(mapping, sources=counted)
    return merge(earlier, change)


def _is_overridden(assignment: str, key: str, value: Any) -> bool:
    """Return whether nothing of an assignment counts after a key has got a value.

    A mapping only completes an earlier value. A ``type`` that is no longer that of its section has
    removed the keys of the section.
    """
    earlier = assignment.partition("=")[0]
    is_within = earlier == key or earlier.startswith(f"{key}.")
    return is_within and not isinstance(value, dict) and not key.endswith(".type")


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
