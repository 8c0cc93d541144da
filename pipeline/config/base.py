"""What every section of the configuration shares: strictness, and unions told apart by ``type``."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Strict

T = TypeVar("T")

# YAML has lists only; inside the list the strictness of the model holds on.
Listed = Annotated[tuple[T, ...], Strict(False)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
Positive = Annotated[int, Field(ge=1)]
Count = Annotated[int, Field(ge=0)]


class Section(BaseModel):
    """A mapping of the YAML file: no unknown keys, no silent conversion, no change afterwards."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, validate_default=False
    )


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
