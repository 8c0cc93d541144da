"""The base of sections whose docstrings describe their keys, as those of dataclasses do."""

from __future__ import annotations

import inspect
import re
from typing import Any

from pydantic import ConfigDict, Field
from pydantic.fields import FieldInfo

from regard.models.settings.base import Section

_HEADING = "Attributes:\n"
_ATTRIBUTE = re.compile(r"^    (\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)


def _leave_out_attributes(schema: dict[str, Any]) -> None:
    """Describe a section without its keys, which have descriptions of their own."""
    text, heading, _ = schema.get("description", "").partition(_HEADING)
    if heading:
        schema["description"] = text.strip()


class DocumentedSection(Section):
    """A section whose docstring lists its keys under ``Attributes``.

    The texts become the descriptions of the fields, for the reference and for the JSON schema. A
    description that is computed, and examples, stand at the field.
    """

    model_config = ConfigDict(json_schema_extra=_leave_out_attributes)

    def __init_subclass__(cls, **options: Any) -> None:
        """Give the fields of a section their descriptions."""
        super().__init_subclass__(**options)
        listed = inspect.cleandoc(cls.__doc__ or "").partition(_HEADING)[2]
        for name, text in _ATTRIBUTE.findall(listed):
            default = cls.__dict__.get(name, ...)
            if name in inspect.get_annotations(cls) and not isinstance(default, FieldInfo):
                setattr(cls, name, Field(default, description=" ".join(text.split())))
