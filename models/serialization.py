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


def layer_config(value: Any) -> Any:
    """A nested layer as plain data for ``get_config``."""
    return keras.saving.serialize_keras_object(value)


def layer_from_config(value: Any) -> Any:
    """The inverse of ``layer_config``; leaves a layer that is one already as it is."""
    return keras.saving.deserialize_keras_object(value) if isinstance(value, dict) else value
