"""What checks of data and of outputs share: a limit, and the action above it."""

from typing import Any, Literal

from pydantic import model_validator

from regard.core.bounds import Share
from regard.models.settings.base import Section


class CheckConfig(Section):
    """A limit on the share of affected rows, and the action above it.

    Attributes:
        limit: Maximum share of affected rows.
        action: What happens above the limit; drop: leaves out all affected rows of train.
    """

    limit: Share = 0.0
    action: Literal["warn", "fail", "drop"] = "warn"


class CheckSetConfig(Section):
    """Checks by name, each with its own limits."""

    @model_validator(mode="before")
    @classmethod
    def _fill(cls, value: Any) -> Any:
        # A partial check keeps the defaults of its field, not those of its class.
        if not isinstance(value, dict):
            return value
        filled = dict(value)
        for name, field in cls.model_fields.items():
            check = value.get(name)
            if isinstance(check, dict) and field.default is not None:
                filled[name] = {**field.default.model_dump(), **check}
        return filled
