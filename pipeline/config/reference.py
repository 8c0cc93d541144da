"""The configuration reference, generated from the models: commented YAML and a JSON schema."""

from __future__ import annotations

import json
import textwrap
import typing
from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from regard.pipeline.config.annotations import choices_in, models_in
from regard.pipeline.config.config import DEFAULT_TASK, config_class

_WIDTH = 96
_BOUNDS = {"ge": ">= {}", "gt": "> {}", "le": "<= {}", "lt": "< {}"}


def json_schema(task: str = DEFAULT_TASK) -> dict[str, Any]:
    """Return the JSON schema of a task's YAML file, with all descriptions, for editors."""
    body = config_class(task).model_json_schema()
    body.pop("description", None)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **body,
        "title": "Regard pipeline",
    }


def config_reference(task: str = DEFAULT_TASK) -> str:
    """Return a task's complete YAML file: every key with its description and default."""
    required = "name and data.train" if task == DEFAULT_TASK else "name, task and data.train"
    head = f"# All configuration options with their defaults. Only {required} are required."
    return "\n".join([head, *_model(config_class(task), None, "")]) + "\n"


def _model(
    model: type[BaseModel],
    values: BaseModel | None,
    prefix: str,
    base_variant: type[BaseModel] | None = None,
) -> Iterator[str]:
    """Yield the keys of a model with their values.

    Args:
        model: The model.
        values: The values; None: the defaults.
        prefix: Indentation, and comment signs for alternatives.
        base_variant: The variant that the model is an alternative to; common fields are omitted.
    """
    for name, field in _fields(model):
        common = base_variant.model_fields.get(name) if base_variant is not None else None
        if name != "type" and common is not None and common.description == field.description:
            continue
        value = getattr(values, name) if values is not None else _default(field)
        if not prefix:
            yield ""
        if name != "type" or base_variant is None:
            yield from _comment(_describe(field), prefix)
        models = models_in(field.annotation)
        if not models or (value is None and not field.is_required()):
            yield f"{prefix}{name}: {_yaml(value)}"
            for other in models:
                yield from _variant(other, None, f"{prefix}  ")
            continue
        default = value if isinstance(value, BaseModel) else None
        chosen = type(default) if default is not None else models[0]
        yield f"{prefix}{name}:"
        yield from _model(chosen, default, f"{prefix}  ")
        for other in models:
            if other is not chosen:
                yield from _variant(other, chosen, f"{prefix}  ")


def _variant(
    model: type[BaseModel], base_variant: type[BaseModel] | None, prefix: str
) -> Iterator[str]:
    """Yield an alternative as a comment: the fields that differ from the variant shown."""
    yield from _comment(f"Or: {(model.__doc__ or '').strip().splitlines()[0]}", prefix)
    yield from _model(model, None, f"{prefix}#   ", base_variant or BaseModel)


def _fields(model: type[BaseModel]) -> list[tuple[str, FieldInfo]]:
    # The discriminator comes first. A section that can only be null does not apply to the task.
    fields = [(name, f) for name, f in model.model_fields.items() if f.annotation is not type(None)]
    return sorted(fields, key=lambda item: item[0] != "type")


def _default(field: FieldInfo) -> Any:
    if field.examples and field.is_required():
        return field.examples[0]
    value = field.get_default(call_default_factory=True)
    return None if value is PydanticUndefined else value


def _describe(field: FieldInfo) -> str:
    text = field.description or ""
    facts = []
    bounds = list(_bounds(field))
    choices = choices_in(field.annotation)
    if len(choices) > 1:
        facts.append(" | ".join(choices))
    if bounds:
        facts.append(" and ".join(bounds))
    if field.examples and not field.is_required():
        facts.append(f"for example {_yaml(field.examples[0])}")
    return f"{text} [{'; '.join(facts)}]" if facts else text


def _bounds(field: FieldInfo) -> Iterator[str]:
    metadata = list(field.metadata)
    for part in (field.annotation, *typing.get_args(field.annotation)):
        if typing.get_origin(part) is Annotated:
            metadata += typing.get_args(part)[1:]
    for item in metadata:
        for source in (item, *getattr(item, "metadata", ())):
            for name, text in _BOUNDS.items():
                limit = getattr(source, name, None)
                if isinstance(limit, int | float):
                    yield text.format(f"{limit:g}")


def _comment(text: str, prefix: str) -> Iterator[str]:
    yield from textwrap.wrap(
        text,
        width=_WIDTH,
        initial_indent=f"{prefix}# ",
        subsequent_indent=f"{prefix}# ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _yaml(value: Any) -> str:
    """Return a value on one line, in YAML's flow style."""
    if value is None or isinstance(value, bool | int | float):
        return json.dumps(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_yaml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_yaml(item) for item in value) + "]"
    text = str(value)
    plain = text and not text[0].isdigit() and not set(text) & set("{}[],:#&*!|>'\"%@` $")
    return text if plain else json.dumps(text, ensure_ascii=False)
