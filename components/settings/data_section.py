"""The section ``data`` of a task: its defaults, and what its keys mean in each format of files."""

from typing import Annotated, Any

from pydantic import Field, create_model

from regard.components.data import formats
from regard.components.settings.data import DataConfig
from regard.components.settings.data_checks import DataChecksConfig
from regard.models.tasks.description import Description


def data_class(task: Description) -> type[DataConfig]:
    """Return the class of the section ``data`` of a task."""
    checks = checks_class(task)
    fields = {
        "train": _changed_field("train", examples=[task.example_files]),
        "checks": _changed_field("checks", annotation=checks, default=checks()),
        "format": _described_field("format", f"Formats: {formats.describe_formats()}."),
    }
    for key in formats.FILE_KEYS:
        fields[key] = _described_field(key, f"Formats: {formats.describe_key(key)}.")
    doc = DataConfig.__doc__
    return create_model("Data", __base__=DataConfig, __doc__=doc, **fields)  # type: ignore[call-overload]


def _described_field(name: str, text: str) -> tuple[Any, Any]:
    """Return a field of the section with a longer description."""
    return _changed_field(name, description=f"{DataConfig.model_fields[name].description} {text}")


def _changed_field(name: str, **changes: Any) -> tuple[Any, Any]:
    """Return the type of a field of the section, and the field with some changes.

    Args:
        name: The key.
        changes: Another ``annotation``, or arguments of pydantic's ``Field``.
    """
    field = DataConfig.model_fields[name]
    annotation = changes.pop("annotation", field.annotation)
    if field.metadata:
        annotation = Annotated[(annotation, *field.metadata)]
    options = {
        "default": field.default,
        "description": field.description,
        "examples": field.examples,
    }
    return annotation, Field(**{**options, **changes})


def checks_class(task: Description) -> type[DataChecksConfig]:
    """Return the class of the section ``data.checks`` with the task's own defaults."""
    fields: dict[str, Any] = {}
    for name, values in task.data_checks.items():
        field = DataChecksConfig.model_fields[name]
        default = None if values is None else field.default.model_copy(update=values)
        fields[name] = (field.annotation, Field(description=field.description, default=default))
    doc = DataChecksConfig.__doc__
    return create_model("DataChecks", __base__=DataChecksConfig, __doc__=doc, **fields)
