"""The check ``markup``."""

import re
from collections.abc import Iterator
from typing import ClassVar

from regard.components.checks.base import CheckContext, RowCheck, RowTexts
from regard.core.bounds import Share
from regard.models.protected_spans import CLOSING_TAG, OPENING_TAG, VOID_TAG

# Without the spaces of closing tags: here, a long run of them would take quadratic time.
_VOID, _CLOSING = VOID_TAG.replace("(?i:", "(?:"), CLOSING_TAG.lstrip(" *")
_TAG = re.compile(f"(?P<void>{_VOID})|{_CLOSING}|{OPENING_TAG}", re.IGNORECASE)
_NAME = re.compile(r"</?([^\s/>]+)")


class MarkupCheck(RowCheck):
    """Rows with a tag that is not closed or overlaps with another, such as <b> or </b>."""

    summary: ClassVar[str] = "have tags without a partner"
    remedy: ClassVar[str] = "Close each tag in the order of opening; data.protect pairs others only"

    limit: Share = 0.01

    def affects(self, row: RowTexts, context: CheckContext) -> bool:
        return any(find_unpaired(text) for text in row.all)

    def details(self, row: RowTexts, context: CheckContext) -> Iterator[str]:
        for name, texts in row.by_name.items():
            if tag := next(filter(None, map(find_unpaired, texts)), None):
                yield f"{name} contains {tag}"


def find_unpaired(text: str) -> str | None:
    """Return a tag of a text that is not closed, or closes none; None if there is none."""
    if "<" not in text:
        return None
    open_tags: list[tuple[str, str]] = []
    for match in _TAG.finditer(text):
        if match["void"]:
            continue
        tag, name = match[0].strip(), _NAME.match(match[0])
        key = name[1].lower() if name else ""
        if not tag.startswith("</"):
            open_tags.append((key, tag))
        elif not open_tags or open_tags.pop()[0] != key:
            return tag
    return open_tags[-1][1] if open_tags else None
