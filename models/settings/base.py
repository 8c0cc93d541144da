"""What all sections of a YAML file share: strictness, and unions told apart by ``type``."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Strict

T = TypeVar("T")

# Where a key stands in a file, the outermost first.
Path = tuple[str | int, ...]

# YAML has lists only; inside the list the strictness of the model holds on.
Listed = Annotated[tuple[T, ...], Strict(False)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
Positive = Annotated[int, Field(ge=1)]
Count = Annotated[int, Field(ge=0)]


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong: where in the file, at which key, and what."""

    path: Path
    message: str
    line: int | None = None


class Section(BaseModel):
    """A mapping of the YAML file: no unknown keys, no silent conversion, no change afterwards."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, validate_default=False
    )


def absolute(base: FilePath, path: str) -> str:
    """A path of a YAML file, which is relative to the file's own folder; URLs stay."""
    return path if "://" in path else os.path.normpath(base / os.path.expanduser(path))


def by_type(default: str) -> Discriminator:
    """Chooses the variant of a union by its key ``type``, or ``default`` where that is left out."""

    def variant(value: Any) -> Any:
        if isinstance(value, dict):
            return value.get("type", default)
        return getattr(value, "type", default)

    return Discriminator(variant)


# Where a type has no need of options its name will do: ``soft`` for ``{type: soft}``.
name_or_mapping = BeforeValidator(
    lambda value: {"type": value} if isinstance(value, str) else value
)
