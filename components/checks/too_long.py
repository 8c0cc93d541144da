"""The check ``too_long``."""

from typing import ClassVar

from regard.components.checks.base import CheckContext, RowCheck, RowTexts
from regard.core.bounds import Positive, Share


class TooLongCheck(RowCheck):
    """Rows with a very long side.

    Attributes:
        characters: Maximum length of a side in characters.
        limit: Maximum share of rows that are too long.
    """

    summary: ClassVar[str] = "are too long"

    characters: Positive = 2000
    limit: Share = 0.01

    def affects(self, row: RowTexts, context: CheckContext) -> bool:
        return bool(row.lengths) and max(map(max, row.lengths)) > self.characters
