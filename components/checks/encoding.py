"""The check ``encoding``, and the repair of texts."""

import re
from collections.abc import Iterator
from typing import ClassVar, Literal

import ftfy

from regard.components.checks.base import CheckContext, RowCheck, RowTexts
from regard.core.bounds import Share
from regard.core.formatting import changed_part

# A wrong encoding turns one letter into two or more adjacent ones, into a C1 control, or into a
# capital before a space that was a hard space: ten times as fast as ftfy's own test.
_SUSPICIOUS = re.compile("[^\x00-\x7f]{2}|[\x80-\x9f]|[ÂÃ] ")


class EncodingCheck(RowCheck):
    """Rows decoded with the wrong encoding, for example schÃ¶n for schön. They are reported with
    the probable text, and changed only by the action repair.

    Attributes:
        action: What happens above the limit; drop, repair: changes all affected rows of train.
    """

    summary: ClassVar[str] = "were decoded with the wrong encoding"

    limit: Share = 0.001
    action: Literal["warn", "fail", "drop", "repair"] = "warn"  # type: ignore[assignment]

    def affects(self, row: RowTexts, context: CheckContext) -> bool:
        return any(fix_encoding(text) != text for text in row.all)

    def details(self, row: RowTexts, context: CheckContext) -> Iterator[str]:
        for name, texts in row.by_name.items():
            for text in texts:
                fixed = fix_encoding(text)
                if fixed != text:
                    yield f"{name} should be {changed_part(fixed, text)!r}"


def fix_encoding(text: str) -> str:
    """Return the text as it was before it was decoded with the wrong encoding."""
    if text.isascii() or not _SUSPICIOUS.search(text):
        return text
    return ftfy.fix_encoding(text)
