"""The check ``empty_side``."""

from typing import ClassVar, Literal

from regard.components.checks.base import CheckContext, RowCheck, RowTexts
from regard.core.bounds import Share


class EmptySideCheck(RowCheck):
    """Rows with an empty side. null disables a check, here and below."""

    summary: ClassVar[str] = "have an empty side"

    limit: Share = 0.01
    action: Literal["warn", "fail", "drop"] = "fail"

    def affects(self, row: RowTexts, context: CheckContext) -> bool:
        return bool(row.lengths) and min(map(min, row.lengths)) == 0
