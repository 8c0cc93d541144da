"""Pydantic's errors as messages about YAML keys."""

from __future__ import annotations

import typing
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, ValidationError

from regard.models.settings.base import Path, Problem
from regard.models.suggestions import closest_matches, did_you_mean
from regard.pipeline.config.annotations import choices_in, models_in, paths_of, type_of

_EXPECTED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "string_type": "a text",
    "bool_type": "true or false",
    "dict_type": "a mapping (key: value)",
    "model_type": "a mapping (key: value)",
    "model_attributes_type": "a mapping (key: value)",
    "tuple_type": "a list",
    "list_type": "a list",
}
_LIMITS = {
    "greater_than_equal": "must be at least {ge}",
    "greater_than": "must be more than {gt}",
    "less_than_equal": "must be at most {le}",
    "less_than": "must be less than {lt}",
    "string_too_short": "must not be empty",
    "string_too_long": "must have at most {max_length} characters",
}


def problems(error: ValidationError, model: type[BaseModel], value: Any) -> list[Problem]:
    """Return the problems that pydantic found in ``value``."""
    unique: dict[tuple[Path, str], Problem] = {}
    for detail in error.errors(include_url=False):
        path, annotation, owner = _locate(model, value, detail["loc"])
        message = _message(detail, path, annotation, owner, model)
        # A name may replace a mapping; the file then has no key `type`.
        if detail["type"].startswith("union_tag") and isinstance(_at(value, path), dict):
            path = (*path, "type")
        unique.setdefault((path, message), Problem(path, message))
    return list(unique.values())


def _at(value: Any, path: Path) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def show(value: Any, limit: int = 60) -> str:
    """Return a value as YAML, truncated if it is long."""
    words = {None: "null", True: "true", False: "false"}
    text = words[value] if value is None or isinstance(value, bool) else repr(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."


def suggest(word: Any, choices: Iterable[str]) -> str:
    """Return ``. Did you mean X? Choices: ...``, to be appended to a message."""
    names = [str(choice) for choice in choices]
    return f". {did_you_mean(word, names)}Choices: {', '.join(names)}"


def _message(detail: Any, path: Path, annotation: Any, owner: Any, root: type[BaseModel]) -> str:
    kind, invalid, context = detail["type"], detail["input"], detail.get("ctx", {})
    if kind == "extra_forbidden":
        fields = list(owner.model_fields) if owner else []
        return "unknown key" + (
            _elsewhere(path, annotation, root, fields) or suggest(path[-1], fields)
        )
    if kind == "missing":
        field = owner.model_fields.get(path[-1]) if owner else None
        about = f": {field.description}" if field is not None and field.description else ""
        return f"is missing{about}"
    if kind == "none_required":
        return "this task has no such section; remove it"
    if kind == "literal_error":
        choices = choices_in(annotation)
        return f"{show(invalid)} is not a choice" + suggest(invalid, choices)
    if kind.startswith("union_tag"):
        choices = [tag.strip("'") for tag in context.get("expected_tags", "").split(", ")]
        if not isinstance(invalid, dict):
            return f"a mapping (key: value) is expected, {_describe_value(invalid)} was given"
        tag = invalid.get("type")
        return f"{show(tag)} is not a choice" + suggest(tag, choices)
    if kind == "string_pattern_mismatch":
        field = owner.model_fields.get(path[-1]) if owner else None
        rule = field.description if field is not None else f"it must match {context['pattern']}"
        return f"{show(invalid)} is not possible: {rule}"
    if kind == "files":
        return f"{detail['msg']}, {_describe_value(invalid)} was given"
    if kind in _LIMITS:
        return f"{_LIMITS[kind].format(**context)}; {show(invalid)} was given"
    if kind in _EXPECTED:
        null = " or null" if type(None) in typing.get_args(annotation) else ""
        hint = ""
        if kind == "string_type" and isinstance(invalid, int | float | bool):
            hint = "; put it in quotes"
        elif isinstance(invalid, str) and _number(invalid):
            hint = "; leave out the quotes"
        return f"{_EXPECTED[kind]}{null} is expected, {_describe_value(invalid)} was given{hint}"
    return detail["msg"][0].lower() + detail["msg"][1:] + f"; {show(invalid)} was given"


def _describe_value(value: Any) -> str:
    if value is None:
        return "nothing (null)"
    if isinstance(value, bool):
        return show(value)
    if isinstance(value, dict):
        return "a mapping (key: value)" if value else "an empty mapping"
    if isinstance(value, list):
        return f"the list {show(value)}" if value else "an empty list"
    if isinstance(value, str):
        return f"the text {show(value)}"
    return f"the number {show(value)}"


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _elsewhere(path: Path, annotation: Any, root: type[BaseModel], own: list[str]) -> str:
    """Return a hint if another variant or another section has the unknown key."""
    name = str(path[-1])
    variants = [model for model in models_in(annotation) if name in model.model_fields]
    if variants:
        return f" for this type; it goes with type: {type_of(variants[0])}"
    if closest_matches(name, own):
        return ""
    homes = list(paths_of(name, root))
    return f" here. Did you mean {' or '.join(homes)}?" if homes else ""


def _locate(model: type[BaseModel], value: Any, loc: tuple[Any, ...]) -> tuple[Path, Any, Any]:
    """Return the path of the YAML keys, its annotation, and the model that has the last key.

    Pydantic's own path also contains the variants of unions, which are not YAML keys.
    """
    path: Path = ()
    annotation: Any = model
    owner: Any = model
    outer: Any = model
    for part in loc:
        if part == "[key]":  # the key itself is wrong, not its value
            continue
        models = models_in(annotation)
        tagged = [m for m in models if len(models) > 1 and type_of(m) == part]
        if tagged and not (isinstance(value, dict) and part in value):
            outer, annotation, owner = annotation, tagged[0], tagged[0]
            continue
        path = (*path, part)
        if typing.get_origin(annotation) is dict:  # the user chooses the keys
            annotation = outer = typing.get_args(annotation)[1]
            value = value.get(part) if isinstance(value, dict) else None
            continue
        owner = models[0] if models else None
        if models and part in models[0].model_fields:
            annotation = outer = models[0].model_fields[part].annotation
        elif models:
            annotation = outer
        value = value.get(part) if isinstance(value, dict) else None
    return path, annotation, owner
