"""Registration of layers with Keras, and their creation by name."""

import functools
import typing
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

import keras
from pydantic import TypeAdapter, ValidationError

from regard.core.suggestions import suggest

T = TypeVar("T", bound=type)

register = keras.saving.register_keras_serializable(package="regard")


def choice(name: str, **defaults: Any) -> Callable[[T], T]:
    """Register a class that YAML files can choose; its constructor's arguments are the options.

    The class gets the attribute ``choice_name``. Everything else happens without an import of the
    class: `regard.models.settings.layer_options` reads its source, so the arguments must be
    literals.

    Args:
        name: the value of ``type`` in YAML files.
        defaults: the defaults in YAML files that are not those of the constructor.
    """

    def register_class(layer: T) -> T:
        layer.choice_name = name  # type: ignore[attr-defined]
        return register(layer)

    return register_class


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


def checked_arguments(values: Mapping[str, Any], exclude: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return ``constructor_arguments`` after a check of their types and bounds.

    Args:
        values: ``locals()`` of a constructor that calls ``super().__init__()``.
        exclude: as in ``constructor_arguments``.

    Raises:
        ValueError: a value does not suit the annotation of its argument.
    """
    arguments = constructor_arguments(values, exclude)
    types = _argument_types(values["__class__"])
    for name, value in arguments.items():
        try:
            types[name].validate_python(value)
        except ValidationError as error:
            message = error.errors(include_url=False)[0]["msg"]
            raise ValueError(f"{name}: {message}; {value!r} was given.") from None
    return arguments


@functools.lru_cache(maxsize=256)
def _argument_types(layer: type) -> dict[str, TypeAdapter[Any]]:
    """Return the types of the annotated arguments of a class's constructor."""
    hints = typing.get_type_hints(layer.__init__, include_extras=True)  # type: ignore[misc]
    return {name: TypeAdapter(hint) for name, hint in hints.items() if name != "kwargs"}


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
