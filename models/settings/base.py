"""What all sections of a YAML file share: strict validation, JSON, and unions by ``type``."""

import inspect
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar, get_args

import pydantic
from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, Strict
from pydantic.fields import FieldInfo
from pydantic_core import SchemaValidator, core_schema

from regard.core.plugins import PluginTable

T = TypeVar("T")

# Where a key stands in a file, the outermost first.
KeyPath = tuple[str | int, ...]
_HEADING = "Attributes:\n"
_ATTRIBUTE = re.compile(r"^    (\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)

# YAML has only lists; the items are validated strictly.
Listed = Annotated[tuple[T, ...], Strict(False)]


def _batch_tokens_tag(value: Any) -> str | None:
    """Return which variant of `BatchTokens` a value is; None: neither."""
    if value == "auto":
        return "[auto]"
    return "[number]" if isinstance(value, int) and not isinstance(value, bool) else None


# A tag in brackets is no part of a key in messages.
BatchTokens = Annotated[
    Annotated[int, Field(ge=1, le=10_000_000), pydantic.Tag("[number]")]
    | Annotated[Literal["auto"], pydantic.Tag("[auto]")],
    pydantic.Discriminator(
        _batch_tokens_tag,
        custom_error_type="number_or_auto",
        custom_error_message="A whole number or auto is expected",
    ),
]


class NotInTrainingKey:
    """Marks a field that does not change the trained weights: ``Annotated[T, NotInTrainingKey]``.

    A training with another value of the field continues from the same checkpoints.
    """


class ReadByTrainer:
    """Marks a field of ``serving`` or ``data`` that the Trainer reads: ``Annotated[T, ...]``.

    The Trainer receives the field in `TrainerConfig`, and runs again if it changes: those of
    ``serving`` in that section, those of ``data`` as fields of `TrainerConfig` itself.
    """


@dataclass(frozen=True)
class Problem:
    """One mistake in a YAML file.

    Attributes:
        path: The key, the outermost section first.
        message: What is wrong, and how to fix it.
        line: The line, from 1; None for the line of the key.
    """

    path: KeyPath
    message: str
    line: int | None = None


def _leave_out_attributes(schema: dict[str, Any]) -> None:
    """Describe a section without its keys, which have descriptions of their own."""
    text, heading, _ = schema.get("description", "").partition(_HEADING)
    if heading:
        schema["description"] = text.strip()


class Section(BaseModel):
    """A mapping of the YAML file: no unknown keys, no implicit conversion, immutable.

    The docstring of a section lists its keys under ``Attributes``, unless a section that it derives
    from does. These texts describe the fields in the reference and in the JSON schema. A
    description that is computed stands at the field.
    """

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        allow_inf_nan=False,
        validate_default=False,
        json_schema_extra=_leave_out_attributes,
    )

    def __init_subclass__(cls, **options: Any) -> None:
        """Give the fields of a section their descriptions."""
        super().__init_subclass__(**options)
        texts: dict[str, str] = {}
        for base in reversed(cls.__mro__):  # python -OO removes docstrings
            listed = inspect.cleandoc(base.__doc__ or "").partition(_HEADING)[2]
            texts |= _ATTRIBUTE.findall(listed)
        for name, annotation in inspect.get_annotations(cls).items():
            default = cls.__dict__.get(name, ...)
            is_field = not isinstance(default, FieldInfo) and "ClassVar" not in str(annotation)
            if name in texts and is_field:
                setattr(cls, name, Field(default, description=" ".join(texts[name].split())))

    def own_problems(self) -> Iterator[Problem]:
        """Yield keys of this section that cannot work together; their paths begin in the section.

        Sections in this section have their own problems, see `find_problems`.
        """
        yield from ()

    def to_json(self, exclude: set[str] | None = None) -> str:
        """Return canonical JSON: equal settings always give the same text.

        Args:
            exclude: Names of fields to leave out.
        """
        return json.dumps(
            self.model_dump(mode="json", exclude=exclude), sort_keys=True, ensure_ascii=False
        )

    def to_kwargs(self) -> dict[str, Any]:
        """Return the fields except ``type`` as plain values, for a constructor."""
        return self.model_dump(mode="json", exclude={"type"})

    def for_trainer(self) -> dict[str, Any]:
        """Return the fields with the marker `ReadByTrainer`, as plain values."""
        return self.model_dump(mode="json", include=self.fields_with(ReadByTrainer))

    def fields_with(self, marker: type) -> set[str]:
        """Return the names of the fields with a marker, such as `ReadByTrainer`."""
        fields = type(self).model_fields.items()
        return {name for name, field in fields if marker in field.metadata}

    def key_json(self) -> str:
        """Return canonical JSON of the fields that may change the trained weights."""
        return self.to_json(exclude=self.fields_with(NotInTrainingKey))


def find_problems(section: Section, path: KeyPath = ()) -> Iterator[Problem]:
    """Yield the problems of a section and of all sections in it.

    Args:
        section: The section.
        path: Its key.
    """
    for problem in section.own_problems():
        yield replace(problem, path=(*path, *problem.path))
    for name, value in section:
        yield from _find_problems_in(value, (*path, name))


def _find_problems_in(value: Any, path: KeyPath) -> Iterator[Problem]:
    """Yield the problems of a section, or of the sections in a list or mapping."""
    if isinstance(value, Section):
        yield from find_problems(value, path)
    elif isinstance(value, tuple | list):
        for index, item in enumerate(value):
            yield from _find_problems_in(item, (*path, index))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _find_problems_in(item, (*path, key))


def absolute(base: Path, path: str) -> str:
    """Return a path of a YAML file in ``base`` as an absolute path; URLs do not change."""
    return path if "://" in path else os.path.normpath(base / os.path.expanduser(path))


class PluginSection(Section):
    """Stands for the sections of other packages in a union by ``type``; the registry has them."""

    registry: ClassVar[PluginTable[type[Section]]]


@dataclass(frozen=True)
class ByType:
    """Selects the variant of a union by its key ``type``.

    A `PluginSection` in the union admits the sections of other packages.

    Attributes:
        default: The variant of a mapping without ``type``.
    """

    default: str

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        plugins = [section for section in get_args(source) if issubclass(section, PluginSection)]
        variants = {
            section.model_fields["type"].default: handler.generate_schema(section)
            for section in get_args(source)
            if section not in plugins
        }
        built_in = core_schema.tagged_union_schema(variants, self._variant)
        if not plugins:
            return built_in
        registry = plugins[0].registry

        def validate(
            value: Any, validate_built_in: core_schema.ValidatorFunctionWrapHandler
        ) -> Any:
            tag = self._variant(value)
            if not isinstance(tag, str) or tag in registry.own or tag not in registry:
                return validate_built_in(value)
            variant = {tag: registry[tag].__pydantic_core_schema__}
            union = core_schema.tagged_union_schema(variant, self._variant)
            return SchemaValidator(union).validate_python(value)

        def add_plugins(schema: Any, handler: pydantic.GetJsonSchemaHandler) -> dict[str, Any]:
            result = handler(schema)
            for section in registry.plugins():
                result["oneOf"].append(handler(section.__pydantic_core_schema__))
            return result

        return core_schema.no_info_wrap_validator_function(
            validate,
            built_in,
            serialization=core_schema.simple_ser_schema("any"),
            metadata={"pydantic_js_functions": [add_plugins]},
        )

    def _variant(self, value: Any) -> Any:
        if isinstance(value, dict):
            return value.get("type", self.default)
        return getattr(value, "type", self.default)


@dataclass(frozen=True)
class NameOrMapping:
    """Lets a name stand for a mapping with the type alone: ``soft`` for ``{type: soft}``."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return core_schema.no_info_before_validator_function(
            lambda value: {"type": value} if isinstance(value, str) else value, handler(source)
        )

    def __get_pydantic_json_schema__(
        self, schema: Any, handler: pydantic.GetJsonSchemaHandler
    ) -> dict[str, Any]:
        union = handler(schema)
        variants = map(handler.resolve_ref_schema, union["oneOf"])
        names = [variant["properties"]["type"]["const"] for variant in variants]
        return {"anyOf": [{"enum": names}, union]}


name_or_mapping = NameOrMapping()
