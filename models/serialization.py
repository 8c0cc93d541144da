"""Registration of layers with Keras, and their creation by name."""

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

import keras

from regard.core.suggestions import suggest

T = TypeVar("T", bound=type)

register = keras.saving.register_keras_serializable(package="regard")


class ConfiguredLayer(keras.layers.Layer):
    """Base class of layers that are rebuilt from ``settings``.

    Attributes:
        settings: the arguments of the constructor without those of ``keras.layers.Layer``; see
            ``constructor_arguments``.
    """

    settings: Any = MappingProxyType({})

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self.settings}

    def create_dense(self, name: str, depth: int | None, units: int, **options: Any) -> Any:
        """Return a built dense sublayer from ``depth`` to ``units`` in this layer's precision.

        Args:
            name: the name of the sublayer.
            depth: the depth of its inputs.
            units: the depth of its outputs.
            options: further arguments of ``keras.layers.Dense``.
        """
        layer = keras.layers.Dense(units, dtype=self.dtype_policy, name=name, **options)
        layer.build((None, depth))
        return layer


def by_name(kind: str, choices: Mapping[str, T], name: str) -> T:
    """Return the class with a name.

    Raises:
        ValueError: the name is unknown; the message suggests the closest one.
    """
    check_name(kind, choices, name)
    return choices[name]


def check_name(kind: str, choices: Collection[str], name: str) -> None:
    """Check that a name is one of the choices.

    Raises:
        ValueError: it is not; the message suggests the closest one.
    """
    if name not in choices:
        raise ValueError(f"Unknown {kind} {name!r}. {suggest(name, sorted(choices))}.")


def spec(
    kind: str, choices: Mapping[str, Any], value: str | Mapping[str, Any], **common: Any
) -> Any:
    """Create an instance from a name or from ``{"type": name, **options}``.

    Args:
        kind: what the choices are, for error messages.
        choices: the classes by name.
        value: the name, alone or with arguments of the constructor.
        common: further arguments that all classes take.

    Raises:
        ValueError: the name is unknown, ``type`` is missing, or the value of an option is invalid.
        TypeError: an option is unknown.
    """
    if not isinstance(value, Mapping):
        return by_name(kind, choices, value)(**common)
    options = dict(value)
    if "type" not in options:
        raise ValueError(f"A {kind} with options needs its name as 'type', but has only {options}.")
    return by_name(kind, choices, options.pop("type"))(**options, **common)


def constructor_arguments(
    values: Mapping[str, Any], exclude: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Return the arguments of a constructor from its ``locals()``, for ``get_config``.

    Call it before the constructor assigns other local variables.

    Args:
        values: ``locals()``.
        exclude: arguments that ``get_config`` adds itself or that subclasses pass.
    """
    hidden = {"self", "kwargs", "__class__", *exclude}
    return {name: value for name, value in values.items() if name not in hidden}
