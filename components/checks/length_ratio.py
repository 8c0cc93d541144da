"""The check ``length_ratio``."""

from typing import Annotated, ClassVar

from pydantic import Field

from regard.components.checks.base import CheckContext, RowCheck, RowTexts
from regard.core.bounds import Share


class LengthRatioCheck(RowCheck):
    """Rows with one side much longer than the other.

    Attributes:
        ratio: Maximum ratio of the lengths of both sides, in characters.
        limit: Maximum share of rows above the ratio.
    """

    summary: ClassVar[str] = "have sides of very different length"

    ratio: Annotated[float, Field(ge=1.0)] = 9.0
    limit: Share = 0.05

    def affects(self, row: RowTexts, context: CheckContext) -> bool:
        if len(row.lengths) < 2:
            return False
        # Of several texts of a side, only the first one counts.
        lengths = [side[0] for side in row.lengths]
        return max(lengths) / max(1, min(lengths)) > self.ratio
