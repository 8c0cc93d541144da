"""Pydantic's errors as problems at the keys of sections, with suggestions for wrong names."""

import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pydantic import BaseModel, JsonValue, ValidationError

from regard.core.suggestions import closest_matches, suggest
from regard.models.settings.annotations import models_in, sections_of, type_of
from regard.models.settings.base import KeyPath, Problem
from regard.models.settings.secrets import is_secret
from regard.models.settings.synonyms import SYNONYMS

# Receives an unknown key and its value, and yields what is known about that key and the keys in the
# value, as the ends of messages.
KeyExplanations = Callable[[KeyPath, Any], Iterable[tuple[KeyPath, str]]]
_MAX_PLACES = 3
# By the first word of pydantic's type of error.
_EXPECTED = {
    "int": "a whole number",
    "float": "a number",
    "finite": "a finite number",
    "string": "a text",
    "bool": "true or false",
    "dict": "a mapping (key: value)",
    "model": "a mapping (key: value)",
    "tuple": "a list",
    "list": "a list",
}


def validation_problems(
    error: ValidationError,
    root: type[BaseModel],
    explain: KeyExplanations | None = None,
    section: str | None = None,
) -> list[Problem]:
    """Return the problems that pydantic found.

    Args:
        error: The error.
        root: The model of all sections, in which unknown keys are looked up.
        explain: Explains unknown keys.
        section: The section of the model that was validated; None: the whole model.
    """
    result = []
    prefix = () if section is None else (section,)
    for detail in error.errors(include_url=False):
        path, owner, annotation = _locate(root, (*prefix, *detail["loc"]))
        if detail["type"].startswith("union_tag") and isinstance(detail["input"], Mapping):
            path = (*path, "type")  # otherwise a name replaces the mapping
        if detail["type"] == "extra_forbidden":
            explanations = dict(explain(path, detail["input"])) if explain is not None else {}
            fields = list(owner.model_fields) if owner is not None else []
            explanations[path] = _hint(path, root, fields, explanations.get(path, ""))
            result += [Problem(key, f"unknown key{hint}") for key, hint in explanations.items()]
        else:
            result.append(Problem(path, _message(detail, path, owner, annotation)))
    return list(dict.fromkeys(result))


def show(value: Any, limit: int = 60) -> str:
    """Return a value as YAML, truncated if it is long."""
    words = {None: "null", True: "true", False: "false"}
    text = words[value] if value is None or isinstance(value, bool) else repr(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."


def unknown(value: Any, choices: Iterable[object], what: str = "a choice") -> str:
    """Return the message about a value that is none of the choices."""
    names = [str(choice) for choice in choices]
    return f"{show(value)} is not {what}{f'. {suggest(value, names, SYNONYMS)}' if names else ''}"


def _message(
    detail: Any,
    path: KeyPath,
    owner: type[BaseModel] | None,
    annotation: Any,
) -> str:
    kind = detail["type"]
    invalid = detail["input"]
    is_hidden = is_secret(path) or any(
        is_secret((name,)) for model in models_in(annotation) for name in model.model_fields
    )
    suffix = "another value was given" if is_hidden else f"{show(invalid)} was given"
    fields = owner.model_fields if owner is not None else {}
    field = fields.get(str(path[-1])) if path else None
    description = ""
    if field is not None and field.description:
        description = field.description
    if kind == "missing":
        return f"is missing: {description}".removesuffix(": ")
    if kind == "none_required":
        return "this task has no such section; remove it"
    if kind == "string_pattern_mismatch":
        rule = description or f"it must match {detail['ctx']['pattern']}"
        return f"{show(invalid)} is not possible: {rule}"
    first_word = kind.split("_")[0]
    if first_word == "union" and not isinstance(invalid, dict):
        first_word = "dict"
    if first_word in _EXPECTED and "_too_" not in kind:
        null = " or null" if type(None) in typing.get_args(annotation) else ""
        is_unquoted = first_word == "string" and isinstance(invalid, int | float)
        hint = "; put it in quotes" if is_unquoted else ""
        return f"{_EXPECTED[first_word]}{null} is expected, {suffix}{hint}"
    if first_word in ("union", "literal"):
        value = invalid.get("type") if isinstance(invalid, dict) else invalid
        if first_word == "union":
            return unknown(value, [type_of(variant) for variant in models_in(annotation)])
        return unknown(value, re.findall("'([^']*)'", detail["ctx"]["expected"]))
    message = detail["msg"].replace("Input should be", "must be")
    return f"{message[0].lower()}{message[1:]}; {suffix}"


def _hint(path: KeyPath, root: type[BaseModel], fields: list[str], explanation: str) -> str:
    """Return where an unknown key belongs, what it is called, or what it may stand for.

    Args:
        path: The path of the unknown key.
        root: The model of all sections.
        fields: The keys of the section that does not have it.
        explanation: What is known about the key.
    """
    *outer, key = path
    section = tuple(part for part in outer if isinstance(part, str))  # of an item: of its list
    sections = list(sections_of(root))
    models = [model for place, model in sections if place == section and key in model.model_fields]
    if models:
        types = dict.fromkeys(str(type_of(model)) for model in models)
        return f" for this type; it goes with type: {' or '.join(types)}"
    if explanation:
        return explanation
    names = []
    for name in (key, SYNONYMS.get(str(key).lower())):
        for place, model in sections:
            if place and name in model.model_fields:
                names.append(".".join(map(str, (*place, name))))
    if not names or closest_matches(key, fields, synonyms=SYNONYMS):
        return f". {suggest(key, fields, SYNONYMS)}" if fields else ""
    return f" here. Did you mean {' or '.join(list(dict.fromkeys(names))[:_MAX_PLACES])}?"


def _locate(
    model: type[BaseModel], location: tuple[int | str, ...]
) -> tuple[KeyPath, type[BaseModel] | None, Any]:
    """Return the path of the keys, the model that has the last key, and its annotation.

    Pydantic's own path also contains the types of variants and of JSON values, which are not keys.
    """
    path: KeyPath = ()
    owner: type[BaseModel] | None = None
    annotation: Any = model
    for part in location:
        annotation = _without_null(annotation)
        models = models_in(annotation)
        variants = {type_of(variant): variant for variant in models} if len(models) > 1 else {}
        if part in variants:
            annotation = variants[part]
        elif annotation is JsonValue:
            annotation = dict[str, JsonValue] if part == "dict" else tuple[JsonValue, ...]
        elif not str(part).startswith("["):  # such as [key]: the key is wrong, not its value
            path = (*path, part)
            owner = models[0] if models else None
            if owner is not None and part in owner.model_fields:
                annotation = owner.model_fields[str(part)].annotation
            elif typing.get_origin(annotation) is tuple:
                annotation = typing.get_args(annotation)[0]
            elif typing.get_origin(annotation) is dict:  # the user chooses the keys
                annotation = typing.get_args(annotation)[1]
            elif not (isinstance(part, int) and models):  # an item keeps that of its list
                annotation = None
    return path, owner, annotation


def _without_null(annotation: Any) -> Any:
    """Return the annotation of an optional value without None, and without ``Annotated``."""
    parts = [part for part in typing.get_args(annotation) if part is not type(None)]
    origin = typing.get_origin(annotation)
    is_optional = origin in (typing.Union, types.UnionType) and len(parts) == 1
    if origin is typing.Annotated or is_optional:
        return _without_null(parts[0])
    return annotation
