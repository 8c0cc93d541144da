"""References to environment variables, such as ``${TOKEN}``, in what Regard writes.

The values are in memory and in the environment only: a token must not appear in the record of a
run, in the registry, or in a report.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

# ``${NAME}``, ``${NAME:-default}``, and ``$${`` for a literal ``${``.
REFERENCE = re.compile(r"\$(?:\$(?=\{)|\{([A-Za-z_]\w*)(?::-([^}]*))?\})")

Path = tuple[str | int, ...]
# The values of the variables by their names, by the key whose text refers to them.
References = dict[Path, dict[str, str]]


def restore_references(value: Any, references: References) -> Any:
    """Return plain values with references in place of the values of variables.

    Args:
        value: mappings, lists, texts, numbers, booleans and None.
        references: the variables; the keys within a key of theirs count too.
    """

    def restore(leaf: Any, path: Path) -> Any:
        known = {
            text.replace("${", "$${"): f"${{{name}}}"
            for place, variables in references.items()
            if path[: len(place)] == place
            for name, text in variables.items()
        }
        if not isinstance(leaf, str):
            # Beam's options are texts in the end, so a password of digits is no number.
            is_number = path[:1] == ("beam",) and isinstance(leaf, int | float)
            return known.get(str(leaf), leaf) if is_number else leaf
        # The longest first; a pattern that matches nothing if there are no variables.
        values = "|".join(map(re.escape, sorted(known, key=len, reverse=True))) or "(?!)"
        return re.sub(values, lambda match: known[match[0]], leaf.replace("${", "$${"))

    return _map_leaves(value, restore, ())


def resolve_references(value: Any, variables: Mapping[str, str], references: References) -> Any:
    """Return plain values with the values of variables, the inverse of ``restore_references``.

    Args:
        value: the result of ``restore_references``.
        variables: the values by name.
        references: the references to add those of the texts to.

    Raises:
        LookupError: a variable is not set.
    """

    def resolve(leaf: Any, path: Path) -> Any:
        def variable(match: re.Match[str]) -> str:
            if match[1] is None:
                return "$"
            if match[1] not in variables:
                raise LookupError(f"the environment variable {match[1]} is not set")
            return references.setdefault(path, {}).setdefault(match[1], variables[match[1]])

        return REFERENCE.sub(variable, leaf) if isinstance(leaf, str) else leaf

    return _map_leaves(value, resolve, ())


def _map_leaves(value: Any, change: Callable[[Any, Path], Any], path: Path) -> Any:
    if isinstance(value, dict):
        return {key: _map_leaves(item, change, (*path, key)) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_map_leaves(item, change, (*path, i)) for i, item in enumerate(value)]
    return change(value, path)
