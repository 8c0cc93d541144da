"""The configuration keys that differ between two versions of a model."""

from collections.abc import Iterable, Mapping
from typing import TypedDict


class ConfigChange(TypedDict, total=False):
    """A key with its values: ``a`` in the older version, ``b`` in the newer one.

    A version that does not have the key has no value.
    """

    key: str
    a: object
    b: object


def config_changes(older: Mapping[str, object], newer: Mapping[str, object]) -> list[ConfigChange]:
    """Return the keys whose values differ, in the order of the configurations."""
    a, b = flatten(older), flatten(newer)
    changes: list[ConfigChange] = []
    for key in dict.fromkeys([*a, *b]):
        change: ConfigChange = {"key": key}
        if key in a:
            change["a"] = a[key]
        if key in b:
            change["b"] = b[key]
        if len(change) == 2 or a[key] != b[key]:
            changes.append(change)
    return changes


def flatten(value: object, key: str = "") -> dict[str, object]:
    """Flatten nested mappings to one level: ``{"model.encoder.units": 128}``.

    A list of plain values is one value; sections in a list have their index in the key.
    """
    if isinstance(value, Mapping) and value:
        children: Iterable[tuple[object, object]] = value.items()
    elif isinstance(value, list) and any(isinstance(child, Mapping) for child in value):
        children = enumerate(value)
    else:
        return {key: value} if key else {}
    leaves = {}
    for name, child in children:
        leaves.update(flatten(child, f"{key}.{name}" if key else str(name)))
    return leaves
