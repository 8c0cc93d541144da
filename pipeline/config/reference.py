"""Configurations for users: the starter of a task, the commented reference, the JSON schema."""

import json
import re
import textwrap
import typing
from collections.abc import Iterator, Sequence, Set
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, JsonValue
from pydantic.fields import FieldInfo

from regard.components.settings.task_keys import inapplicable_keys
from regard.core.errors import UserError
from regard.core.files import atomic_write
from regard.models import tasks
from regard.models.settings.annotations import choices_in, models_in
from regard.pipeline.config.config import DEFAULT_TASK, NAME_PATTERN, config_class, require_task

_WIDTH = 96
JSON_SCHEMA = "https://json-schema.org/draft/2020-12/schema"
_NUMBERS = ("integer", "number", "boolean")
_RESTRICTIONS = {"enum", "pattern", "minLength", "maxLength"}  # of texts
_ANNOTATIONS = ("title", "description", "default", "examples")
_REFERENCE = {"type": "string", "pattern": r"\$\{", "description": "A variable, ${NAME}."}
# By this line, editors find the schema; `regard init` writes both.
_SCHEMA_FILE = "regard.{task}.schema.json"
_SCHEMA_LINE = "# yaml-language-server: $schema={file}\n"
_BOUNDS = {"ge": ">= {}", "gt": "> {}", "le": "<= {}", "lt": "< {}"}


def write_starter(task: str, path: Path) -> Path:
    """Write the starter configuration of a task for a pipeline with the name of the file.

    Returns the JSON schema, which is written to the same folder; the first line refers to it.

    Args:
        task: The task, or the name of an example such as ``quickstart``.
        path: The file.

    Raises:
        UserError: The task does not exist, the name is not valid, or the file exists.
    """
    text = example(task, path)
    if text is None:
        require_task(task, "TASK")
    name = path.stem
    if not re.fullmatch(NAME_PATTERN, name):
        message = f"The file name sets the name of the pipeline, but {name!r} is not a valid name."
        remedy = "Use small letters, digits and hyphens, for example --out my-model.yaml."
        raise UserError(message, "--out", remedy)
    if path.exists():
        remedy = "Give another name with --out."
        raise UserError("The file already exists.", str(path), remedy)
    text = text or starter(task, name)
    match = re.search(r"^task: (\w+)", text, re.MULTILINE)
    task = match[1] if match else DEFAULT_TASK
    schema = path.with_name(_SCHEMA_FILE.format(task=task))
    atomic_write(schema, json.dumps(json_schema(task), ensure_ascii=False, indent=1) + "\n")
    atomic_write(path, _SCHEMA_LINE.format(file=schema.name) + text)
    return schema


def example(name: str, path: Path) -> str | None:
    """Return an example of ``configs/`` for a pipeline with the name of a file; None without it."""
    file = resources.files("regard") / "configs" / f"{name}.yaml"
    if not re.fullmatch(NAME_PATTERN, name) or not file.is_file():
        return None
    text = file.read_text(encoding="utf-8").replace(f"configs/{name}.yaml", str(path))
    return re.sub(rf"^name: {name}\b", f"name: {path.stem}", text, flags=re.MULTILINE)


def starter(task: str, name: str) -> str:
    """Return the starter configuration of a task, for a pipeline of the given name."""
    file = resources.files(tasks.package(task)) / "starter.yaml"
    return file.read_text(encoding="utf-8").replace("NAME", name)


def json_schema(task: str) -> dict[str, JsonValue]:
    """Return the JSON schema of a task's YAML file, with all descriptions, for editors.

    It accepts every valid file, except that keys which do not apply to the task are missing. What
    depends on several keys is for `regard validate`.
    """
    schema = config_class(task).model_json_schema()
    for path in inapplicable_keys(task):
        _remove_key(schema, schema["$defs"], path)
    schema = _admit_shorthands(schema)
    return {"$schema": JSON_SCHEMA, **schema, "title": "Regard pipeline"}


def _remove_key(schema: dict[str, Any], definitions: dict[str, Any], path: Sequence[str]) -> None:
    """Remove a key from a schema, and from all variants of a section that have it."""
    if "$ref" in schema:
        _remove_key(definitions[schema["$ref"].removeprefix("#/$defs/")], definitions, path)
    for variant in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        _remove_key(variant, definitions, path)
    properties, (name, *rest) = schema.get("properties", {}), path
    _remove_from_default(schema.get("default"), path)
    if name in properties and rest:
        _remove_key(properties[name], definitions, rest)
    else:
        properties.pop(name, None)


def _remove_from_default(default: Any, path: Sequence[str]) -> None:
    """Remove a key from the default of a section."""
    for name in path[:-1]:
        default = default.get(name) if isinstance(default, dict) else None
    if isinstance(default, dict):
        default.pop(path[-1], None)


def _admit_shorthands(schema: Any) -> Any:
    """Return a schema for what users write, from one for parsed values.

    ``${NAME}`` may stand for any value, and a mapping without ``type`` for several variants, of
    which a parser chooses the default one.
    """
    if isinstance(schema, list):
        return [_admit_shorthands(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    result = {name: _admit_shorthands(value) for name, value in schema.items()}
    result.pop("discriminator", None)
    if "oneOf" in result:
        result["anyOf"] = result.pop("oneOf")
    # A property can have the name of a restriction; its value is a schema.
    has_restriction = any(not isinstance(result.get(name, {}), dict) for name in _RESTRICTIONS)
    if result.get("type") in _NUMBERS or has_restriction:
        outer = {name: result.pop(name) for name in _ANNOTATIONS if name in result}
        return {**outer, "anyOf": [result, _REFERENCE]}
    return result


def config_reference(task: str) -> str:
    """Return a task's complete YAML file: every key with its description and default.

    Keys that do not apply to the task are left out.
    """
    required = "name and data.train" if task == DEFAULT_TASK else "name, task and data.train"
    head = f"# All configuration options with their defaults. Only {required} are required."
    skipped = frozenset(inapplicable_keys(task))
    return "\n".join([head, *_model(config_class(task), None, "", skipped)]) + "\n"


def _model(
    model: type[BaseModel],
    values: BaseModel | None,
    prefix: str,
    skipped: Set[tuple[str, ...]],
    base_variant: type[BaseModel] | None = None,
) -> Iterator[str]:
    """Yield the keys of a model with their values.

    Args:
        model: The model.
        values: The values; None: the defaults.
        prefix: Indentation, and comment signs for alternatives.
        skipped: Keys to leave out, as paths from the model.
        base_variant: The variant that the model is an alternative to; common fields are omitted.
    """
    # The discriminator comes first.
    for name, field in sorted(model.model_fields.items(), key=lambda item: item[0] != "type"):
        if field.annotation is type(None) or (name,) in skipped:
            continue  # the task has no such section, or the key does not apply to it
        common = base_variant.model_fields.get(name) if base_variant is not None else None
        if name != "type" and common is not None and common.description == field.description:
            continue
        value = getattr(values, name) if values is not None else _default(field)
        if not prefix:
            yield ""
        if name != "type" or base_variant is None:
            yield from _comment(_describe(field), prefix)
        models = models_in(field.annotation)
        inner = {path[1:] for path in skipped if path[0] == name}
        chosen = BaseModel
        if models and (value is not None or field.is_required()):
            default = value if isinstance(value, BaseModel) else None
            chosen = type(default) if default is not None else models[0]
            yield f"{prefix}{name}:"
            yield from _model(chosen, default, f"{prefix}  ", inner)
        else:
            yield f"{prefix}{name}: {_yaml(value)}"
        for other in models:  # alternatives are comments with the fields that differ
            if other is not chosen:
                title = (other.__doc__ or "").partition("\n")[0]
                yield from _comment(f"Or: {title}", f"{prefix}  ")
                yield from _model(other, None, f"{prefix}  #   ", inner, chosen)


def _default(field: FieldInfo) -> Any:
    if field.is_required():
        return field.examples[0] if field.examples else None
    return field.get_default(call_default_factory=True)


def _describe(field: FieldInfo) -> str:
    choices = choices_in(field.annotation)
    facts = [" | ".join(choices)] if len(choices) > 1 else []
    facts += filter(None, [" and ".join(_bounds(field))])
    if field.examples and not field.is_required():
        facts.append(f"for example {_yaml(field.examples[0])}")
    text = field.description or ""
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
    lines = textwrap.wrap(
        text, _WIDTH - len(prefix) - 2, break_long_words=False, break_on_hyphens=False
    )
    yield from (f"{prefix}# {line}" for line in lines)


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
