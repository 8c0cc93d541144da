"""How classes of ours are registered with Keras, and how one is chosen by its name."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, TypeVar

import keras

T = TypeVar("T", bound=type)

register = keras.saving.register_keras_serializable(package="regard")


def by_name(kind: str, choices: Mapping[str, T], name: str) -> T:
    """The class called ``name``.

    Raises:
        ValueError: there is none; the text names the nearest and all choices.
    """
    if name in choices:
        return choices[name]
    near = difflib.get_close_matches(str(name), choices, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise ValueError(f"Unknown {kind} {name!r}.{hint} Choices: {', '.join(sorted(choices))}.")


def spec(
    kind: str, choices: Mapping[str, Any], value: str | Mapping[str, Any], **common: Any
) -> Any:
    """An instance of what ``value`` asks for: a name, or ``{"type": name, **options}``.

    Args:
        kind: what the choices are, for the error.
        choices: the classes by their names.
        value: the name, alone or with arguments of the constructor.
        common: further arguments, the same for every choice.

    Raises:
        ValueError: there is no such name, no ``type``, or the class refuses an option's value.
        TypeError: the class has no such option.
    """
    if not isinstance(value, Mapping):
        return by_name(kind, choices, value)(**common)
    options = dict(value)
    if "type" not in options:
        raise ValueError(f"A {kind} with options needs its name as 'type'; there are {options}.")
    return by_name(kind, choices, options.pop("type"))(**options, **common)


def layer_config(value: Any) -> Any:
    """A nested layer as plain data for ``get_config``."""
    return keras.saving.serialize_keras_object(value)


def layer_from_config(value: Any) -> Any:
    """The inverse of ``layer_config``; leaves a layer that is one already as it is."""
    return keras.saving.deserialize_keras_object(value) if isinstance(value, dict) else value
