"""The models and choices that a type annotation allows."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BaseModel


def models_in(annotation: Any) -> list[type[BaseModel]]:
    """Return the models that an annotation allows; several are variants, selected by ``type``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    origin = typing.get_origin(annotation)
    if origin is Annotated:
        return models_in(typing.get_args(annotation)[0])
    if origin in (typing.Union, types.UnionType):
        return [model for part in typing.get_args(annotation) for model in models_in(part)]
    return []


def choices_in(annotation: Any) -> list[str]:
    """Return the choices of the first Literal in an annotation."""
    if typing.get_origin(annotation) is Literal:
        return [str(choice) for choice in typing.get_args(annotation)]
    for part in typing.get_args(annotation):
        if choices := choices_in(part):
            return choices
    return []


def type_of(model: type[BaseModel]) -> Any:
    """Return the value of ``type`` for a variant."""
    field = model.model_fields.get("type")
    return field.default if field is not None else None


def paths_of(name: str, model: type[BaseModel], path: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the sections that have a key of this name."""
    for key, field in model.model_fields.items():
        if key == name and path:
            yield ".".join((*path, key))
        for part in models_in(field.annotation):
            yield from paths_of(name, part, (*path, key))
