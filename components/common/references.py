"""References to environment variables, such as ``${TOKEN}``, in what Regard writes.

The values are in memory and in the environment only: a token must not appear in the record of a
run, in the registry, or in a report.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

# ``${NAME}``, ``${NAME:-default}``, and ``$${`` for a literal ``${``.
REFERENCE = re.compile(r"\$(?:\$(?=\{)|\{([A-Za-z_]\w*)(?::-([^}]*))?\})")

Path = tuple[str | int, ...]
# The values of the variables by their names, by the key whose text refers to them.
References = dict[Path, dict[str, str]]


def restore_references(value: Any, references: References, path: Path = ()) -> Any:
    """Return plain values with references in place of the values of variables.

    Args:
        value: mappings, lists, texts, numbers, booleans and None.
        references: the variables; the keys within a key of theirs count too.
        path: the key of the value.
    """
    if isinstance(value, dict):
        return {key: restore_references(v, references, (*path, key)) for key, v in value.items()}
    if isinstance(value, list | tuple):
        return [restore_references(v, references, (*path, i)) for i, v in enumerate(value)]
    known = {
        text.replace("${", "$${"): f"${{{name}}}"
        for place, variables in references.items()
        if path[: len(place)] == place
        for name, text in variables.items()
    }
    if not isinstance(value, str):
        # Beam's options are texts in the end, so a password of digits is no number.
        is_number = path[:1] == ("beam",) and isinstance(value, int | float)
        return known.get(str(value), value) if is_number else value
    escaped = value.replace("${", "$${")
    if not known:
        return escaped
    values = "|".join(map(re.escape, sorted(known, key=len, reverse=True)))
    return re.sub(values, lambda match: known[match[0]], escaped)


def resolve_references(
    value: Any, variables: Mapping[str, str], references: References, path: Path = ()
) -> Any:
    """Return plain values with the values of variables, the inverse of ``restore_references``.

    Args:
        value: the result of ``restore_references``.
        variables: the values by name.
        references: receives what the texts refer to.
        path: the key of the value.

    Raises:
        LookupError: a variable is not set.
    """
    if isinstance(value, dict):
        return {
            key: resolve_references(v, variables, references, (*path, key))
            for key, v in value.items()
        }
    if isinstance(value, list):
        items = enumerate(value)
        return [resolve_references(v, variables, references, (*path, i)) for i, v in items]

    def variable(match: re.Match[str]) -> str:
        if match[1] is None:
            return "$"
        return references.setdefault(path, {}).setdefault(match[1], variables[match[1]])

    return REFERENCE.sub(variable, value) if isinstance(value, str) else value
