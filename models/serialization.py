"""Registration of layers with Keras, and their creation by name."""

import inspect
import operator
import typing
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

import keras
from annotated_types import Ge, Gt, Le, Lt

from regard.core.suggestions import suggest

T = TypeVar("T", bound=type)

register = keras.saving.register_keras_serializable(package="regard")


def choice(name: str, **defaults: Any) -> Callable[[T], T]:
    """Register a class that YAML files can choose; its constructor's arguments are the options.

    The class gets the attribute ``choice_name``. Everything else happens without an import of the
    class: `regard.models.layer_sources` reads its source, so the arguments must be
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

    def __getattr__(self, name: str) -> Any:
        """Explain a missing attribute of a layer that is not built: it may be a weight."""
        try:
            # The modules of PyTorch find their weights in a method of this name.
            find: Any = getattr(super(), "__getattr__", super().__getattribute__)
            return find(name)
        except AttributeError as error:
            if name.startswith("_") or self.__dict__.get("built", True):
                raise
            message = f"{type(self).__name__} has no {name!r} before it is built."
            raise AttributeError(f"{message} {self._how_to_build()}") from error

    def check_built(self) -> None:
        """Check that the layer has its weights, for methods that Keras does not build it for.

        Raises:
            ValueError: it is not built.
        """
        if not self.built:
            raise ValueError(f"{type(self).__name__} is not built. {self._how_to_build()}")

    def _how_to_build(self) -> str:
        parameters = inspect.signature(self.build).parameters.values()
        required = [each.name for each in parameters if each.default is inspect.Parameter.empty]
        return f"Call build({', '.join(required)}) first."

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
        kind: a noun for the choices, for error messages.
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
    """Return ``constructor_arguments`` after a check of bounds and choices in the annotations.

    Args:
        values: ``locals()`` of a constructor that calls ``super().__init__()``.
        exclude: as in ``constructor_arguments``.

    Raises:
        ValueError: a value is out of its bounds, or none of the choices.
    """
    arguments = constructor_arguments(values, exclude)
    types = typing.get_type_hints(values["__class__"].__init__, include_extras=True)
    for name, value in arguments.items():
        _check_argument(name, types[name], value)
    return arguments


def _check_argument(name: str, annotation: Any, value: Any) -> None:
    """Check a value against a type of `regard.core.bounds`, a Literal, or one of them or None."""
    parts = typing.get_args(annotation)
    if typing.get_origin(annotation) is typing.Literal:
        check_name(name, parts, value)
    elif typing.get_origin(annotation) is typing.Annotated:
        # An upper bound of a whole number limits what a YAML file can ask for, not what a layer
        # can do.
        checked = (Ge, Gt) if parts[0] is int else (Ge, Gt, Le, Lt)
        for bound in parts[1:]:
            if isinstance(bound, checked):
                _check_bound(name, bound, value)
    elif type(None) in parts and value is not None:
        for part in parts:
            _check_argument(name, part, value)


def _check_bound(name: str, bound: Any, value: Any) -> None:
    attribute, holds, relation = _BOUNDS[type(bound)]
    limit = getattr(bound, attribute)
    if not isinstance(value, int | float) or not holds(value, limit):
        raise ValueError(f"{name} must be {relation} {limit}, not {value!r}.")


_BOUNDS = {
    Ge: ("ge", operator.ge, "at least"),
    Gt: ("gt", operator.gt, "above"),
    Le: ("le", operator.le, "at most"),
    Lt: ("lt", operator.lt, "below"),
}


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
