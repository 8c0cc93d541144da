"""The check ``same_sides``."""

from typing import ClassVar

from regard.components.checks.base import CheckContext, RowCheck, RowTexts
from regard.core.bounds import Share


class SameSidesCheck(RowCheck):
    """Rows with equal source and target that contain letters."""

    summary: ClassVar[str] = "have the same text on both sides"

    limit: Share = 0.01

    def affects(self, row: RowTexts, context: CheckContext) -> bool:
        inputs = {text.strip() for name in row.names.inputs for text in row.by_name[name]}
        return any(
            text.strip() in inputs and any(map(str.isalpha, text))
            for name in row.names.references
            for text in row.by_name[name]
        )
