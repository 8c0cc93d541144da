"""The documentation of the configuration, made from the models: YAML with comments, JSON schema."""

from __future__ import annotations

import json
import textwrap
import typing
from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from pipeline.config.annotations import choices_in, models_in
from pipeline.config.sections import Config

_WIDTH = 96
_BOUNDS = {"ge": ">= {}", "gt": "> {}", "le": "<= {}", "lt": "< {}"}


def schema() -> dict[str, Any]:
    """The JSON schema of the YAML file, with every description, for editors."""
    body = Config.model_json_schema()
    body.pop("description", None)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **body,
        "title": "Regard pipeline",
    }


def reference() -> str:
    """A whole YAML file: every key with its default, and what it means above it."""
    head = "# Every key of a pipeline, with its default; only name and data.train must be given."
    return "\n".join([head, *_model(Config, None, 0)]) + "\n"


def _model(model: type[BaseModel], given: BaseModel | None, depth: int) -> Iterator[str]:
    for name, field in _fields(model):
        value = getattr(given, name) if given is not None else _default(field)
        if depth == 0:
            yield ""
        yield from _comment(_describe(field), depth)
        models = models_in(field.annotation)
        if not models or (value is None and not field.is_required()):
            yield f"{'  ' * depth}{name}: {_yaml(value)}"
            for other in models:
                yield from _variant(other, None, depth + 1)
            continue
        default = value if isinstance(value, BaseModel) else None
        chosen = type(default) if default is not None else models[0]
        yield f"{'  ' * depth}{name}:"
        yield from _model(chosen, default, depth + 1)
        for other in models:
            if other is not chosen:
                yield from _variant(other, chosen, depth + 1)


def _variant(model: type[BaseModel], shown: type[BaseModel] | None, depth: int) -> Iterator[str]:
    """Another choice, commented out: what differs from the one that is shown, if one is."""
    yield from _comment(f"Or: {(model.__doc__ or '').strip().splitlines()[0]}", depth)
    for name, field in _fields(model):
        common = shown.model_fields.get(name) if shown is not None else None
        if name != "type" and common is not None and common.description == field.description:
            continue
        if name != "type":
            yield from _comment(_describe(field), depth, "#   # ")
        yield f"{'  ' * depth}#   {name}: {_yaml(_default(field))}"


def _fields(model: type[BaseModel]) -> list[tuple[str, FieldInfo]]:
    # What tells the variants apart comes first, also where the rest is inherited.
    return sorted(model.model_fields.items(), key=lambda item: item[0] != "type")


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


def _comment(text: str, depth: int, mark: str = "# ") -> Iterator[str]:
    prefix = "  " * depth + mark
    yield from textwrap.wrap(
        text,
        width=_WIDTH,
        initial_indent=prefix,
        subsequent_indent=prefix,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _yaml(value: Any) -> str:
    """A value on one line, in YAML's flow style."""
    if value is None or isinstance(value, bool | int | float):
        return json.dumps(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_yaml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_yaml(item) for item in value) + "]"
    text = str(value)
    plain = text and not text[0].isdigit() and not set(text) & set("{}[],:#&*!|>'\"%@` $")
    return text if plain else json.dumps(text, ensure_ascii=False)
