"""The models and choices that a type annotation allows."""

import itertools
import types
import typing
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BaseModel

from regard.models.settings.base import KeyPath, PluginSection


def models_in(annotation: Any) -> list[type[BaseModel]]:
    """Return the models that an annotation allows; several are variants, selected by ``type``."""
    if isinstance(annotation, type) and issubclass(annotation, PluginSection):
        return list(annotation.registry.plugins())
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    origin = typing.get_origin(annotation)
    parts = typing.get_args(annotation)
    if origin is Annotated:
        return models_in(parts[0])
    if origin in (typing.Union, types.UnionType):
        return list(itertools.chain.from_iterable(map(models_in, parts)))
    return []


def choices_in(annotation: Any) -> list[str]:
    """Return the choices of the first Literal in an annotation."""
    parts = typing.get_args(annotation)
    if typing.get_origin(annotation) is Literal:
        return [str(choice) for choice in parts]
    for part in parts:
        if choices := choices_in(part):
            return choices
    return []


def type_of(model: type[BaseModel]) -> Any:
    """Return the value of ``type`` for a variant."""
    return model.model_fields["type"].default if "type" in model.model_fields else None


def sections_of(
    model: type[BaseModel], path: KeyPath = ()
) -> Iterator[tuple[KeyPath, type[BaseModel]]]:
    """Yield a model and all sections in it with their paths; variants have the same path."""
    yield path, model
    for name, field in model.model_fields.items():
        for part in models_in(field.annotation):
            yield from sections_of(part, (*path, name))
